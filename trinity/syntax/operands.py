"""Rewrites BETWEEN of texts, and IN with NULL, as plain comparisons, since Spark pads a CHAR column in neither (K2).

Spark pads the operands of ``=``, ``<`` and the like, and the values of an IN without NULL. The rewritten text means the
same for columns of every type. Tokens are edited, so that the rest of a text stays as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import Token, TokenType

from trinity.errors import TrinityError
from trinity.syntax.parse import tokenize

_MAY_APPLY: Final = re.compile(r"\bbetween\b|\bnull\b", re.IGNORECASE)
_WORDS_BEFORE: Final = frozenset({"(", "AND", "OR", "NOT", "WHERE", "ON", "HAVING", "WHEN", "THEN", "ELSE"})
"""Words after which a column begins an operand; no comma, since in a SELECT list the text may be a column's name."""
_WORDS_AFTER: Final = frozenset({
    ")", ",", "AND", "OR", "THEN", "WHEN", "ELSE", "END", "AS", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT",
    "CLUSTER", "DISTRIBUTE", "WINDOW", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "JOIN", "LEFT", "RIGHT",
    "FULL", "INNER", "CROSS", "ON",
})  # fmt: skip
"""Words before which a value ends an operand."""
_TEXT: Final = frozenset({TokenType.STRING, TokenType.NULL})


def with_plain_comparisons(text: str) -> str:
    """Return a Spark statement or expression without BETWEEN of texts, and without NULL among the texts of an IN.

    Only conditions on a column itself are changed. Everything else, and text that cannot be split into tokens, stays as
    it is.
    """
    if not _MAY_APPLY.search(text):
        return text
    try:
        tokens = tokenize(text)
    except TrinityError:
        return text
    for start, end, new in reversed(list(_comparison_edits(text, tokens))):
        text = text[:start] + new + text[end:]
    return text


def _comparison_edits(text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    for index, token in enumerate(tokens):
        if token.token_type not in (TokenType.BETWEEN, TokenType.IN):
            continue
        negated = index > 0 and tokens[index - 1].token_type is TokenType.NOT
        first = _operand(tokens, index - negated)
        found = (
            _between(text, tokens, index) if token.token_type is TokenType.BETWEEN else _in_list(text, tokens, index)
        )
        if first is None or found is None or not _ends_condition(tokens, found[0]):
            continue
        column = text[tokens[first].start : tokens[index - negated - 1].end + 1]
        condition = found[1].replace("\0", column)
        yield tokens[first].start, tokens[found[0] - 1].end + 1, f"(NOT {condition})" if negated else condition


def _operand(tokens: Sequence[Token], end: int) -> int | None:
    """Return the index of the first token of the column ``a.b.c`` that ends before an index.

    None unless the column is a whole operand.
    """
    first = end - 1
    while first >= 2 and tokens[first - 1].token_type is TokenType.DOT:
        first -= 2
    names = tokens[max(first, 0) : end : 2]
    if first < 0 or not all(t.token_type in (TokenType.VAR, TokenType.IDENTIFIER) for t in names):
        return None
    return first if first == 0 or tokens[first - 1].text.upper() in _WORDS_BEFORE else None


def _ends_condition(tokens: Sequence[Token], index: int) -> bool:
    return index == len(tokens) or tokens[index].text.upper().split()[0] in _WORDS_AFTER


def _between(text: str, tokens: Sequence[Token], index: int) -> tuple[int, str] | None:
    """Return the index after ``BETWEEN 'a' AND 'b'``, and the comparisons, with a NUL character for the column.

    None for another BETWEEN.
    """
    kinds = [t.token_type for t in tokens[index + 1 : index + 4]]
    if kinds != [TokenType.STRING, TokenType.AND, TokenType.STRING]:
        return None
    low, high = (text[t.start : t.end + 1] for t in (tokens[index + 1], tokens[index + 3]))
    return index + 4, f"(\0 >= {low} AND \0 <= {high})"


def _in_list(text: str, tokens: Sequence[Token], index: int) -> tuple[int, str] | None:
    """Return the index after ``IN ('a', NULL)``, and the IN without NULL, with a NUL character for the column.

    None for another IN.
    """
    if index + 1 >= len(tokens) or tokens[index + 1].token_type is not TokenType.L_PAREN:
        return None
    end = next((n for n in range(index, len(tokens)) if tokens[n].token_type is TokenType.R_PAREN), len(tokens))
    values, commas = tokens[index + 2 : end : 2], tokens[index + 3 : end : 2]
    listed = all(t.token_type in _TEXT for t in values) and all(t.token_type is TokenType.COMMA for t in commas)
    texts = [text[t.start : t.end + 1] for t in values if t.token_type is TokenType.STRING]
    if not listed or not texts or len(texts) == len(values) or len(commas) != len(values) - 1:
        return None
    return end + 1, f"(\0 IN ({', '.join(texts)}) OR CAST(NULL AS BOOLEAN))"

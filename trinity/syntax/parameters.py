"""Parameters of a statement: their positions in its text, and their values as literals of Spark SQL.

A literal is written and escaped according to its type. The resulting text runs with Spark's variable substitution off
(N2).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlglot import Token, TokenType

from trinity.errors import TrinityError, nearest
from trinity.syntax.parse import expression_tree, statement_tokens
from trinity.syntax.quoting import text_literal


@dataclass(frozen=True)
class Numbered:
    """A statement whose ``?`` became ``$1``, ``$2``, ...

    Attributes:
        text: the statement with ``$1``, ``$2``, ...
        count: the number of parameters.
        tokens: the tokens of the original text.
        pieces: the original text, cut at each ``?``.
    """

    text: str
    count: int
    tokens: tuple[Token, ...]
    pieces: tuple[str, ...]

    def filled(self, values: Sequence[str]) -> str:
        """Return the statement with a value in place of each ``?``; blanks separate values from words around them."""
        found: list[str] = []
        for piece, value, following in zip(self.pieces[:-1], values, self.pieces[1:], strict=True):
            before = " " if _IN_WORD.search(piece) or piece.endswith(("'", '"')) else ""
            after = "" if not following or following[0].isspace() else " "
            found += [piece, before, value, after]
        return "".join([*found, self.pieces[-1]])


_IN_WORD: Final = re.compile(r"[\w$]\Z")
"""Pattern of a text that ends within a word, so that following text would become part of the word."""


def number(sql: str, dialect: str) -> Numbered:
    """Number the ``?`` of one statement, except in strings, names and comments.

    Raises:
        TrinityError: SYNTAX_ERROR for no statement, for more than one, and for ``$1`` in the text.
    """
    tokens = _tokens(sql, dialect)
    pieces: list[str] = []
    start = 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.token_type is TokenType.PARAMETER and token.text == "$":
            raise TrinityError("SYNTAX_ERROR", f"Line {token.line}: parameters are written '?', not '$1'.")
        if _is_parameter(token, before):
            at = token.start + token.text.index("?")
            pieces.append(sql[start:at])
            start = at + 1
    pieces.append(sql[start : tokens[-1].end + 1])
    found = Numbered("", len(pieces) - 1, tuple(tokens), tuple(pieces))
    # sqlglot would read $1,$2 as the beginning of a dollar-quoted string; filled() adds blanks
    return replace(found, text=found.filled([f"${n + 1}" for n in range(found.count)]))


def _tokens(sql: str, dialect: str) -> list[Token]:
    """Return the tokens of one statement, without its semicolon. Raises SYNTAX_ERROR for none, or more than one."""
    tokens = statement_tokens(sql, dialect)
    second = next((t for t in tokens if t.token_type is TokenType.SEMICOLON), None)
    if second is not None:
        raise TrinityError("SYNTAX_ERROR", f"Line {second.line}: one statement is run, and a second begins here.")
    return tokens


def _is_parameter(token: Token, before: Token | None) -> bool:
    """Return True for a token with a parameter: ``?``, ``?::``, or an operator such as ``?|`` without left operand."""
    if token.token_type in (TokenType.PLACEHOLDER, TokenType.QDCOLON):
        return token.text in ("?", "?::")
    if token.token_type not in (TokenType.QMARK_PIPE, TokenType.QMARK_AMP, TokenType.AT_QMARK):
        return False
    return before is None or not _ends_operand(before)


def _ends_operand(token: Token) -> bool:
    """Return True when a token can end an operand, so that an operator follows."""
    if token.token_type in _OPERAND_ENDS:
        return True
    return bool(_IN_WORD.search(token.text)) and token.text.upper() not in _BEFORE_OPERANDS


_OPERAND_ENDS: Final = frozenset({
    TokenType.STRING, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.PLACEHOLDER,
})  # fmt: skip

_BEFORE_OPERANDS: Final = frozenset({
    "SELECT", "DISTINCT", "ALL", "WHERE", "HAVING", "ON", "BY", "AND", "OR", "NOT", "CASE", "WHEN", "THEN", "ELSE",
    "BETWEEN", "LIKE", "ILIKE", "FROM", "RETURNING", "LIMIT", "OFFSET", "IN", "USING",
})  # fmt: skip
"""Words after which an operand follows."""


def with_values(sql: str, values: Any, dialect: str = "spark") -> str:
    """Return the statement with literals in place of its parameters.

    Args:
        sql: the statement.
        values: a sequence with a value for each ``?``, or a mapping with a value for each ``:name``.
        dialect: the statement's dialect.

    Raises:
        TrinityError: INVALID_ARGUMENTS for the wrong number of values, or a name without one; TYPE_MISMATCH for a value
            without a literal, NUMERIC_VALUE_OUT_OF_RANGE for a number of too many digits.
    """
    if isinstance(values, Mapping):
        return _with_names(sql, values, dialect)
    return with_literals(sql, list(values), dialect)


def with_literals(sql: str, parameters: Sequence[Any], dialect: str = "spark") -> str:
    """Return the statement with a literal in place of each ``?``. Raises as :func:`with_values`."""
    numbered = number(sql, dialect)
    if len(parameters) != numbered.count:
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"The statement has {numbered.count} parameters, and {len(parameters)} values are given.",
        )
    return _with_literal_values(numbered, parameters, dialect)


def _with_names(sql: str, values: Mapping[str, Any], dialect: str) -> str:
    named, names = _cut_at_names(sql, dialect)
    return _with_literal_values(named, [_value(name, values) for name in names], dialect)


def _with_literal_values(numbered: Numbered, values: Sequence[Any], dialect: str) -> str:
    """Return the statement with literals. A list that alone follows IN becomes the values of the IN."""

    def spelled(before: str, value: Any, after: str) -> str:
        value, at = to_python(value), _AFTER_IN.search(before)
        if not isinstance(value, (list, tuple)) or not at:
            return _in_dialect(literal(value), dialect)
        listed = ", ".join(_in_dialect(literal(item), dialect) for item in value) or "SELECT NULL WHERE FALSE"
        if not at[1]:
            return f"({listed})"
        return listed if after.lstrip().startswith(")") else _in_dialect(literal(value), dialect)

    return numbered.filled(list(map(spelled, numbered.pieces[:-1], values, numbered.pieces[1:])))


_AFTER_IN: Final = re.compile(r"\bIN\s*(\(?)\s*\Z", re.IGNORECASE)


def positional(sql: str, dialect: str) -> tuple[str, Callable[[Mapping[str, Any]], list[Any]]]:
    """Return a statement with ``?`` in place of each ``:name``, and a function from a mapping to the list of values.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a statement that has ``?``, and from the function for a name without a
            value; SYNTAX_ERROR as :func:`number`.
    """
    if number(sql, dialect).count:
        raise TrinityError("INVALID_ARGUMENTS", "The values have names, and the statement has '?'; write ':name'.")
    named, names = _cut_at_names(sql, dialect)
    return named.filled(["?"] * len(names)), lambda values: [_value(name, values) for name in names]


def _cut_at_names(sql: str, dialect: str) -> tuple[Numbered, list[Token]]:
    """Return a statement cut at each ``:name``, and the names."""
    tokens = _tokens(sql, dialect)
    pieces: list[str] = []
    names: list[Token] = []
    start = 0
    for before, colon, name in zip([None, *tokens], tokens, tokens[1:], strict=False):
        if colon.token_type is not TokenType.COLON or name.start != colon.end + 1 or not name.text.isidentifier():
            continue
        if before is not None and before.end + 1 == colon.start and _ends_operand(before):
            continue  # a field of a struct<a:int>, or of a variant
        pieces.append(sql[start : colon.start])
        names.append(name)
        start = name.end + 1
    pieces.append(sql[start : tokens[-1].end + 1])
    return Numbered("", len(names), tuple(tokens), tuple(pieces)), names


def _value(name: Token, values: Mapping[str, Any]) -> Any:
    if name.text not in values:
        hint = nearest(name.text, list(map(str, values)))
        raise TrinityError("INVALID_ARGUMENTS", f"Line {name.line}: parameter ':{name.text}' has no value.{hint}")
    return values[name.text]


def _in_dialect(text: str, dialect: str) -> str:
    """Return a literal of Spark's in another dialect, for a statement that is translated later."""
    return text if dialect == "spark" else str(expression_tree(text).sql(dialect=dialect))


def to_python(value: Any) -> Any:
    """Return a scalar or an array of numpy or pandas as a value of Python; pandas' NA and NaT as None."""
    if type(value).__module__.partition(".")[0] not in ("numpy", "pandas"):
        return value
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if type(value).__name__ == "datetime64":
        return value.astype("datetime64[us]").item()  # for nanoseconds item() would return a number
    if getattr(value, "ndim", None) == 1:
        return list(value)
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value


def literal(value: Any) -> str:
    """Return a value as a literal, a list as an ARRAY. Raises TYPE_MISMATCH, NUMERIC_VALUE_OUT_OF_RANGE."""
    value = to_python(value)
    if isinstance(value, (list, tuple)):
        return f"ARRAY({', '.join(map(literal, value))})"
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        return f"CAST('{float(value)!r}' AS DOUBLE)"
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, (str, UUID)):
        return _text(text_of(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"X'{bytes(value).hex()}'"
    if isinstance(value, dt.datetime):  # Spark makes TIMESTAMP_NTZ an instant of the session's zone if need be
        kind = "TIMESTAMP_LTZ" if value.tzinfo is not None else "TIMESTAMP_NTZ"
        return f"{kind} '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, dt.time) and value.tzinfo is None:
        return f"TIME '{value.isoformat()}'"
    raise TrinityError("TYPE_MISMATCH", f"A parameter of type {type(value).__name__} has no counterpart in SQL.")


def text_of(value: str | UUID) -> str:
    """Return a value as text: of an Enum that is text, too, its value, and not what ``str`` prints of it."""
    return str.__str__(value) if isinstance(value, str) else str(value)


_DIGITS: Final = 38
"""Digits of Spark's widest DECIMAL."""


def _text(value: str) -> str:
    if not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        raise TrinityError("TYPE_MISMATCH", "A parameter holds half of a surrogate pair, which is no character.")
    return text_literal(value)


def _integer(value: int) -> str:
    if abs(value) >= 10**_DIGITS:
        raise _too_long()
    text = f"{value:d}" if -(2**63) < value < 2**63 else f"CAST('{value:d}' AS DECIMAL({_DIGITS}, 0))"
    return f"({text})" if value < 0 else text


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise TrinityError("TYPE_MISMATCH", f"Decimal {value} has no counterpart in SQL.")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale)
    if precision > _DIGITS:
        raise _too_long()
    return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"


def _too_long() -> TrinityError:
    message = f"A parameter is a number of more than {_DIGITS} digits, the most of DECIMAL; give it as float or text."
    return TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", message)

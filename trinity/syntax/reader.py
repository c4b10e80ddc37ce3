"""The token reader of statements: every expression stays the text that the user wrote.

A :class:`Piece` is a part of a statement. A :class:`Reader` reads a piece clause by clause. sqlglot parses only the
expressions and queries in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sqlglot import Token, TokenType, exp

from trinity.errors import TrinityError
from trinity.syntax.parse import Statement, parse_tokens

_OPENING: Final = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING: Final = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_QUERIES: Final = ("SELECT", "WITH", "VALUES")
_NO_WORDS: Final = (TokenType.IDENTIFIER, TokenType.STRING)


@dataclass(frozen=True)
class Piece:
    """Consecutive tokens of a statement.

    Attributes:
        whole: the text of the whole statement, to which the tokens' positions refer.
        dialect: the statement's dialect.
        tokens: the tokens, at least one.
    """

    whole: str
    dialect: str
    tokens: tuple[Token, ...]

    @classmethod
    def of(cls, statement: Statement) -> Piece:
        """Return a whole statement as a piece."""
        return cls(statement.text, statement.dialect, statement.tokens)

    @property
    def start(self) -> int:
        """The offset of the first character in the whole statement."""
        return int(self.tokens[0].start)

    @property
    def text(self) -> str:
        """The text as the user wrote it."""
        return self.whole[self.start : self.tokens[-1].end + 1]

    @cached_property
    def tree(self) -> exp.Expr:
        """The piece as an expression; positions refer to the whole statement. Raises SYNTAX_ERROR."""
        return parse_tokens(exp.Condition, self.tokens, self.whole, self.dialect)

    def is_word(self, word: str) -> bool:
        """Return True when the piece is this keyword and nothing else."""
        return len(self.tokens) == 1 and word_of(self.tokens[0]) == word


def word_of(token: Token) -> str:
    """Return a token in upper case; an empty text for strings and quoted names."""
    return "" if token.token_type in _NO_WORDS else str(token.text).upper()


class Reader:
    """A reader of the clauses of a piece. It steps over brackets, and over CASE ... END, as a whole.

    Args:
        piece: the piece.
        at: index of the token at which to begin.
    """

    def __init__(self, piece: Piece, at: int = 0) -> None:
        self.piece = piece
        self.at = at

    @property
    def tokens(self) -> tuple[Token, ...]:
        """All tokens of the piece."""
        return self.piece.tokens

    @property
    def done(self) -> bool:
        """True when no token is left."""
        return self.at >= len(self.tokens)

    def words(self, *wanted: str) -> bool:
        """Return True when the next tokens are these keywords."""
        return self._after(wanted) is not None

    def take(self, *wanted: str) -> bool:
        """Step over these keywords if they are next; return whether they were."""
        after = self._after(wanted)
        self.at = self.at if after is None else after
        return after is not None

    def _after(self, wanted: tuple[str, ...]) -> int | None:
        """Return the index after these keywords; None if they are not next.

        sqlglot has one token for some pairs, such as ORDER BY.
        """
        found: list[str] = []
        at = self.at
        while len(found) < len(wanted) and at < len(self.tokens):
            found += word_of(self.tokens[at]).split() or [""]
            at += 1
        return at if tuple(found) == wanted else None

    def expect(self, *wanted: str) -> None:
        """Step over these keywords. Raises SYNTAX_ERROR if something else is next."""
        for word in wanted:
            if not self.take(word):
                raise self.unexpected(word)

    def unexpected(self, wanted: str) -> TrinityError:
        """Return a SYNTAX_ERROR at the current token; ``wanted`` is what is expected there."""
        if self.done:
            last = self.tokens[-1]
            return TrinityError("SYNTAX_ERROR", f"Line {last.line}: {wanted} is expected after '{last.text}'.")
        token = self.tokens[self.at]
        column = token.start - self.piece.whole.rfind("\n", 0, token.start)
        message = f"Line {token.line}, column {column}: {wanted} is expected at '{token.text}'."
        return TrinityError("SYNTAX_ERROR", message)

    def refuse(self, words: Sequence[str], advice: str) -> None:
        """Raise NOT_SUPPORTED if one of these phrases is next; the message names it and gives the advice."""
        for phrase in words:
            if self.words(*phrase.split()):
                raise TrinityError("NOT_SUPPORTED", f"{phrase} is not supported here; {advice}")

    def refuse_anywhere(self, words: Sequence[str], advice: str) -> None:
        """Raise NOT_SUPPORTED if the rest has one of these phrases outside of brackets."""
        before = self.at
        while not self.done:
            if not self._is_part_of_name():
                self.refuse(words, advice)
            self._step()
        self.at = before

    def name(self, wanted: str = "a name") -> tuple[str, ...]:
        """Step over a dotted name, and return its parts. Raises SYNTAX_ERROR if no name is next."""
        parts: list[str] = []
        while not self.done:
            token = self.tokens[self.at]
            plain = token.token_type is not TokenType.STRING and str(token.text).replace("_", "a").isalnum()
            if not (token.token_type is TokenType.IDENTIFIER or plain):
                break
            parts.append(str(token.text))
            self.at += 1
            if self.done or self.tokens[self.at].token_type is not TokenType.DOT:
                return tuple(parts)
            self.at += 1
        raise self.unexpected(wanted)

    def alias(self, *keywords: str) -> str | None:
        """Step over ``[AS] alias``, and return the alias; None if one of the keywords, a sign or the end is next."""
        if self.take("AS"):
            (name,) = self.name("an alias")[:1]
            return name
        if self.done or word_of(self.tokens[self.at]) in keywords or self._is_sign():
            return None
        return self.name("an alias")[0]

    def _is_sign(self) -> bool:
        token = self.tokens[self.at]
        return token.token_type is not TokenType.IDENTIFIER and not str(token.text).replace("_", "a").isalnum()

    def until(self, *keywords: str, wanted: str) -> Piece:
        """Return the piece up to the next of these keywords outside of brackets, or up to the end.

        Raises:
            TrinityError: SYNTAX_ERROR for an empty piece.
        """
        start = self.at
        while not self.done and not self._is_one_of(keywords):
            self._step()
        if self.at == start:
            raise self.unexpected(wanted)
        return self.read_since(start)

    def _is_one_of(self, keywords: Sequence[str]) -> bool:
        word = word_of(self.tokens[self.at])
        if word not in keywords or self._is_part_of_name():
            return False
        return not (word == "FROM" and self.at and word_of(self.tokens[self.at - 1]) == "DISTINCT")

    def _is_part_of_name(self) -> bool:
        return self.at > 0 and self.tokens[self.at - 1].token_type is TokenType.DOT

    def rest(self, wanted: str) -> Piece:
        """Return the rest. Raises SYNTAX_ERROR if it is empty."""
        return self.until(wanted=wanted)

    def inside(self, wanted: str) -> Piece:
        """Return the piece within the parentheses that open here, and step over them. Raises SYNTAX_ERROR."""
        if self.done or self.tokens[self.at].token_type is not TokenType.L_PAREN:
            raise self.unexpected("'('")
        start = self.at + 1
        if not self._step():
            raise self.unexpected("')'")
        if self.at - 1 == start:
            self.at -= 1
            raise self.unexpected(wanted)
        return Piece(self.piece.whole, self.piece.dialect, self.tokens[start : self.at - 1])

    def opens(self) -> bool:
        """Return True when a parenthesis opens here."""
        return not self.done and self.tokens[self.at].token_type is TokenType.L_PAREN

    def subqueries(self) -> Iterator[tuple[str, Piece]]:
        """Step to the end, and yield (keyword before it, subquery) for each subquery that is not within another one."""
        while not self.done:
            if self.opens() and self.at + 1 < len(self.tokens) and word_of(self.tokens[self.at + 1]) in _QUERIES:
                word = word_of(self.tokens[self.at - 1]) if self.at else ""
                yield word, self.inside("a query")
            else:
                self.at += 1

    def commas(self, wanted: str) -> list[Piece]:
        """Return the rest, split at the commas outside of brackets. Raises SYNTAX_ERROR for an empty part."""
        parts: list[Piece] = []
        while True:
            parts.append(self.until(",", wanted=wanted))
            if self.done:
                return parts
            self.at += 1

    def read_since(self, start: int) -> Piece:
        """Return the piece from a token's index up to the current token."""
        return Piece(self.piece.whole, self.piece.dialect, self.tokens[start : self.at])

    def _step(self) -> bool:
        """Step over one token, or from an opening bracket or CASE to its end; return False if the end is missing."""
        depth = 0
        while not self.done:
            depth += self._nesting(depth)
            self.at += 1
            if depth <= 0:
                return True
        return False

    def _nesting(self, depth: int) -> int:
        token = self.tokens[self.at]
        if token.token_type in _OPENING:
            return 1
        if token.token_type in _CLOSING:
            return -1
        if self._is_part_of_name():
            return 0
        if token.token_type is TokenType.CASE:
            return 1
        return -1 if token.token_type is TokenType.END and depth else 0

"""Parsing of a text to one statement, whose nodes know their positions in the text."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError, TokenError, UnsupportedError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from trinity.depth import deep_recursion
from trinity.errors import TrinityError, ignoring, nearest
from trinity.messages import shown_value
from trinity.syntax.changes import TABLE_CHANGES, changes_clause, table_changes

ESCAPED: Final = "escaped"
"""Mark in the ``meta`` of a literal with a backslash that sqlglot and Spark may read in two ways."""

WRITTEN: Final = "written"
"""Key in the ``meta`` of an expression of a SELECT list, or of the condition of a CHECK: its text."""

_PARSE_ERRORS: Final = (SqlglotError, ValueError, LookupError, TypeError, AttributeError)
"""Errors that sqlglot raises for a text; its builders raise other ones for a wrong number of arguments, ``map(1)``."""

_KEPT_AS_TEXT: Final = (TokenType.SHOW, TokenType.COMMAND)
"""First words after which sqlglot keeps the rest of a statement as one string."""

_UNAMBIGUOUS: Final = re.compile(r"'(?:[^\\]|\\[\\'])*'", re.DOTALL)
"""Pattern of a literal in which backslashes escape backslashes and quotes only, as in literals of parameters."""

_INTERVAL_TEXT: Final = re.compile(r"\s*-?[0-9]+\s+[a-z]{3,}\s*", re.IGNORECASE)
"""Pattern of the text of an interval that has one number and one unit."""


def _text_literal(parser: SparkParser, token: Token) -> exp.Expr:
    found: exp.Expr = parser.expression(exp.Literal(this=token.text, is_string=True), token)
    written = parser.sql[token.start : token.end + 1]
    if "\\" in written and not _UNAMBIGUOUS.fullmatch(written):
        found.meta[ESCAPED] = True
    return found


def _as_named(name: str, alone: Callable[[exp.Expr], exp.Expr] | None = None) -> Callable[[list[exp.Expr]], exp.Expr]:
    """Return a parser of a function that keeps its arguments as written; ``alone`` makes the call with only one.

    sqlglot would replace ``y`` by ``yyyy`` in a pattern, and the unit ``'Q'``, which Spark does not know, by QUARTER.
    """

    def read(arguments: list[exp.Expr]) -> exp.Expr:
        if alone is not None and len(arguments) == 1:
            return alone(arguments[0])
        return exp.Anonymous(this=name, expressions=arguments)

    return read


MISSING: Final = "something is missing after this word"
"""Text of a syntax error for a clause without its expression."""


class TrinitySpark(Spark):
    """Spark's dialect, with positions of time travel clauses, texts of expressions, and syntax that sqlglot lacks."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokenizer; since Spark 4 a doubled quote in a string stands for one quote."""

        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - sqlglot writes the first one

    class Parser(SparkParser):
        """Spark's parser; a version clause knows its first and last character."""

        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
            **SparkParser.FUNCTIONS,
            "DATE_FORMAT": _as_named("date_format"),
            "DATE_TRUNC": _as_named("date_trunc"),
            "TRUNC": _as_named("trunc"),
            "TO_DATE": _as_named("to_date", lambda value: exp.TsOrDsToDate(this=value, safe=True)),
            # sqlglot's TIMESTAMP is TIMESTAMP_NTZ, which drops the zone in a text
            "TIMESTAMP": _as_named("timestamp", lambda value: exp.cast(value, exp.DType.TIMESTAMPTZ)),
            "TO_TIMESTAMP": _as_named("to_timestamp", lambda value: exp.cast(value, exp.DType.TIMESTAMPTZ)),
        }

        FUNCTION_PARSERS: ClassVar[dict[str, Callable[[SparkParser], exp.Expr]]] = {
            **SparkParser.FUNCTION_PARSERS,
            TABLE_CHANGES: table_changes,
        }

        PRIMARY_PARSERS: ClassVar[dict[TokenType, Callable[[SparkParser, Token], exp.Expr]]] = {
            **SparkParser.PRIMARY_PARSERS,
            TokenType.STRING: _text_literal,
        }

        VERSION_PHRASES = {  # noqa: RUF012 - sqlglot's own way to extend a parser
            **SparkParser.VERSION_PHRASES,
            ("FOR", "SYSTEM_VERSION"): "VERSION",
            ("SYSTEM_VERSION", "AS", "OF"): "VERSION",
        }

        def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
            found = self._parse_csv(self._parse_projection)
            if not found:  # PostgreSQL has rows without columns, which Arrow data would forget
                self.raise_error(MISSING, self._prev)
            return found, None

        def _parse_projection(self) -> exp.Expr | None:
            first = self._curr
            found = self._parse_expression()
            if found is not None and first is not None:
                found.meta[WRITTEN] = self.sql[first.start : self._prev.end + 1]
            return found

        def _parse_check_constraint(self) -> exp.CheckColumnConstraint | None:
            first = self._index + 1  # behind the parenthesis
            found = super()._parse_check_constraint()
            if found is not None and found.this is not None:
                end = self._index - (2 if found.args.get("enforced") else 1)
                found.this.meta[WRITTEN] = self.sql[self._tokens[first].start : self._tokens[end - 1].end + 1]
            return found

        def _parse_interval_span(self, this: exp.Expr, parse_function_unit: bool = True) -> exp.Interval:
            found = super()._parse_interval_span(this, parse_function_unit)
            last = self._prev
            if not isinstance(found.args.get("unit"), exp.Var):
                return found
            if last.token_type is not TokenType.STRING:
                found.set("unit", exp.Var(this=last.text.upper()))  # sqlglot makes DAY of D, which Spark does not know
            elif not _INTERVAL_TEXT.fullmatch(last.text):  # sqlglot finds 1 DAY in '- 1 day', '1day' and '1 d'
                found.set("this", exp.Literal.string(last.text))
                found.set("unit", None)
            return found

        def _parse_version(self) -> exp.Version | None:
            first = self._curr
            version = changes_clause(self) or super()._parse_version()
            if version is not None:
                version.meta.update(start=first.start, end=self._prev.end)
            return version

    class Generator(SparkGenerator):
        """Spark's generator. A WITH stays where it is: moved outwards, two with the same name would clash."""

        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()


_DIALECTS: Final[dict[str, type[Dialect] | str]] = {
    "spark": TrinitySpark,
    "trino": "trino",
    "postgres": "postgres",
    "duckdb": "duckdb",
}


class _NoCommandWarnings(logging.Filter):
    """A filter that drops sqlglot's warnings about statements that it keeps as text, which Trinity interprets."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "parsing as a 'Command'" not in str(record.msg)


logging.getLogger("sqlglot").addFilter(_NoCommandWarnings())


@dataclass(frozen=True)
class Statement:
    """A parsed statement.

    Attributes:
        text: the statement without its trailing semicolon; positions in ``tree`` and ``tokens`` refer to it.
        dialect: its dialect.
        tree: sqlglot's tree.
        tokens: its tokens.
    """

    text: str
    dialect: str
    tree: exp.Expr
    tokens: tuple[Token, ...]

    def words(self, count: int) -> tuple[str, ...]:
        """Return the first ``count`` tokens in upper case."""
        return tuple(t.text.upper() for t in self.tokens[:count])

    def to_spark(self) -> Statement:
        """Return this statement in Spark's dialect. Raises NOT_SUPPORTED if Spark has no counterpart."""
        if self.dialect == "spark":
            return self
        return parse(spark_text(self.tree, self.dialect), "spark")


def spark_text(tree: exp.Expr, dialect: str) -> str:
    """Return the text of a tree in Spark's dialect. Raises NOT_SUPPORTED if Spark has no counterpart."""
    if dialect != "spark":
        tree = _with_meaning_kept(tree, dialect)
    try:
        return str(tree.sql(dialect=TrinitySpark, unsupported_level=ErrorLevel.RAISE))
    except UnsupportedError as error:
        raise TrinityError(
            "NOT_SUPPORTED",
            f"This {dialect} statement has no counterpart in Spark: {error}. Write that part in Spark's SQL.",
        ) from error


def _with_meaning_kept(tree: exp.Expr, dialect: str) -> exp.Expr:
    """Return a tree of another dialect, changed where Spark would read the same syntax in another way."""
    if tree.find(exp.DPipe, exp.Like, exp.ILike) is None:
        return tree
    tree = tree.copy()
    for node in list(tree.find_all(exp.DPipe, exp.Like, exp.ILike)):
        operand = node.expression
        if isinstance(node, exp.DPipe) and _adds_first(node):
            node.set("expression", exp.paren(operand, copy=False))
        elif not isinstance(node, exp.DPipe) and isinstance(operand, exp.Literal) and not escapes_alike(node, dialect):
            node.set("expression", exp.Literal.string(operand.name.replace("\\", "\\\\")))
    return tree


def escapes_alike(node: exp.Expr, dialect: str) -> bool:
    """Return whether a pattern means the same in Spark: a backslash escapes only in Spark and PostgreSQL."""
    if dialect in ("spark", "postgres") or isinstance(node.parent, exp.Escape):
        return True
    pattern = node.expression
    return isinstance(pattern, exp.Literal) and "\\" not in pattern.name


def _adds_first(node: exp.Expr) -> bool:
    """Return True for ``a || b + c``, in which all dialects but Spark add first: Spark goes from left to right."""
    return isinstance(node.expression, exp.Add | exp.Sub)


def _dialect(name: str) -> Dialect:
    if name not in _DIALECTS:
        known = list(_DIALECTS)
        raise TrinityError(
            "INVALID_ARGUMENTS", f"SQL dialect '{name}' is unknown.{nearest(name, known)} Known: {', '.join(known)}."
        )
    return Dialect.get_or_raise(_DIALECTS[name])


def tokenize(text: str, dialect: str = "spark") -> list[Token]:
    """Return the tokens of a text, without comments. Raises SYNTAX_ERROR for an unfinished string, name or comment."""
    lexer = _dialect(dialect)
    try:
        tokens = list(lexer.tokenize(text))
        # with another first word sqlglot splits the rest into tokens
        if len(tokens) > 1 and tokens[0].token_type in _KEPT_AS_TEXT:
            first = tokens[0]
            masked = text[: first.start] + "x" * len(first.text) + text[first.end + 1 :]
            tokens = [first, *lexer.tokenize(masked)[1:]]
    except TokenError as error:
        raise _token_error(text, error) from error
    return tokens


def split(text: str, dialect: str = "spark") -> list[str]:
    """Return the statements of a script, without their semicolons; parts without any token are left out.

    Raises:
        TrinityError: SYNTAX_ERROR for an unfinished string, name or comment; INVALID_ARGUMENTS for an unknown dialect.
    """
    found: list[str] = []
    current: list[Token] = []
    for token in tokenize(text, dialect):
        if token.token_type is not TokenType.SEMICOLON:
            current.append(token)
            continue
        if current:
            found.append(_text_of(text, current))
        current = []
    if current:
        found.append(_text_of(text, current))
    return found


def _text_of(text: str, tokens: list[Token]) -> str:
    return text[tokens[0].start : tokens[-1].end + 1]


def statement_tokens(text: str, dialect: str) -> list[Token]:
    """Return the tokens of a text without the semicolons at its end. Raises SYNTAX_ERROR for a text without tokens."""
    tokens = tokenize(text, dialect)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise TrinityError("SYNTAX_ERROR", "There is no statement in the text.")
    return tokens


def only_one(text: str, dialect: str = "spark") -> tuple[str, list[Token]]:
    """Return the one statement of a text, without its semicolon, and its tokens; comments are allowed.

    Raises:
        TrinityError: SYNTAX_ERROR for no statement or more than one, or for an unfinished string, name or comment.
    """
    tokens = statement_tokens(text, dialect)
    for before, token in itertools.pairwise(tokens):
        if before.token_type is TokenType.SEMICOLON:
            raise TrinityError(
                "SYNTAX_ERROR",
                f"Line {token.line}: a second statement begins at '{token.text}'. session.sql() runs one statement; "
                "use session.script() for several.",
            )
    return text[: tokens[-1].end + 1], tokens


def single(text: str, dialect: str = "spark") -> Statement:
    """Parse exactly one statement; a trailing semicolon and comments are allowed.

    Raises:
        TrinityError: SYNTAX_ERROR with line, column and excerpt, also for no statement or more than one.
    """
    return parse(only_one(text, dialect)[0], dialect)


def parse_tokens(kind: type[exp.Expr], tokens: Sequence[Token], text: str, dialect: str) -> exp.Expr:
    """Return the tree of a part of a statement; positions in it refer to the statement.

    Args:
        kind: the kind of part, ``exp.Condition`` for an expression.
        tokens: the part's tokens.
        text: the text of the whole statement.
        dialect: its dialect.

    Raises:
        TrinityError: SYNTAX_ERROR with line, column and excerpt.
    """
    try:
        (tree,) = _dialect(dialect).parser().parse_into(kind, list(tokens), text)
    except ParseError as error:
        raise _parse_error(error) from error
    except _PARSE_ERRORS as error:
        raise TrinityError("SYNTAX_ERROR", f"The statement cannot be parsed: {error}.") from error
    if tree is None:
        if not tokens:
            raise TrinityError("SYNTAX_ERROR", "The text is empty, and an expression is expected.")
        raise TrinityError("SYNTAX_ERROR", f"Line {tokens[0].line}: an expression is expected at '{tokens[0].text}'.")
    return tree


def expression_tree(text: str) -> exp.Expr:
    """Return the tree of an expression of Spark SQL. It is cached and shared, so it must not be changed.

    Raises:
        TrinityError: SYNTAX_ERROR with line, column and excerpt.
    """
    return _cached_tree(text) if len(text) <= _CACHED_LENGTH else _cached_tree.__wrapped__(text)


_CACHED_LENGTH: Final = 2_000
"""Maximum characters of a text whose tree is cached: the tree of a longer text may take much memory."""


@lru_cache(maxsize=256)
@deep_recursion()
def _cached_tree(text: str) -> exp.Expr:
    tokens = tokenize(text)
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise TrinityError("SYNTAX_ERROR", "An expression has no semicolon.")  # Spark, which gets its text, refuses it
    return parse_tokens(exp.Condition, tokens, text, "spark")


def expression_or_none(text: str) -> exp.Expr | None:
    """Return the tree of an expression, as :func:`expression_tree`; None for a text that is no expression."""
    with ignoring("SYNTAX_ERROR"):
        return expression_tree(text)
    return None


def parse(text: str, dialect: str = "spark") -> Statement:
    """Parse the text of one statement. Raises SYNTAX_ERROR with line, column and excerpt."""
    tokens = tokenize(text, dialect)
    if dialect == "spark" and tokens and tokens[0].token_type is TokenType.TABLE:  # the query TABLE t
        return parse(f"SELECT * FROM{text[tokens[0].end + 1 :]}", dialect)
    if dialect == "spark":
        _refuse_inner_table(tokens)
    try:
        lexer, as_text = _dialect(dialect), bool(tokens) and tokens[0].token_type in _KEPT_AS_TEXT
        (tree,) = lexer.parse(text) if as_text else lexer.parser().parse(tokens, text)
    except ParseError as error:
        raise _parse_error(error) from error
    except _PARSE_ERRORS as error:
        raise TrinityError("SYNTAX_ERROR", f"The statement cannot be parsed: {error}.") from error
    if tree is None:
        raise TrinityError("SYNTAX_ERROR", "There is no statement in the text.")
    return Statement(text, dialect, tree, tuple(tokens))


_QUERY_STARTS: Final = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES, TokenType.L_PAREN)


def _refuse_inner_table(tokens: list[Token]) -> None:
    """Refuse the query TABLE t inside of another query, which sqlglot reads as a column named TABLE."""
    if tokens and tokens[0].token_type in _QUERY_STARTS and not any(t.token_type is TokenType.INSERT for t in tokens):
        for token in tokens:
            if token.token_type is TokenType.TABLE:
                raise TrinityError("SYNTAX_ERROR", f"Line {token.line}: write SELECT * FROM instead of TABLE.")


def _parse_error(error: ParseError) -> TrinityError:
    if not error.errors:
        return TrinityError("SYNTAX_ERROR", f"The statement cannot be parsed: {error}.")
    first = error.errors[0]
    before = (first.get("start_context") or "")[-40:].replace("\n", " ")
    after = (first.get("end_context") or "")[:20].replace("\n", " ")
    excerpt = f"{before}>>>{first.get('highlight') or ''}<<<{after}".strip()
    what = str(first.get("description") or "unexpected text").rstrip(".")
    what = re.sub(r"^Required keyword: .*", MISSING, what)
    return TrinityError("SYNTAX_ERROR", f"Line {first.get('line')}, column {first.get('col')}: {what} at: {excerpt}")


def _token_error(text: str, error: TokenError) -> TrinityError:
    unclosed = re.search(r"Missing (.+) from (\d+):(\d+)", str(error.__cause__ or error))
    if unclosed is None:
        return TrinityError("SYNTAX_ERROR", f"The statement cannot be read: {error}.")
    # sqlglot gives the line where the unfinished token ends, and no usable column
    line = text.count("\n", 0, max(text.rfind(unclosed[1]), 0)) + 1
    return TrinityError(
        "SYNTAX_ERROR", f"Line {line}: text in {unclosed[1]} is not closed; add the missing {unclosed[1]}."
    )


_QUERIES: Final = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "MAP", "REDUCE")
_STATEMENTS: Final = (
    *_QUERIES, "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "REPLACE", "CREATE", "ALTER", "DROP", "COMMENT",
    "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "USE", "SET", "RESET", "DECLARE", "CALL", "DO", "PREPARE", "EXECUTE",
    "DEALLOCATE", "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "LOCK", "UNLOCK",
    "GRANT", "REVOKE", "DENY", "ANALYZE", "REFRESH", "REINDEX", "CLUSTER", "VACUUM", "OPTIMIZE", "RESTORE", "GENERATE",
    "CONVERT", "REORG", "CACHE", "UNCACHE", "CLEAR", "LOAD", "EXPORT", "IMPORT", "COPY", "MSCK", "REPAIR", "ADD",
    "LIST", "DFS", "LISTEN", "UNLISTEN", "NOTIFY", "DISCARD", "CHECKPOINT", "CLOSE", "FETCH", "MOVE", "REASSIGN",
    "SECURITY", "ATTACH", "DETACH", "INSTALL", "FORCE", "PRAGMA", "SUMMARIZE", "PIVOT", "UNPIVOT", "KILL",
)  # fmt: skip
"""First words of statements of Spark with Delta and Iceberg, Trino, PostgreSQL and DuckDB; common ones first."""


def check_first_word(tokens: Sequence[Token]) -> None:
    """Raise SYNTAX_ERROR for a first word that begins no statement; the message suggests the nearest known word."""
    first = next((n for n, t in enumerate(tokens) if t.token_type is not TokenType.L_PAREN), len(tokens) - 1)
    known, what = (_QUERIES, "query") if first else (_STATEMENTS, "statement")
    token = tokens[first]
    word = token.text.split()[0] if token.text.split() else token.text  # ADD JAR is one token
    if word.upper() not in known:
        raise TrinityError(
            "SYNTAX_ERROR", f"Line {token.line}: '{shown_value(word)}' begins no {what}.{nearest(word.upper(), known)}"
        )

"""MERGE, UPDATE and DELETE as written: clauses parsed, expressions still text. Tables are not looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from sqlglot import exp

from trinity.engine.program import When
from trinity.errors import TrinityError
from trinity.spi import Operation
from trinity.syntax.parse import parse, tokenize
from trinity.syntax.quoting import quoted
from trinity.syntax.reader import Piece, Reader


@dataclass(frozen=True)
class CommonTable:
    """One query of a leading WITH.

    Attributes:
        name: its name.
        columns: names for its columns; empty to keep the query's own names.
        body: the query.
        recursive: True under WITH RECURSIVE.
    """

    name: str
    columns: tuple[str, ...]
    body: Piece
    recursive: bool

    @property
    def text(self) -> str:
        """The text of the query in a WITH: name, columns, AS, body."""
        columns = f" ({', '.join(map(self._quoted, self.columns))})" if self.columns else ""
        return f"{self.quoted_name}{columns} AS ({self.body.text})"

    @property
    def quoted_name(self) -> str:
        """The name, quoted in the statement's dialect."""
        return self._quoted(self.name)

    @property
    def rows(self) -> str:
        """A query of its rows in the statement's dialect. Unless it is recursive, ``columns`` are not applied."""
        return f"WITH RECURSIVE {self.text} SELECT * FROM {self.quoted_name}" if self.recursive else self.body.text

    def _quoted(self, name: str) -> str:
        return quoted(name) if self.body.dialect == "spark" else '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Clause:
    """One WHEN clause.

    Attributes:
        when: which rows the clause is about.
        operation: what it does to them; None for DO NOTHING.
        condition: the condition after AND.
        columns: the assigned columns as written, qualifiers included; None for all columns in the table's order.
        values: one for each column; None for SET * and INSERT *.
        by_name: True for INSERT BY NAME, which takes the columns that the source has.
    """

    when: When
    operation: Operation | None
    condition: Piece | None = None
    columns: tuple[tuple[str, ...], ...] | None = None
    values: tuple[Piece, ...] | None = None
    by_name: bool = False


@dataclass(frozen=True)
class RowChange:
    """One MERGE, UPDATE or DELETE.

    Attributes:
        statement: its first word.
        target: parts of the target's name.
        alias: the target's alias; None without one.
        tables: the queries of a leading WITH.
        source: the source after USING or FROM; None without one.
        on: the join condition of MERGE; the WHERE of UPDATE and DELETE; None without one.
        clauses: the WHEN clauses; the only clause of UPDATE or DELETE.
        using: the columns of MERGE's USING (...) after the source, instead of a condition.
        evolves: True for MERGE WITH SCHEMA EVOLUTION.
    """

    statement: Literal["MERGE", "UPDATE", "DELETE"]
    target: tuple[str, ...]
    alias: str | None
    tables: tuple[CommonTable, ...]
    source: Piece | None
    on: Piece | None
    clauses: tuple[Clause, ...]
    using: tuple[str, ...] = ()
    evolves: bool = False


_WORDS: Final = ("MERGE", "UPDATE", "DELETE", "TRUNCATE")
_TRAVEL: Final = ("VERSION AS OF", "TIMESTAMP AS OF", "FOR VERSION", "FOR TIMESTAMP", "FOR SYSTEM_VERSION",
                  "FOR SYSTEM_TIME", "SYSTEM_VERSION AS OF", "SYSTEM_TIME AS OF", "@")  # fmt: skip
_AFTER_TARGET: Final = ("PARTITION", "TABLESAMPLE")


def row_change_word(piece: Piece) -> str | None:
    """Return MERGE, UPDATE, DELETE or TRUNCATE for such a statement, also after a WITH; None for any other."""
    reader = Reader(piece)
    try:
        common_tables(reader)
    except TrinityError:
        return None
    return next((word for word in _WORDS if reader.words(word)), None)


def common_tables(reader: Reader) -> tuple[CommonTable, ...]:
    """Step over a leading WITH, and return its queries. Raise SYNTAX_ERROR."""
    if not reader.take("WITH"):
        return ()
    recursive = reader.take("RECURSIVE")
    found: list[CommonTable] = []
    while True:
        (name,) = reader.name("the name of a WITH query")[:1]
        columns: tuple[str, ...] = ()
        if reader.opens():
            columns = tuple(Reader(p).name()[0] for p in Reader(reader.inside("a column name")).commas("a column name"))
        reader.expect("AS")
        _ = reader.take("NOT", "MATERIALIZED") or reader.take("MATERIALIZED")
        found.append(CommonTable(name, columns, reader.inside("a query"), recursive))
        if not reader.take(","):
            return tuple(found)


def target(reader: Reader, *keywords: str) -> tuple[tuple[str, ...], str | None]:
    """Step over the target's name and alias, and return them; None for no alias. ``keywords`` are no aliases.

    Raises:
        TrinityError: NOT_SUPPORTED for time travel, a partition or a branch; SYNTAX_ERROR.
    """
    name = reader.name("the name of a table")
    reader.refuse(_TRAVEL, "only the newest version of a table can be changed.")
    reader.refuse(_AFTER_TARGET, "choose the rows by a condition.")
    alias = reader.alias(*keywords)
    reader.refuse(_TRAVEL, "only the newest version of a table can be changed.")
    if alias is not None and reader.opens():
        raise TrinityError("NOT_SUPPORTED", f"Alias '{alias}': a target's columns cannot be renamed; use their names.")
    return name, alias


def assignments(piece: Piece) -> tuple[tuple[tuple[str, ...], ...], tuple[Piece, ...]]:
    """Return columns and values of ``a = 1, t.b = 2, (c, d) = (3, 4)``. Raise SYNTAX_ERROR, NOT_SUPPORTED."""
    columns: list[tuple[str, ...]] = []
    values: list[Piece] = []
    for part in Reader(piece).commas("an assignment"):
        reader = Reader(part)
        if reader.opens():
            names, parts = _row_assignment(reader)
            columns += names
            values += parts
        else:
            columns.append(reader.name("a column"))
            reader.expect("=")
            values.append(reader.rest("a value"))
    return tuple(columns), tuple(values)


def _row_assignment(reader: Reader) -> tuple[list[tuple[str, ...]], list[Piece]]:
    """Return columns and values of ``(a, b) = (1, 2)``."""
    names = column_list(reader.inside("a column"))
    reader.expect("=")
    reader.take("ROW")
    if not reader.opens():
        raise reader.unexpected("'('")
    inner = reader.inside("a value")
    if not reader.done:
        raise reader.unexpected("','")
    if Reader(inner).words("SELECT") or Reader(inner).words("WITH"):
        return names, _subqueries_of_row(inner, len(names))
    values = Reader(inner).commas("a value")
    if len(values) != len(names):
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"SET ({', '.join(n[-1] for n in names)}) names {len(names)} columns and has {len(values)} values.",
        )
    return names, values


def _subqueries_of_row(query: Piece, count: int) -> list[Piece]:
    """Return the values that ``(a, b) = (query)`` assigns: for each column a subquery that selects it."""
    tree = parse(query.text, query.dialect).tree
    given = tree.expressions if isinstance(tree, exp.Select) and not tree.is_star else None
    if given is not None and len(given) != count:
        raise TrinityError(
            "INVALID_ARGUMENTS", f"SET names {count} columns, and the query beside them has {len(given)}."
        )
    columns = [f"_trinity_value_{number}" for number in range(count)]
    listed = ", ".join(columns)
    texts = [f"(SELECT {column} FROM ({query.text}) AS _trinity_row ({listed}))" for column in columns]
    return [Piece(text, query.dialect, tuple(tokenize(text, query.dialect))) for text in texts]


def column_list(piece: Piece) -> list[tuple[str, ...]]:
    """Return the names of ``a, t.b``. Raise SYNTAX_ERROR."""
    found: list[tuple[str, ...]] = []
    for part in Reader(piece).commas("a column"):
        reader = Reader(part)
        found.append(reader.name("a column"))
        if not reader.done:
            raise reader.unexpected("','")
    return found


_REFUSED: Final = ("RETURNING", "ORDER BY", "LIMIT", "WHERE CURRENT OF")
_ADVICE: Final = "the statement ends with its WHERE."


def read_update(reader: Reader, tables: tuple[CommonTable, ...]) -> RowChange:
    """Read UPDATE t [[AS] a] SET assignments [FROM source] [WHERE condition].

    Raises:
        TrinityError: SYNTAX_ERROR; NOT_SUPPORTED for RETURNING, LIMIT and the like.
    """
    reader.expect("UPDATE")
    reader.refuse_anywhere(_REFUSED, _ADVICE)
    name, alias = target(reader, "SET")
    reader.expect("SET")
    columns, values = assignments(reader.until("FROM", "WHERE", wanted="an assignment"))
    source = reader.until("WHERE", wanted="a source") if reader.take("FROM") else None
    clause = Clause(When.MATCHED, Operation.UPDATE, None, columns, values)
    return RowChange("UPDATE", name, alias, tables, source, _where(reader), (clause,))


def read_delete(reader: Reader, tables: tuple[CommonTable, ...]) -> RowChange:
    """Read DELETE FROM t [[AS] a] [USING source] [WHERE condition]. Arguments and errors as for :func:`read_update`."""
    reader.expect("DELETE")
    reader.refuse_anywhere(_REFUSED, _ADVICE)
    reader.expect("FROM")
    name, alias = target(reader, "USING", "WHERE")
    source = reader.until("WHERE", wanted="a source") if reader.take("USING") else None
    clause = Clause(When.MATCHED, Operation.DELETE)
    return RowChange("DELETE", name, alias, tables, source, _where(reader), (clause,))


def _where(reader: Reader) -> Piece | None:
    if reader.done:
        return None
    reader.expect("WHERE")
    return reader.rest("a condition")


def read_truncate(reader: Reader) -> tuple[str, ...]:
    """Read TRUNCATE [TABLE] t, and return the name. Raise SYNTAX_ERROR; NOT_SUPPORTED for anything after the name."""
    reader.expect("TRUNCATE")
    reader.take("TABLE")
    name = reader.name("the name of a table")
    if not reader.done:
        reader.refuse(("PARTITION",), "delete a partition's rows with DELETE ... WHERE.")
        rest = reader.rest("the end").text
        raise TrinityError("NOT_SUPPORTED", f"TRUNCATE takes the name of one table, and no '{rest}'.")
    return name

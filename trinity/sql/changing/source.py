"""The source of a MERGE, UPDATE ... FROM or DELETE ... USING: one frame, and the names of its columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from sqlglot import exp

from trinity.errors import TrinityError
from trinity.sql.changing.scope import Relation, ResolvedColumn, Side, name_suffixes
from trinity.sql.queries.query import run_text
from trinity.sql.queries.reads import Reads
from trinity.sql.queries.references import apply_edits, joined_nodes
from trinity.syntax.parse import Statement
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


UNNAMED: Final = "_trinity_source"
Types: TypeAlias = Sequence[tuple[str, str]]
"""(name, Spark's type) of columns."""


@dataclass(frozen=True)
class MergeSource:
    """The source of a statement.

    Attributes:
        rows: its rows: of Spark, or in this process.
        side: the names of its columns.
        chars: as ``chars`` of :class:`~trinity.engine.program.Program`.
    """

    rows: DataFrame | pa.Table
    side: Side
    chars: Mapping[str, str] = field(default_factory=dict)


def read_source(reads: Reads, statement: Statement, target_alias: str) -> MergeSource:
    """Run ``SELECT * FROM`` the source in Spark, under an alias that differs from the target's.

    Raises:
        TrinityError: the errors of :meth:`trinity.Session.sql` for a query; INVALID_ARGUMENTS when the target has
            the same alias.
    """
    references = reads.references(statement)
    text = apply_edits(statement.text, reads.edits(statement, references))
    assert isinstance(statement.tree, exp.Select)
    nodes = joined_nodes(statement.tree)
    check_aliases(nodes, target_alias)
    full = {id(r.node): r.full for r in references}
    names = [names_of(node, full) for node in nodes]
    if len(nodes) > 1:
        aliases = [n.alias_or_name for n in nodes]
        join = joined(text, aliases, names, lambda query: run_text(reads.session, query).dtypes)
        return MergeSource(run_text(reads.session, join.text), join.side)
    rows = run_text(reads.session, text)
    alias = alias_of(nodes[0], target_alias)
    columns = _columns(rows.dtypes, alias)
    return MergeSource(rows, Side("source", alias, (Relation(names[0], columns),), columns))


def check_aliases(nodes: Sequence[exp.Expr], target_alias: str) -> None:
    """Refuse a source whose alias is the target's. Raises INVALID_ARGUMENTS."""
    for node in nodes:
        if node.alias and node.alias.lower() == target_alias.lower():
            raise TrinityError("INVALID_ARGUMENTS", f"'{node.alias}' names target and source; give one another alias.")


def alias_of(node: exp.Expr, target_alias: str) -> str:
    """Return an alias for a source of one table that differs from the target's."""
    name = node.alias_or_name
    return name if name and name.lower() != target_alias.lower() else UNNAMED


def names_of(node: exp.Expr, full: Mapping[int, tuple[str, str, str]]) -> frozenset[tuple[str, ...]]:
    """Return the qualifiers that may name a table or a query in FROM.

    ``full`` has the full names of tables, by the ids of their nodes.
    """
    if node.alias:
        return frozenset({(node.alias.lower(),)})
    if isinstance(node, exp.Table):
        return name_suffixes(full.get(id(node), tuple(p.name for p in node.parts)))
    return frozenset()


def _columns(types: Types, alias: str) -> dict[str, ResolvedColumn]:
    counted = Counter(name.lower() for name, _ in types)
    found: dict[str, ResolvedColumn] = {}
    for name, kind in types:
        text = f"{quoted(alias)}.{quoted(name)}" if counted[name.lower()] == 1 else None
        found[name.lower()] = ResolvedColumn(text, kind)
    return found


class Joined(NamedTuple):
    """A source that is a join: the ``text`` of its query, and the names of its columns."""

    text: str
    side: Side


def joined(
    text: str, aliases: Sequence[str], names: Sequence[frozenset[tuple[str, ...]]], types: Callable[[str], Types]
) -> Joined:
    """Return a source that is a join. Columns whose name several tables have get a unique name for each table.

    Args:
        text: ``SELECT * FROM`` the join.
        aliases: the alias of each table; empty for a table without one.
        names: the qualifiers of each table.
        types: returns (name, Spark's type) of the columns of a query.
    """
    everything = types(text)
    columns = _columns(everything, UNNAMED)
    parts = [types(_selecting(text, f"{quoted(a)}.*")) if a else [] for a in aliases]
    owners = Counter(name.lower() for part in parts for name, _ in part)
    chosen = [quoted(name) for name, _ in everything if columns[name.lower()].text is not None]
    relations: list[Relation] = []
    for index, part in enumerate(parts):
        known: dict[str, ResolvedColumn] = {}
        for name, kind in part:
            known[name.lower()] = columns.get(name.lower(), _NO_COLUMN)
            if known[name.lower()].text is None or owners[name.lower()] > 1:
                own = f"{UNNAMED}_{index}_{name}"
                chosen.append(f"{quoted(aliases[index])}.{quoted(name)} AS {quoted(own)}")
                known[name.lower()] = ResolvedColumn(f"{quoted(UNNAMED)}.{quoted(own)}", kind)
        relations.append(Relation(names[index], known))
    return Joined(_selecting(text, ", ".join(chosen)), Side("source", UNNAMED, tuple(relations), columns))


_NO_COLUMN: Final = ResolvedColumn(None, "")


def _selecting(text: str, columns: str) -> str:
    """Return ``SELECT * FROM ...`` with a list of columns in place of the star."""
    return text.replace("*", columns, 1)

"""How names in a row-changing statement are resolved to columns of the target or the source (M10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from trinity.errors import TrinityError, nearest
from trinity.sql.queries.references import Edit, Reference, joined_nodes
from trinity.syntax.quoting import quoted

_KEYWORDS: Final = frozenset({
    "user", "current_user", "session_user", "current_date", "current_time", "current_timestamp", "localtimestamp",
    "current_catalog", "current_database", "current_schema", "current_timezone", "year", "quarter", "month", "week",
    "day", "dayofyear", "hour", "minute", "second", "millisecond", "microsecond",
})  # fmt: skip
"""Bare words that Spark takes for a function or a unit of time if no column has that name."""


@dataclass(frozen=True)
class ResolvedColumn:
    """A column with its name in the engine's expressions.

    Attributes:
        text: the qualified name in Spark's SQL; None when several columns have the name.
        type: Spark's text of its type.
    """

    text: str | None
    type: str


@dataclass(frozen=True)
class Relation:
    """A table, view or query, with the names that may qualify its columns.

    Attributes:
        names: qualifiers in lower case, of one to three parts.
        columns: column name in lower case -> column, in order.
    """

    names: frozenset[tuple[str, ...]]
    columns: Mapping[str, ResolvedColumn]


@dataclass(frozen=True)
class Side:
    """One side of a row-changing statement: its target or its source.

    Attributes:
        word: ``target`` or ``source``.
        alias: its alias in the engine's expressions.
        relations: its tables, views and queries; the source may be a join.
        columns: columns that an unqualified name may mean.
    """

    word: str
    alias: str
    relations: tuple[Relation, ...]
    columns: Mapping[str, ResolvedColumn]

    def relation(self, qualifier: tuple[str, ...]) -> Relation | None:
        """Return the relation that a qualifier names; None if there is none."""
        return next((r for r in self.relations if qualifier in r.names), None)


def name_suffixes(parts: Sequence[str]) -> frozenset[tuple[str, ...]]:
    """Return the qualifiers that may name a table: the last one, two or three parts of its full name."""
    lower = tuple(p.lower() for p in parts)
    return frozenset(lower[i:] for i in range(len(lower)))


@dataclass(frozen=True)
class Scope:
    """The meaning of names in one clause.

    Attributes:
        clause: the keywords of the clause, for messages.
        sides: the sides whose rows the clause has.
        absent: the sides whose rows it lacks; only error messages need them.
        assigned: the column, lower case, that an expression sets, as in ``SET v = v + 1``: there its bare name means
            the target's column, even if the source has one of that name.
    """

    clause: str
    sides: tuple[Side, ...]
    absent: tuple[Side, ...] = field(default=())
    assigned: str = ""

    def find(self, parts: Sequence[str]) -> tuple[int, ResolvedColumn] | None:
        """Return (number of parts that name the column, the column); further parts are fields of it.

        None for a name that Spark resolves.

        Raises:
            TrinityError: COLUMN_NOT_FOUND; INVALID_ARGUMENTS for an ambiguous name.
        """
        for length in (3, 2, 1):
            if len(parts) > length and (found := self.qualified(parts, length)) is not None:
                return length + 1, found
        found = self._bare(parts[0])
        if found is not None:
            return 1, found
        if len(parts) == 1 and parts[0].lower() in _KEYWORDS:
            return None
        raise self._unknown(parts)

    def text(self, name: str) -> str:
        """Return the text that names a column in the engine's expressions. Errors as for :meth:`find`."""
        found = self._bare(name)
        if found is None or found.text is None:
            raise self._unknown([name])
        return found.text

    def type_of(self, column: exp.Column) -> str | None:
        """Return Spark's text of a column's type; None for a field, and if unknown. Errors as for :meth:`find`."""
        if isinstance(column.this, exp.Star):
            return None
        found = self.find([p.name for p in column.parts])
        return found[1].type if found is not None and found[0] == len(column.parts) else None

    def qualified(self, parts: Sequence[str], length: int) -> ResolvedColumn | None:
        """Return the column whose qualifier is the first ``length`` parts. Errors as for :meth:`find`."""
        qualifier, name = tuple(p.lower() for p in parts[:length]), parts[length].lower()
        shown = ".".join(parts[: length + 1])
        hits = [s for s in self.sides if (r := s.relation(qualifier)) is not None and name in r.columns]
        if len(hits) > 1:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"{self.clause}: '{shown}' is ambiguous: target and source have the same name; give one an alias.",
            )
        if not hits:
            self._refuse_absent(qualifier, name, shown)
            return None
        relation = hits[0].relation(qualifier)
        assert relation is not None
        return self._single(relation.columns[name], shown)

    def _bare(self, name: str) -> ResolvedColumn | None:
        hits = [s for s in self.sides if name.lower() in s.columns]
        if len(hits) > 1 and name.lower() == self.assigned:
            hits = [s for s in hits if s.word == "target"]
        if len(hits) > 1:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"{self.clause}: column '{name}' is ambiguous: the target has it and the source, too. Write "
                f"{' or '.join(quoted(s.alias) + '.' + quoted(name) for s in hits)}.",
            )
        if not hits:
            self._refuse_absent(None, name.lower(), name)
            return None
        return self._single(hits[0].columns[name.lower()], name)

    def _single(self, found: ResolvedColumn, shown: str) -> ResolvedColumn:
        if found.text is None:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                f"{self.clause}: column '{shown}' is ambiguous: the source has several of that name; qualify or rename "
                "them.",
            )
        return found

    def _refuse_absent(self, qualifier: tuple[str, ...] | None, name: str, shown: str) -> None:
        for side in self.absent:
            relation = side.relation(qualifier) if qualifier else None
            columns = relation.columns if relation else side.columns if qualifier is None else {}
            if name in columns:
                raise TrinityError(
                    "COLUMN_NOT_FOUND",
                    f"{self.clause}: column '{shown}' is the {side.word}'s, and there is no {side.word} row here.",
                )

    def _unknown(self, parts: Sequence[str]) -> TrinityError:
        shown = ".".join(parts)
        for side in self.sides:
            relation = side.relation((parts[0].lower(),)) if len(parts) > 1 else None
            if relation is not None:
                known = list(relation.columns)
                return TrinityError(
                    "COLUMN_NOT_FOUND",
                    f"{self.clause}: '{parts[0]}' has no column '{parts[1]}'.{nearest(parts[1].lower(), known)} "
                    f"It has: {', '.join(known)}.",
                )
        columns = [c for s in self.sides for c in s.columns]
        if len(parts) > 1:
            names = sorted({".".join(n) for s in self.sides for r in s.relations for n in r.names if len(n) == 1})
            return TrinityError(
                "COLUMN_NOT_FOUND",
                f"{self.clause}: there is no column '{shown}'. Columns can be qualified with: {', '.join(names)}.",
            )
        return TrinityError(
            "COLUMN_NOT_FOUND",
            f"{self.clause}: there is no column '{shown}'.{nearest(shown.lower(), columns)} There are: "
            f"{', '.join(dict.fromkeys(columns))}.",
        )

    def edits(self, tree: exp.Expr, references: Sequence[Reference]) -> Iterator[Edit]:
        """Yield edits that qualify the columns of an expression in Spark's dialect; positions are the tree's.

        Raises:
            TrinityError: as :meth:`find`; NOT_SUPPORTED for ``*``.
        """
        # for a chain of n terms, searching upwards from each node for a query would take n * n steps
        own = {id(node) for node in tree.dfs(prune=lambda node: isinstance(node, exp.Query))}
        for star in tree.find_all(exp.Star):
            if not isinstance(star.parent, (exp.Count, exp.Column)) and id(star) in own:
                raise TrinityError("NOT_SUPPORTED", f"{self.clause}: '*' is not supported here; name the columns.")
        for column in tree.find_all(exp.Column):
            parts = column.parts
            if not all("start" in p.meta for p in parts if not isinstance(p, exp.Star)):
                continue
            if id(column) not in own:
                yield from self._outer(column, references)
            elif isinstance(column.this, exp.Star):
                yield self._star(column)
            elif (found := self.find([p.name for p in parts])) is not None:
                yield _edit(parts, found)

    def _star(self, column: exp.Column) -> Edit:
        """Return the edit of ``s.*`` to a list of columns: the engine's DataFrames have further ones."""
        parts = column.parts[:-1]
        names = tuple(p.name.lower() for p in parts)
        relation = next((r for s in self.sides if (r := s.relation(names)) is not None), None)
        if relation is None:
            raise self._unknown([p.name for p in parts] + ["*"])
        texts = [self._single(c, name).text for name, c in relation.columns.items()]
        end = parts[-1].meta["end"] + 1
        return parts[0].meta["start"], end + 2, ", ".join(t for t in texts if t)

    def _outer(self, column: exp.Column, references: Sequence[Reference]) -> Iterator[Edit]:
        """Yield the edit of a subquery's column, if it is qualified with the name of the target or the source."""
        parts = column.parts
        names = [p.name for p in parts]
        for length in range(len(parts) - 1, 0, -1):
            qualifier = tuple(n.lower() for n in names[:length])
            if isinstance(column.this, exp.Star) or _is_inner(column, qualifier, references):
                return
            found = self.qualified(names, length)
            if found is not None:
                yield _edit(parts, (length + 1, found))
                return


def _edit(parts: Sequence[exp.Expr], found: tuple[int, ResolvedColumn]) -> Edit:
    count, column = found
    assert column.text is not None
    return parts[0].meta["start"], parts[count - 1].meta["end"] + 1, column.text


def _is_inner(column: exp.Column, qualifier: tuple[str, ...], references: Sequence[Reference]) -> bool:
    """Return True when a subquery around the column has a table of that name."""
    full = {id(r.node): r.full for r in references}
    select = column.find_ancestor(exp.Select)
    while select is not None:
        for relation in joined_nodes(select):
            if relation.alias:
                names: frozenset[tuple[str, ...]] = frozenset({(relation.alias.lower(),)})
            elif isinstance(relation, exp.Table):
                names = name_suffixes(full.get(id(relation), [p.name for p in relation.parts]))
            else:
                continue
            if qualifier in names:
                return True
        select = select.find_ancestor(exp.Select)
    return False

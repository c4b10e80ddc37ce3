"""The fold of the engines that merge column by column: partial-update (P1, G1-G7) and aggregation (E1).

All expressions are Spark SQL over the row versions of a key. First the rows get their fold order, and those before the
last cut are left out (:meth:`ColumnFold.contributions`). Then one aggregation by key folds them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from trinity.hidden import ARRIVAL, FITS, FOLD_ORDER, KIND, VISIBLE
from trinity.merge.functions import AggregateFunction, Field, FieldFunction, aggregate_function
from trinity.merge.properties import MergeEngine
from trinity.merge.row_kinds import FoldKind, StoredKind, is_retract
from trinity.merge.spec import MergeSpec, SequenceGroup
from trinity.merge.sql.groups import GroupFold, takes_part
from trinity.merge.sql.removal import kept_after_removal
from trinity.merge.sql.rows import AnyRows, per_key
from trinity.spi import CARRIED, ROW_KIND, Column, DataType, TableDefinition, parse_type
from trinity.syntax.quoting import quoted, text_literal

_CUT_AT: Final = "_trinity_cut"


def _is_flat(kind: DataType) -> bool:
    """Return True for a type that Spark's hash aggregation supports; with others Spark sorts."""
    return kind.is_number or kind.is_datetime or kind.name == "boolean"


def kind_of(spec: MergeSpec, cuts: bool) -> str:
    """Return Spark SQL: a row's :class:`~trinity.merge.row_kinds.FoldKind`; ``cuts`` if it may be a hard delete."""
    found = f"WHEN {ROW_KIND} = {StoredKind.DELETED} THEN {FoldKind.CUT} " if cuts else ""
    if spec.row_kind:
        kind = f"rtrim({quoted(spec.row_kind)})"
        deleted = FoldKind.CUT if spec.remove_on_delete else FoldKind.RETRACT_DELETE
        found += f"WHEN {kind} = '-D' THEN {deleted} WHEN {kind} = '-U' THEN {FoldKind.RETRACT_UPDATE} "
    return f"CASE {found}ELSE {FoldKind.ADD} END" if found else str(FoldKind.ADD)


def _key(spec: MergeSpec) -> str:
    return ", ".join(map(quoted, spec.key))


def _fold_order(spec: MergeSpec) -> str:
    """Return Spark SQL: the fold order: by sequence if there is one, then by arrival; NULL always loses (K3, U8)."""
    if not spec.ordering:
        return ARRIVAL
    way = "DESC" if spec.descending else "ASC"
    order = ", ".join([*(f"{quoted(c)} {way} NULLS FIRST" for c in spec.ordering), ARRIVAL])
    return f"CAST(row_number() OVER (PARTITION BY {_key(spec)} ORDER BY {order}) AS BIGINT)"


@dataclass(frozen=True)
class ColumnFold:
    """The aggregation of one table's rows, as Spark SQL.

    Attributes:
        definition: the table's definition.
        spec: its merge rules.
        omits: False if every row carries all columns of the groups in which it takes part.
        hard_deletes: False if none of the rows can be a hard delete.
        orders: number of a group -> Spark SQL: its fold order as one BIGINT, NULL for rows that take no part in it.
        small: columns whose numbers are so small that no sum over the rows leaves BIGINT.
        raises: True if a value out of range is an error; else it becomes NULL, and :data:`FITS` false (A4).
    """

    definition: TableDefinition
    spec: MergeSpec
    omits: bool = True
    hard_deletes: bool = True
    orders: Mapping[int, str] = dataclasses.field(default_factory=dict)
    small: frozenset[str] = frozenset()
    raises: bool = True

    def contributions(self, versions: AnyRows) -> AnyRows:
        """Return the row versions that still count, with :data:`KIND` and :data:`FOLD_ORDER`.

        Args:
            versions: row versions, with :data:`ARRIVAL`.

        Returns:
            for each key the rows from its last cut on. The cut is among them: it stands for the rows that it removes.
        """
        # few operations: each one on a DataFrame costs every read some milliseconds, however few the rows
        spec = self.spec
        kind = kind_of(spec, self.hard_deletes)
        if spec.row_kind and (spec.ignore_delete or spec.remove_on_delete):
            ignored = is_retract(kind) if spec.ignore_delete else f"{kind} = {FoldKind.RETRACT_UPDATE}"
            versions = versions.where(f"NOT ({ignored})")
        rows = versions.selectExpr("*", f"{kind} AS {KIND}", f"{_fold_order(spec)} AS {FOLD_ORDER}")
        if not self._cuts:
            return rows
        cut = f"max(IF({KIND} = {FoldKind.CUT}, {FOLD_ORDER}, NULL)) OVER (PARTITION BY {_key(spec)}) AS {_CUT_AT}"
        return rows.selectExpr("*", cut).where(f"{_CUT_AT} IS NULL OR {FOLD_ORDER} >= {_CUT_AT}").drop(_CUT_AT)

    @property
    def _cuts(self) -> bool:
        return self.hard_deletes or (self.spec.remove_on_delete and self.spec.row_kind is not None)

    def __call__(self, rows: AnyRows) -> AnyRows:
        """Fold :meth:`contributions` into one row per key: the stored columns, :data:`VISIBLE` and :data:`FITS`."""
        rows = self.counting(rows)
        prepared = [text for group in self._groups.values() for text in group.prepared()]
        prepared += [f"{order} AS {_order(n)}" for n, order in self.orders.items()]
        if prepared:
            rows = rows.selectExpr("*", *prepared)
        states = [f"{state} AS {name}" for name, state in self._states().items()]
        visible = f"true AS {VISIBLE}"
        if self.spec.folds_retracts:
            states.append(f"max({KIND} = {FoldKind.ADD}) AS {VISIBLE}")
            visible = VISIBLE
        found = per_key(rows, self.spec.key, *states)
        return found.selectExpr(*self._results(dict(rows.dtypes)), visible, f"{self._fits()} AS {FITS}")

    def counting(self, rows: AnyRows) -> AnyRows:
        """Return the contributions without cuts, and without what a -D of a sequence group removed (D5)."""
        if self._cuts:
            rows = rows.where(f"{KIND} <> {FoldKind.CUT}")
        removing = self.spec.remove_on_group and self.spec.row_kind
        return kept_after_removal(rows, self.spec, FOLD_ORDER, KIND) if removing else rows

    def not_in(self, dialect: str) -> dict[str, str]:
        """Return column -> name of its function, for the functions that a merge view in a dialect cannot have."""
        folded = self._single.items()
        return {name: function.name for name, (function, field) in folded if not function.said_in(dialect, field)}

    # -- units --------------------------------------------------------------------------------------------

    @cached_property
    def _single(self) -> dict[str, tuple[AggregateFunction, Field]]:
        """Name -> function and field of each column with a fold of its own.

        These are all but key columns, hidden columns, and columns of groups without a function.
        """
        found = {}
        for column in self.definition.visible:
            group = self.spec.group_of(column.name)
            if column.name in self.spec.key or (group and column.name not in self.spec.functions):
                continue
            function = self.spec.functions.get(column.name, FieldFunction("last_non_null_value"))
            known = aggregate_function(function.name)
            assert known is not None
            carries = self._carries(column)
            if known.commutes and column.nullable:  # rows that do not carry the column have NULL, which changes nothing
                carries = "true"
            found[column.name] = known, self._field(column, function, group, carries)
        return found

    def _field(self, column: Column, function: FieldFunction, group: SequenceGroup | None, carries: str) -> Field:
        retract = f"({is_retract(KIND)})"
        when = f"{takes_part(group)} AND {carries}" if group else carries
        retracts = self.spec.folds_retracts
        if function.ignore_retract or self.spec.ignores_retracts(column.name, group):
            when, retracts = f"{when} AND NOT {retract}", False
        return Field(
            name=column.name,
            type=parse_type(column.type),
            value=quoted(column.name),
            order=self._groups[group.sequence].order if group else FOLD_ORDER,
            when=when,
            retract=retract if retracts else "false",
            explicit=self._explicit(column),
            key=self._key_text(),
            retracts=retracts,
            small=column.name in self.small,
            raises=self.raises,
            options=function.options,
        )

    def _mark(self, column: Column) -> str:
        return f"substr({CARRIED}, {self.definition.all_columns.index(column) + 1}, 1)"

    def _explicit(self, column: Column) -> str:
        return f"coalesce({self._mark(column)} = '1', false)"

    def _carries(self, column: Column) -> str:
        return f"({CARRIED} IS NULL OR {self._mark(column)} <> '0')"

    def _key_text(self) -> str:
        parts = [f"concat({text_literal(k + ' = ')}, CAST({quoted(k)} AS STRING))" for k in self.definition.primary_key]
        return f"concat_ws(', ', {', '.join(parts)})"

    def _states(self) -> dict[str, str]:
        """Return name of a state -> aggregate expression."""
        found = {name: state for group in self._groups.values() for name, state in group.states().items()}
        for n, (name, (function, field)) in enumerate(self._single.items()):
            found[_column(n)] = self._ordering_state(name) or function.aggregate(field)
        return found

    @cached_property
    def _groups(self) -> dict[tuple[str, ...], GroupFold]:
        """Sequence columns -> the fold of their group."""
        return {
            group.sequence: GroupFold(
                number=n,
                group=group,
                plain=tuple(c for c in group.protected if c not in self.spec.functions),
                fold_order=FOLD_ORDER,
                key=_key(self.spec),
                retract=is_retract(KIND) if self.spec.folds_retracts else None,
                carries=(lambda name: self._carries(self.definition.column(name))) if self.omits else None,
                packed=_order(n) if n in self.orders else None,
                flat=all(_is_flat(parse_type(self.definition.column(c).type)) for c in group.columns),
            )
            for n, group in enumerate(self.spec.groups)
        }

    def _ordering_state(self, name: str) -> str | None:
        """Return the state of an aggregation table's sequence column: the value of the last row, retract or not."""
        if name not in self.spec.ordering or self.spec.engine is not MergeEngine.AGGREGATION:
            return None
        return f"max_by({quoted(name)}, {FOLD_ORDER})"

    def _results(self, kinds: Mapping[str, str]) -> list[str]:
        found: dict[str, str] = {}
        for group in self._groups.values():
            found |= group.results()
        for n, (name, (function, field)) in enumerate(self._single.items()):
            found[name] = function.result(field, _column(n))
        for key in self.spec.key:
            found[key] = quoted(key)
        return [
            f"CAST({found.get(c.name, 'NULL')} AS {kinds[c.name]}) AS {quoted(c.name)}" for c in self.definition.columns
        ]

    def _fits(self) -> str:
        checks = [function.fits(field, _column(n)) for n, (function, field) in enumerate(self._single.values())]
        return " AND ".join(c for c in checks if c) or "true"


def _column(number: int) -> str:
    return f"_trinity_column_{number}"


def _order(number: int) -> str:
    return f"_trinity_order_{number}"

"""The fold of the engines that merge column by column: partial-update (P1, G1-G7) and aggregation (E1), in Arrow.

Rows are never moved once they are in fold order: each step computes a mask, a number for each row, or for each key the
row from which a column takes its value. Only functions whose steps depend on the step before go row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trinity.arrays import as_arrow, as_numpy, valid, where_true
from trinity.errors import TrinityError
from trinity.hidden import ARRIVAL, SINCE
from trinity.merge.arrow.groups import GroupFold
from trinity.merge.arrow.removal import Removal, kept_after_removal
from trinity.merge.functions import AggregateFunction, FieldFunction, aggregate_function
from trinity.merge.kernels.keys import Keys, canonical_floats
from trinity.merge.kernels.order import FoldOrder, order_codes
from trinity.merge.kernels.rows import ColumnRows, Folded, picked
from trinity.merge.properties import MergeEngine
from trinity.merge.row_kinds import FoldKind, StoredKind
from trinity.merge.sidecar import SIDECAR_ROWS, Retention
from trinity.merge.spec import MergeSpec, SequenceGroup
from trinity.messages import shown_row
from trinity.spi import CARRIED, ROW_KIND, Column, TableDefinition, parse_type


@dataclass(frozen=True)
class Contributions:
    """Row versions in fold order, and those of them that still count.

    Attributes:
        rows: the row versions.
        kinds: the :class:`~trinity.merge.row_kinds.FoldKind` of each row.
        fold_order: their fold order.
        counted: mask of the rows of a key from its last cut on, with the cut.
        removal: the result of removal by groups; None before it, and without it.
    """

    rows: pa.Table
    kinds: np.ndarray
    fold_order: FoldOrder
    counted: np.ndarray
    removal: Removal | None = None

    @cached_property
    def values(self) -> dict[str, pa.Array]:
        """Column -> its values."""
        return {name: self.rows.column(name).combine_chunks() for name in self.rows.column_names}


@dataclass(frozen=True)
class Rewritten:
    """The rows that a compaction makes of row versions, in storage form.

    Attributes:
        base: a folded row for each visible key.
        left: row versions that stay in the log: those of keys with a value out of range, in fold order, without the
            ones in the sidecar (A4).
        sidecar_rows: row versions that later rows still have to be folded with, with ``SINCE`` and ``ARRIVAL`` (E3).
    """

    base: pa.Table
    left: pa.Table
    sidecar_rows: pa.Table


@dataclass(frozen=True)
class ColumnFold:
    """The fold of one table's rows as Arrow data; ``columns`` are the wanted visible columns, None for all."""

    definition: TableDefinition
    spec: MergeSpec
    columns: Sequence[str] | None = None

    @property
    def reads(self) -> list[str]:
        """The columns that the fold reads, as far as the table stores them."""
        spec, wanted = self.spec, [column.name for column in self._wanted]
        groups = [group for name in wanted if (group := spec.group_of(name))]
        marks = [CARRIED, ROW_KIND, *([spec.row_kind] if spec.row_kind else [])]
        sequences = [name for group in (*groups, *spec.remove_on_group) for name in group.sequence]
        return list(dict.fromkeys((*spec.key, *spec.ordering, *marks, *sequences, *wanted)))

    def not_in_arrow(self) -> dict[str, str]:
        """Return wanted column -> why its function cannot be folded in Arrow; other columns are absent."""
        found = {}
        for column in self._wanted:
            given = self.spec.functions.get(column.name)
            function = aggregate_function(given.name) if given else None
            if given and function and (why := function.not_in_arrow(parse_type(column.type), given.options)):
                found[column.name] = f"{given.name} {why}"
        return found

    def contributions(self, versions: pa.Table) -> Contributions:
        """Return the row versions in fold order. ``versions`` are in arrival order, without NULL in their keys."""
        spec = self.spec
        kinds = self.kinds(versions)
        if spec.row_kind and (spec.ignore_delete or spec.remove_on_delete):
            ignored = _is_retract(kinds) if spec.ignore_delete else kinds == FoldKind.RETRACT_UPDATE
            versions, kinds = versions.filter(as_arrow(~ignored)), kinds[~ignored]
        if spec.ordering:
            order = self._by_sequence(versions)
            versions, kinds = versions.take(as_arrow(order)), kinds[order]
        keys, numbers = Keys.of(versions, spec.key)
        fold_order = FoldOrder(numbers, len(keys))
        cut = fold_order.last(kinds == FoldKind.CUT)
        return Contributions(versions, kinds, fold_order, np.arange(len(kinds)) >= cut[numbers])

    def kinds(self, versions: pa.Table) -> np.ndarray:
        """Return the :class:`~trinity.merge.row_kinds.FoldKind` of each row version."""
        kinds = np.full(len(versions), FoldKind.ADD, np.int8)
        if self.spec.row_kind:
            row_kinds = pc.utf8_rtrim(versions.column(self.spec.row_kind).combine_chunks(), " ")
            deleted = FoldKind.CUT if self.spec.remove_on_delete else FoldKind.RETRACT_DELETE
            kinds[where_true(pc.equal(row_kinds, "-D"))] = deleted
            kinds[where_true(pc.equal(row_kinds, "-U"))] = FoldKind.RETRACT_UPDATE
        if ROW_KIND in versions.column_names:
            stored = versions.column(ROW_KIND).combine_chunks()
            kinds[where_true(pc.equal(stored, pa.scalar(StoredKind.DELETED, stored.type)))] = FoldKind.CUT
        return kinds

    def _by_sequence(self, versions: pa.Table) -> np.ndarray:
        """Return indices that sort row versions by sequence, then arrival; NULL always loses (K3, U8)."""
        codes = []
        for name in self.spec.ordering:
            values = versions.column(name).combine_chunks()
            codes.append(order_codes(values, descending=self.spec.descending))
        return np.lexsort(tuple(reversed(codes)))

    def counting(self, given: Contributions) -> Contributions:
        """Return the contributions without cuts, and without what a -D of a sequence group removed (D5)."""
        counted = given.counted & (given.kinds != FoldKind.CUT)
        if not (self.spec.remove_on_group and self.spec.row_kind):
            return replace(given, counted=counted)
        removal = kept_after_removal(self.spec.remove_on_group, given.values, given.fold_order, given.kinds, counted)
        return replace(given, counted=removal.kept, removal=removal)

    def __call__(self, given: Contributions) -> pa.Table:
        """Fold :meth:`contributions`, and return the key columns and the wanted ones, with a row for each visible key.

        Raises:
            TrinityError: NUMERIC_VALUE_OUT_OF_RANGE naming the column and the key (A4).
        """
        fold = _Fold(self, self.counting(given))
        found = fold.columns()
        self._refuse_unfit(found, fold)
        visible = as_arrow(np.flatnonzero(fold.visible))
        names = list(dict.fromkeys((*self.spec.key, *found)))
        key = fold.key
        arrays = [(key[name] if name in key else found[name].values).take(visible) for name in names]
        return pa.Table.from_arrays(arrays, schema=pa.schema([given.rows.schema.field(name) for name in names]))

    def rewritten(self, given: Contributions, storage: pa.Schema, retention: Retention) -> Rewritten:
        """Fold :meth:`contributions` as a compaction does. Their rows have all columns, and ``SINCE``.

        The retention says which rows of the sidecar stay.
        """
        fold = _Fold(self, self.counting(given))
        found = fold.columns()
        unfit = np.zeros(given.fold_order.count, bool)
        for folded in found.values():
            unfit |= False if folded.unfit is None else folded.unfit & fold.visible
        values = fold.key | {name: folded.values for name, folded in found.items()}
        number = pa.scalar(StoredKind.FOLDED, pa.int64())
        kinds = {ROW_KIND: pa.repeat(number, given.fold_order.count)} if ROW_KIND in storage.names else {}
        base = _of_columns(values | kinds, storage, given.fold_order.count).filter(as_arrow(fold.visible & ~unfit))
        left = given.counted & unfit[given.fold_order.keys] & ~valid(given.values[SINCE])
        in_log = given.rows.select(storage.names).filter(as_arrow(left))
        return Rewritten(base, in_log, self._sidecar_rows(given, storage, unfit, retention))

    def _sidecar_rows(
        self, given: Contributions, storage: pa.Schema, unfit: np.ndarray, retention: Retention
    ) -> pa.Table:
        """Return the rows that later rows may have to be folded with: late rows, or rows of invisible keys (E3).

        If a value of a key is out of range, the key's rows in the sidecar stay there. In the log they would be folded
        after the key's folded row, although they came before it.
        """
        spec = self.spec
        stay = given.counted & unfit[given.fold_order.keys] & valid(given.values[SINCE])
        # if arrival decides, no later row can come before a cut or a revival
        rows = given if spec.ordering else self.counting(given)
        keys, kept = rows.fold_order.keys, rows.counted & ~unfit[rows.fold_order.keys]
        visible = rows.fold_order.last(rows.counted & (rows.kinds == FoldKind.ADD)) >= 0
        if not spec.keeps_history:
            kept &= ~visible[keys] | (rows.kinds == FoldKind.CUT)
        kept &= visible[keys] | as_numpy(retention.keeps(rows.rows))
        found = [_in_order(part, mask, storage, retention) for part, mask in ((rows, kept), (given, stay))]
        if not spec.ordering:
            dead = self._thresholds(rows, storage)
            found.append(dead.append_column(SINCE, pa.repeat(pa.scalar(retention.now_ms, pa.int64()), len(dead))))
        rows = pa.concat_tables(found)
        return rows.append_column(ARRIVAL, as_arrow(np.arange(len(rows)) - SIDECAR_ROWS))

    def _thresholds(self, given: Contributions, storage: pa.Schema) -> pa.Table:
        """Return for each dead key one -D that carries its thresholds (D5)."""
        removal = given.removal
        if removal is None:
            return _of_columns({}, storage, 0)
        assert self.spec.row_kind
        rows = given.fold_order.last(np.ones(len(given.kinds), bool))[removal.dead]
        values = {name: picked(given.values[name], rows) for name in self.spec.key}
        for group, at in zip(self.spec.remove_on_group, removal.thresholds, strict=True):
            values |= {name: picked(given.values[name], at) for name in group.sequence}
        values[self.spec.row_kind] = pa.repeat("-D", len(rows))
        return _of_columns(values, storage, len(rows))

    def _refuse_unfit(self, found: dict[str, Folded], fold: _Fold) -> None:
        for name, folded in found.items():
            unfit = np.flatnonzero(fold.visible if folded.unfit is None else folded.unfit & fold.visible)
            if folded.unfit is None or not len(unfit):
                continue
            number = int(unfit[0])
            names = self.definition.primary_key
            key = shown_row(names, [fold.key[k][number].as_py() for k in names])
            kind = parse_type(self.definition.column(name).type)
            raise TrinityError(
                "NUMERIC_VALUE_OUT_OF_RANGE",
                f"column '{name}' of the row with key ({key}): the aggregated value {folded.shown(number)} does not "
                f"fit into {kind}. Rows that bring it back into range repair it (A4).",
            )

    @property
    def _wanted(self) -> list[Column]:
        return [c for c in self.definition.visible if self.columns is None or c.name in self.columns]


class _Fold:
    """One run of a fold, over the contributions that count."""

    def __init__(self, of: ColumnFold, given: Contributions) -> None:
        self.of, self.spec, self.given = of, of.spec, given
        self.retract = _is_retract(given.kinds)
        self.nothing = np.zeros(len(given.kinds), bool)
        self.marks = given.values.get(CARRIED)
        self.omits = self.marks is not None and self.marks.null_count < len(self.marks)
        self.groups: dict[tuple[str, ...], GroupFold] = {}

    @cached_property
    def visible(self) -> np.ndarray:
        """True for keys with an added row among the folded ones (D6)."""
        given = self.given
        added = given.counted & (given.kinds == FoldKind.ADD) if self.spec.folds_retracts else given.counted
        return given.fold_order.last(added) >= 0

    @cached_property
    def key(self) -> dict[str, pa.Array]:
        """Key column -> its value for each key."""
        rows = self.given.fold_order.last(~self.nothing)
        found = {name: picked(self.given.values[name], rows) for name in self.spec.key}
        return {name: canonical_floats(v) if pa.types.is_floating(v.type) else v for name, v in found.items()}

    def columns(self) -> dict[str, Folded]:
        """Return wanted column -> its value for each key."""
        found: dict[str, Folded] = {}
        wanted = [column for column in self.of._wanted if column.name not in self.spec.key]
        for group in self.spec.groups:
            if any(column.name in group.columns and column.name not in self.spec.functions for column in wanted):
                names = {column.name for column in wanted} - set(self.spec.functions)
                fold = replace(self._group(group), plain=tuple(c for c in group.protected if c in names))
                found |= {name: Folded(values) for name, values in fold.columns().items()}
        return {c.name: found[c.name] if c.name in found else self._folded(c) for c in wanted}

    def _group(self, group: SequenceGroup) -> GroupFold:
        if group.sequence not in self.groups:
            given, carries = self.given, self._carries if self.omits else None
            self.groups[group.sequence] = GroupFold.of(
                group, given.values, given.fold_order, given.counted, self.retract, carries
            )
        return self.groups[group.sequence]

    def _folded(self, column: Column) -> Folded:
        spec, given, values = self.spec, self.given, self.given.values[column.name]
        # the sequence column of an aggregation table has the value of the last row, even if that is a retract
        if column.name in spec.ordering and spec.engine is MergeEngine.AGGREGATION:
            return Folded(picked(values, given.fold_order.last(given.counted)))
        named = spec.functions.get(column.name, FieldFunction("last_non_null_value"))
        function = aggregate_function(named.name)
        assert function is not None
        return function.folded(self._rows(column, named, function))

    def _rows(self, column: Column, named: FieldFunction, function: AggregateFunction) -> ColumnRows:
        given, group = self.given, self.spec.group_of(column.name)
        when, order = given.counted, given.fold_order
        if group:
            fold = self._group(group)
            when, order = fold.part, fold.order
        if self.omits and not (function.commutes and column.nullable):  # NULL changes no sum
            when = when & self._carries(column.name)
        retract = self.retract
        if named.ignore_retract or self.spec.ignores_retracts(column.name, group):
            when, retract = when & ~retract, self.nothing
        return ColumnRows(
            name=column.name,
            type=parse_type(column.type),
            values=given.values[column.name],
            order=order,
            when=when,
            retract=retract,
            explicit=self._has_mark(column.name, "1") if self.omits else self.nothing,
            options=named.options,
        )

    def _carries(self, name: str) -> np.ndarray:
        return ~self._has_mark(name, "0")

    def _has_mark(self, name: str, mark: str) -> np.ndarray:
        """Return a mask of the rows that have this mark for a column."""
        assert self.marks is not None
        index = self.of.definition.all_columns.index(self.of.definition.column(name))
        marks = pc.utf8_slice_codeunits(self.marks, index, index + 1)
        return where_true(pc.equal(marks, mark))


def _in_order(rows: Contributions, mask: np.ndarray, storage: pa.Schema, retention: Retention) -> pa.Table:
    """Return some contributions in fold order, in storage form, with ``SINCE``."""
    order = rows.fold_order.sorted(mask)
    stored = _of_columns({name: picked(rows.values[name], order) for name in storage.names}, storage, len(order))
    return stored.append_column(SINCE, retention.since(rows.rows).take(as_arrow(order)))


def _of_columns(values: Mapping[str, pa.Array], storage: pa.Schema, rows: int) -> pa.Table:
    """Return rows with the given columns; all other columns are NULL."""
    optional = pa.schema([field.with_nullable(True) for field in storage])
    arrays = [values[f.name].cast(f.type) if f.name in values else pa.nulls(rows, f.type) for f in optional]
    return pa.Table.from_arrays(arrays, schema=optional)


def _is_retract(kinds: np.ndarray) -> np.ndarray:
    found: np.ndarray = (kinds == FoldKind.RETRACT_UPDATE) | (kinds == FoldKind.RETRACT_DELETE)
    return found

"""Ingest: the conversion of pages of any source to a table's storage schema, and the refusal of invalid rows (L8).

Spark and Arrow data share one implementation. The plan is made on the driver from the two schemas. Where the sink runs,
pages are checked and cast with Arrow kernels, and then written by the sink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.writing.casts import assignable, cast_array, check_lengths, fitted, unlike
from trinity.engine.writing.parts import part_of
from trinity.errors import TrinityError, nearest
from trinity.merge.carried import ingested_columns
from trinity.merge.properties import MergeEngine
from trinity.merge.row_kinds import ROW_KINDS
from trinity.merge.spec import merge_spec
from trinity.merge.write_rules import WriteRules
from trinity.names import TableName
from trinity.spi import (
    CARRIED,
    Column,
    DataType,
    PageSink,
    PageSinkProvider,
    SinkId,
    TableDefinition,
    WriteTarget,
    parse_given_type,
    parse_type,
    type_text,
)
from trinity.target import Target

REFUSAL: Final = "_trinity_refusal"
"""STRING column of a statement's rows: the JSON of the error for a row that cannot be stored; NULL for other rows."""


@dataclass(frozen=True)
class StoredForm:
    """The form in which a table stores the rows that it ingests.

    Attributes:
        table: name of the table, for messages.
        definition: the columns to be stored. If it has no key, they are stored as those of a plain table.
        storage: physical schema of the files, a field for each of these columns.
        timezone: returns the zone of a :class:`PageConformer`; called only where timestamps gain or lose a zone.
    """

    table: TableName
    definition: TableDefinition
    storage: pa.Schema
    timezone: Callable[[], str]

    @classmethod
    def of(cls, table: Target, definition: TableDefinition, storage: pa.Schema) -> StoredForm:
        """Return the form of a table's rows. ``storage`` may have some of their columns only."""
        return cls(table.name, definition, storage, lambda: table.session.timezone)


@dataclass(frozen=True)
class _ColumnPlan:
    """The plan of a stored column: filled from input column number ``source``, or with ``value`` if that is None."""

    column: Column
    type: DataType
    storage: pa.Field
    source: int | None
    value: Any
    key: bool
    row_kind: bool


@dataclass(frozen=True)
class PageConformer:
    """The conversion of input pages to pages of the storage schema. Picklable.

    Attributes:
        table: name of the table, for messages.
        plans: one plan for each stored column, in table order.
        storage: the storage schema.
        timezone: the zone of timestamps without zone that are stored in a TIMESTAMP column.
        rules: the rules of the merge engine, if it has any.
        kept: columns that are not checked, since pages lack them: their stored values stay.
    """

    table: TableName
    plans: tuple[_ColumnPlan, ...]
    storage: pa.Schema
    timezone: str
    rules: WriteRules | None = None
    kept: frozenset[str] = frozenset()

    def conform(self, page: pa.RecordBatch) -> pa.RecordBatch:
        """Return the page in storage form.

        Raises:
            TrinityError: CONSTRAINT_VIOLATION (NULL in a key or NOT NULL column, or within one; text too long),
                NUMERIC_VALUE_OUT_OF_RANGE, TYPE_MISMATCH (text that is not UTF-8, and the like), INVALID_ARGUMENTS
                (unknown row kind), naming column and value.
        """
        filled = [self._fill(plan, page, checked=plan.column.name not in self.kept) for plan in self.plans]
        stored = pa.record_batch(filled, schema=self.storage)
        if self.rules:
            self.rules.check(stored)
        return stored

    def stored(self, page: pa.RecordBatch) -> pa.RecordBatch:
        """Return the page in storage form, unchecked: its values were stored before, or are missing."""
        return pa.record_batch([self._fill(plan, page, checked=False) for plan in self.plans], schema=self.storage)

    def _fill(self, plan: _ColumnPlan, page: pa.RecordBatch, *, checked: bool) -> pa.Array:
        kind = plan.type.to_arrow()
        if plan.source is None:
            array = pa.repeat(pa.scalar(plan.value, kind), page.num_rows)
        else:
            given = page.column(plan.source)
            if checked:
                self._check_values(plan, given)
            array = self._cast(plan, given, kind)
        if checked:
            self._check(plan, array)
        if plan.type.limited:
            array = fitted(array, plan.type)
        if plan.key and pa.types.is_floating(kind):
            array = _canonical_floats(array)
        return self._cast(plan, array, plan.storage.type)

    def _cast(self, plan: _ColumnPlan, array: pa.Array, kind: pa.DataType) -> pa.Array:
        return array if array.type == kind else cast_array(array, kind, self._where(plan), self.timezone)

    def _where(self, plan: _ColumnPlan) -> str:
        return f"column '{plan.column.name}' of table '{self.table}'"

    def _check_values(self, plan: _ColumnPlan, given: pa.Array) -> None:
        """Refuse values that their own type does not have: text that is not UTF-8, or a time of day of 24:00."""
        try:
            given.validate(full=True)
        except pa.ArrowInvalid as error:
            raise TrinityError(
                "TYPE_MISMATCH",
                f"The data has no valid {given.type} in {self._where(plan)}: {error}. Correct it there.",
            ) from error

    def _check(self, plan: _ColumnPlan, array: pa.Array) -> None:
        if array.null_count and (plan.key or not plan.column.nullable):
            what = "primary key" if plan.key else "NOT NULL"
            raise TrinityError(
                "CONSTRAINT_VIOLATION",
                f"NULL value in {what} {self._where(plan)}; {array.null_count} such rows in one batch. "
                "Give every row a value there.",
            )
        for path in plan.column.required:
            if count := _nulls_within(array, path):
                raise TrinityError(
                    "CONSTRAINT_VIOLATION",
                    f"NULL value in NOT NULL '{'.'.join((plan.column.name, *path))}' within {self._where(plan)}; "
                    f"{count} such values in one batch. Give it a value wherever its parent is not NULL.",
                )
        if plan.type.limited:
            check_lengths(array, plan.type, self._where(plan), (plan.column.name,))
        if plan.row_kind:
            self._check_row_kind(plan, array)

    def _check_row_kind(self, plan: _ColumnPlan, array: pa.Array) -> None:
        trimmed = pc.utf8_rtrim(array, " ")
        known = pc.or_kleene(pc.is_null(trimmed), pc.is_in(trimmed, value_set=pa.array(ROW_KINDS)))
        if not pc.all(known, min_count=0).as_py():
            bad = array.filter(pc.invert(known))[0].as_py()
            raise TrinityError(
                "INVALID_ARGUMENTS", f"'{bad}' is no row kind in {self._where(plan)}; write +I, -U, +U or -D."
            )


def _canonical_floats(array: pa.Array) -> pa.Array:
    """Replace -0.0 by 0.0, and every NaN by one NaN: they are one key (K2), and equal keys must have equal hashes."""
    plain = pc.if_else(pc.equal(array, 0.0), pa.scalar(0.0, array.type), array)
    return pc.if_else(pc.is_nan(plain), pa.scalar(float("nan"), array.type), plain)


def plan_ingest(form: StoredForm, given: pa.Schema, defaults: Mapping[str, Any] | None = None) -> PageConformer:
    """Plan the ingest of data with schema ``given``.

    Columns are matched by name, any case (M10). A column that the data leaves out takes its DEFAULT, else NULL,
    as in an INSERT with a column list.

    Args:
        form: the form in which the table stores the data.
        given: schema of the data.
        defaults: column name -> value of its DEFAULT; other columns have none.

    Raises:
        TrinityError: COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME, TYPE_MISMATCH, or CONSTRAINT_VIOLATION for a missing
            key or NOT NULL column.
    """
    name, definition, defaults = form.table, form.definition, defaults or {}
    spec = merge_spec(definition) if definition.keyed else None
    source = _match(name, definition, given.names)
    if spec and spec.engine is MergeEngine.PARTIAL_UPDATE:
        # a row does not carry the columns that the data leaves out (P1)
        given_columns = [c.name for c in definition.columns if c.name.lower() in source]
        defaults = {CARRIED: ingested_columns(spec, definition, given_columns)}
        if definition.external and defaults[CARRIED] is not None:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"Table '{name}' is external and cannot say that a row lacks a column of a sequence group (P1); give "
                "it every column that a group protects.",
            )
    key = spec.key if spec else ()
    plans, zoned = [], False
    for column, field in zip(definition.columns, form.storage, strict=True):
        index = source.get(column.name.lower())
        value = defaults.get(column.name)
        if index is None and value is None and (column.name in key or not column.nullable):
            what = "primary key" if column.name in key else "NOT NULL"
            raise TrinityError(
                "CONSTRAINT_VIOLATION",
                f"The data for table '{name}' lacks its {what} column '{column.name}', "
                f"which has no DEFAULT; it has: {', '.join(given.names)}.",
            )
        kind = parse_type(column.type)
        if index is not None:
            found = _check_type(name, column, kind, given.field(index).type)
            zoned |= _changes_zone(found, kind)
        zoned |= "timestamp" in column.type and field.type != kind.to_arrow()
        row_kind = bool(spec and spec.row_kind == column.name)
        plans.append(_ColumnPlan(column, kind, field, index, value, column.name in key, row_kind))
    rules = None
    if spec and spec.engine is not MergeEngine.DEDUPLICATE:
        rules = WriteRules(name, spec, {c.name: n for n, c in enumerate(definition.columns)})
    return PageConformer(name, tuple(plans), form.storage, form.timezone() if zoned else "UTC", rules)


def _match(name: TableName, definition: TableDefinition, names: Sequence[str]) -> dict[str, int]:
    known = {c.name.lower() for c in definition.columns}
    visible = [c.name for c in definition.visible]
    found: dict[str, int] = {}
    for index, given in enumerate(names):
        lower = given.lower()
        if lower not in known:
            raise TrinityError(
                "COLUMN_NOT_FOUND",
                f"The data has a column '{given}', and table '{name}' has none."
                f"{nearest(lower, visible)} It has: {', '.join(visible)}.",
            )
        if lower in found:
            raise TrinityError("DUPLICATE_COLUMN_NAME", f"The data has column '{given}' more than once.")
        found[lower] = index
    return found


def _check_type(name: TableName, column: Column, kind: DataType, given: pa.DataType) -> DataType:
    """Return the type of a column of the data. Raises TYPE_MISMATCH unless its values may be assigned to the column."""
    try:
        found = parse_given_type(type_text(given))
    except TrinityError as error:
        raise TrinityError("TYPE_MISMATCH", f"Column '{column.name}': {error.message}") from error
    if found != kind and not assignable(found, kind):
        raise TrinityError(
            "TYPE_MISMATCH",
            f"Column '{column.name}' of table '{name}' is of type {kind}, and the data has {found} there; "
            f"{unlike(found, kind)}.",
        )
    return found


def _changes_zone(given: DataType, kind: DataType) -> bool:
    """Return True when timestamps of a type, or within it, gain or lose a zone by assignment to another type."""
    if given.children:
        return any(map(_changes_zone, given.children, kind.children))
    return given != kind and kind.is_timestamp


def _nulls_within(values: pa.Array, path: Sequence[str]) -> int:
    """Return the number of NULLs at a path; a value within a NULL does not count.

    Args:
        values: a column.
        path: names of parts, as in :attr:`~trinity.spi.Column.required`.
    """
    for name in path:
        values = part_of(values.drop_null(), name)
    return int(values.null_count)


@dataclass(frozen=True)
class AppendTask:
    """A task that appends pages to the log through one sink.

    Attributes:
        check: raises for a page in storage form that a CHECK constraint forbids; None where no check is left to make.
    """

    provider: PageSinkProvider
    target: WriteTarget
    conformer: PageConformer
    check: Callable[[pa.RecordBatch], None] | None = None

    def __call__(self, order: int, pages: Iterable[pa.RecordBatch]) -> list[bytes]:
        sink = self.provider.create_page_sink(self.target, SinkId(order))
        return drain([(sink, self._conformed)], pages)

    def _conformed(self, page: pa.RecordBatch) -> pa.RecordBatch:
        if REFUSAL in page.schema.names:
            raise_refusal(page.column(REFUSAL))
            page = page.drop_columns([REFUSAL])
        stored = self.conformer.conform(page)
        if self.check is not None:
            self.check(stored)
        return stored


Prepare = Callable[[pa.RecordBatch], pa.RecordBatch]
Route = tuple[PageSink, Prepare]


def drain(routes: list[Route], pages: Iterable[pa.RecordBatch]) -> list[bytes]:
    """Send every page through each route, and return all fragments; if there is an error, abort all sinks."""
    try:
        for page in pages:
            for sink, prepare in routes:
                sink.append_page(prepare(page))
        return [fragment for sink, _ in routes for fragment in sink.finish()]
    except BaseException:
        for sink, _ in routes:
            sink.abort()
        raise


def raise_refusal(refusals: pa.Array) -> None:
    """Raise the first error of a column of JSON texts, if there is one."""
    if refusals.null_count < len(refusals):
        raise TrinityError.from_json(refusals.drop_null()[0].as_py())

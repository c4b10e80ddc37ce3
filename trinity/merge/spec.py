"""MergeSpec: the merge rules of a keyed table, parsed from its properties and checked, once for all formats (V1)."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from trinity.errors import TrinityError, nearest
from trinity.merge.functions import FieldFunction, aggregate_function, folded_value_stands, function_names
from trinity.merge.properties import MergeEngine, check_changelog, check_trigger, column_options, duration_ms, refused
from trinity.spi import CARRIED, ROW_KIND, Column, DataType, RowChangeParadigm, TableDefinition, parse_type


@dataclass(frozen=True)
class SequenceGroup:
    """Columns that are versioned together (G1-G7).

    Attributes:
        sequence: the columns that order the group, compared left to right; NULL is smallest.
        protected: the columns whose values follow that order.
    """

    sequence: tuple[str, ...]
    protected: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The sequence and the protected columns."""
        return (*self.sequence, *self.protected)


@dataclass(frozen=True)
class MergeSpec:
    """The rules by which the row versions of a keyed table fold (docs/semantics.md).

    Attributes:
        key: primary key columns (K1).
        ordering: watermark columns, compared left to right; empty: arrival alone (U1, U2).
        descending: True when the smallest ordering value is the freshest (U8); NULL still loses (K3).
        tombstone: the column that marks a deleted row (U3).
        tombstone_value: the text that means deleted, for a string column.
        row_kind: the column with +I, -U, +U, -D (U8).
        hidden_row_kind: True when deletes are marked in :data:`~trinity.spi.ROW_KIND` (U6).
        ignore_delete: True when retracts are dropped (D1).
        tombstone_retention_ms: how long compaction keeps a tombstone, or None for ever (U4).
        tombstone_rows: True when compaction keeps tombstones with all their columns, watermark or not.
        buckets: fixed number of buckets of the base, or None to choose by size.
        engine: the merge engine.
        groups: sequence groups, of ``partial-update`` (G1).
        functions: column -> its aggregate function, of columns that have one (A3, E1).
        remove_on_delete: True when a -D deletes the row and a -U is ignored (D3).
        remove_on_group: those of ``groups`` in which a -D that is not older deletes the row (D5).
        history_changed: True once an ALTER has changed :attr:`keeps_history`.
        keeps_last_values: True when columns of ``last_value`` need row versions, as other functions by order do (E3).
    """

    key: tuple[str, ...]
    ordering: tuple[str, ...] = ()
    descending: bool = False
    tombstone: str | None = None
    tombstone_value: str | None = None
    row_kind: str | None = None
    hidden_row_kind: bool = False
    ignore_delete: bool = False
    tombstone_retention_ms: int | None = None
    tombstone_rows: bool = False
    buckets: int | None = None
    engine: MergeEngine = MergeEngine.DEDUPLICATE
    groups: tuple[SequenceGroup, ...] = ()
    functions: Mapping[str, FieldFunction] = field(default_factory=dict)
    remove_on_delete: bool = False
    remove_on_group: tuple[SequenceGroup, ...] = ()
    history_changed: bool = False
    keeps_last_values: bool = False

    @property
    def by_column(self) -> bool:
        """:attr:`MergeEngine.by_column` of the table's engine."""
        return self.engine.by_column

    @property
    def statistics(self) -> tuple[str, ...]:
        """Columns whose bounds are worth keeping for every file."""
        marks = [c for c in (self.row_kind, ROW_KIND, CARRIED) if c and self.by_column]
        # their bounds tell a fold how few bits it needs
        sequences = [c for group in self.groups for c in group.sequence]
        summed = [c for c, function in self.functions.items() if function.name == "sum"]
        return tuple(dict.fromkeys((*self.key, *self.ordering, *marks, *sequences, *summed)))

    @property
    def folds_retracts(self) -> bool:
        """True when retracts may be among the folded rows: they exist, are not dropped, and delete no whole row."""
        return self.row_kind is not None and not self.ignore_delete and not self.remove_on_delete

    @property
    def keeps_tombstones(self) -> bool:
        """True when compaction moves tombstones to the sidecar: late rows may lose to them, or a property says so."""
        return not self.by_column and bool(self.ordering or self.tombstone_rows)

    @property
    def may_need_sidecar(self) -> bool:
        """True when compaction may move rows to the sidecar.

        For engines that fold by column these are row versions, hard deletes to which late rows lose, and retracts of
        keys that have no other rows.
        """
        if not self.by_column:
            return self.keeps_tombstones
        return self.may_have_history or bool(self.ordering) or bool(self.row_kind)

    @property
    def sidecar_columns(self) -> tuple[str, ...]:
        """Columns that a tombstone in the sidecar needs, so that late older rows lose to it (U4)."""
        marks = [c for c in (self.tombstone, self.row_kind, ROW_KIND if self.hidden_row_kind else None) if c]
        return tuple(dict.fromkeys((*self.key, *self.ordering, *marks)))

    @property
    def keeps_history(self) -> bool:
        """True when compaction keeps row versions in addition to the folded rows, since late rows need them (E3)."""
        stands = all(map(self._stands, self.functions.values()))
        if self.engine is MergeEngine.PARTIAL_UPDATE:
            return bool(self.ordering) or not stands
        return self.by_column and bool(self.ordering) and (self.remove_on_delete or not stands)

    def _stands(self, function: FieldFunction) -> bool:
        """Return True for a function that needs no row versions in this table."""
        return folded_value_stands(function) or (function.name == "last_value" and not self.keeps_last_values)

    @property
    def has_all_history(self) -> bool:
        """True when the sidecar has the versions of every base row, so that no fold needs a base row."""
        return self.keeps_history and not self.history_changed

    @property
    def may_have_history(self) -> bool:
        """True when the sidecar may have the versions that base rows are the fold of."""
        return self.keeps_history or self.history_changed

    @property
    def folds_without_order(self) -> bool:
        """True when the fold does not depend on the arrival of the rows: every column commutes."""
        if self.engine is not MergeEngine.AGGREGATION or self.ordering or self.row_kind:
            return False
        found = (aggregate_function(f.name) for f in self.functions.values())
        return all(f is not None and f.commutes for f in found)

    def group_of(self, column: str) -> SequenceGroup | None:
        """Return the group that protects a column or is ordered by it, if any."""
        return next((g for g in self.groups if column in g.columns), None)

    def ignores_retracts(self, column: str, group: SequenceGroup | None) -> bool:
        """Return True for a column that no retract changes: the row kind, or a partial-update one in no group (D4)."""
        return column == self.row_kind or (self.engine is MergeEngine.PARTIAL_UPDATE and group is None)


_KEYED_ONLY: Final = (
    "merge-engine", "watermark-key", "sequence.field", "sequence.field.sort-order", "tombstone-key",
    "tombstone-string-key-value", "tombstone.retention", "tombstone.keep-values", "rowkind.field", "ignore-delete",
    "bucket",
)  # fmt: skip


_parsed: Final[dict[int, tuple[weakref.ref[TableDefinition], MergeSpec]]] = {}
"""``id()`` of each definition that is still in use -> (a weak reference to it, its parsed :class:`MergeSpec`)."""


def merge_spec(definition: TableDefinition) -> MergeSpec:
    """Return the merge rules that the properties of a keyed table set.

    They are parsed once for a definition, which never changes.

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY, COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME or NOT_SUPPORTED, naming property
            and column (K1, U3, U8, V1).
    """
    key = id(definition)  # no other definition has it while this one is in use
    if key not in _parsed:
        spec = _Parser(definition).parse()
        _parsed[key] = weakref.ref(definition, lambda _: _parsed.pop(key, None)), spec
    return _parsed[key][1]


@dataclass(frozen=True)
class _Properties:
    """The properties of a table, with checked access to columns that they name."""

    definition: TableDefinition

    @property
    def properties(self) -> Mapping[str, str]:
        return self.definition.properties

    def refuse(self, message: str) -> TrinityError:
        return refused(self.definition, message)

    def column(self, key: str, name: str) -> Column:
        try:
            return self.definition.column(name)
        except TrinityError as error:
            raise TrinityError(error.code, f"'{key}': {error.message}") from error

    def columns(self, key: str, text: str) -> tuple[str, ...]:
        return self.named(key, [name.strip() for name in text.split(",")])

    def named(self, key: str, given: Sequence[str]) -> tuple[str, ...]:
        names = tuple(self.column(key, name).name for name in given)
        for name in names:
            if names.count(name) > 1:
                message = f"'{key}' = '{','.join(given)}' names column '{name}' twice."
                raise TrinityError("DUPLICATE_COLUMN_NAME", message)
        return names


class _Parser(_Properties):
    def parse(self) -> MergeSpec:
        engine = self.engine()
        key = self.key()
        ordering = self.ordering()
        if engine is MergeEngine.FIRST_ROW and ordering:
            raise self.refuse(
                "'sequence.field' has no meaning for merge engine first-row, which keeps what came first."
            )
        tombstone = self.tombstone(key, engine)
        row_kind = self.row_kind()
        ignore_delete = self.choice("ignore-delete", ("false", "true")) == "true"
        by_column = _FieldsParser(self.definition, engine, key, ordering, row_kind, ignore_delete).parse()
        check_changelog(self.definition, engine)
        check_trigger(self.definition)
        buckets = self.properties.get("bucket")
        retention = self.properties.get("tombstone.retention")
        if "commit.retry.timeout" in self.properties:
            duration_ms(self.properties["commit.retry.timeout"], "Table property 'commit.retry.timeout'")
        return MergeSpec(
            key=key,
            ordering=ordering,
            descending=self.choice("sequence.field.sort-order", ("ascending", "descending")) == "descending",
            tombstone=tombstone.name if tombstone else None,
            tombstone_value=self.tombstone_value(tombstone),
            row_kind=row_kind,
            hidden_row_kind=any(c.name == ROW_KIND for c in self.definition.columns),
            ignore_delete=ignore_delete,
            tombstone_retention_ms=duration_ms(retention, "'tombstone.retention'") if retention else None,
            tombstone_rows=self.choice("tombstone.keep-values", ("false", "true")) == "true",
            buckets=self.positive("bucket", buckets) if buckets else None,
            engine=engine,
            groups=by_column.groups,
            functions=by_column.functions,
            remove_on_delete=by_column.remove_on_delete,
            remove_on_group=by_column.remove_on_group,
            history_changed=self.definition.history_changed,
            keeps_last_values=self.definition.keeps_last_values,
        )

    def choice(self, key: str, values: tuple[str, ...]) -> str:
        """Return a property's value, lower case; the first of ``values`` by default."""
        value = self.properties.get(key, values[0]).strip().lower().replace("_", "-")
        if value not in values:
            raise self.refuse(f"'{key}' = '{self.properties[key]}'; it is one of {', '.join(values)}.")
        return value

    def positive(self, key: str, text: str) -> int:
        if not text.strip().isdigit() or not 1 <= int(text) <= 4096:
            raise self.refuse(f"'{key}' = '{text}'; it is a number from 1 to 4096.")
        return int(text)

    def engine(self) -> MergeEngine:
        engine = MergeEngine(self.choice("merge-engine", tuple(e.value for e in MergeEngine)))
        paradigm = self.properties.get("row-change-paradigm")
        if paradigm and paradigm.upper() not in RowChangeParadigm.__members__:
            raise self.refuse(
                f"'row-change-paradigm' = '{paradigm}'; it is one of {', '.join(RowChangeParadigm.__members__)}."
            )
        if not self.definition.keyed:
            if paradigm and paradigm.upper() == RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS.value:
                raise self.refuse(f"'row-change-paradigm' = '{paradigm}' needs a PRIMARY KEY, and the table has none.")
            for key in (*_KEYED_ONLY, *(o for o in self.properties if o.startswith("fields."))):
                if key in self.properties:
                    raise self.refuse(f"'{key}' needs a PRIMARY KEY, and the table has none.")
        elif paradigm:
            self.check_paradigm(engine, RowChangeParadigm[paradigm.upper()])
        return engine

    def check_paradigm(self, engine: MergeEngine, paradigm: RowChangeParadigm) -> None:
        changes = paradigm is RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS
        if changes != engine.by_column and engine is not MergeEngine.DEDUPLICATE:
            raise self.refuse(
                f"'row-change-paradigm' = '{paradigm.value}' does not go with merge engine {engine.value}."
            )

    def primitive(self, key: str, name: str) -> DataType:
        kind = parse_type(self.column(key, name).type)
        if kind.nested:
            raise self.refuse(f"{key} column '{name}' is of type {kind}; only primitive columns can be compared.")
        return kind

    def key(self) -> tuple[str, ...]:
        names = self.named("PRIMARY KEY", self.definition.primary_key) if self.definition.keyed else ()
        for name in names:
            self.primitive("PRIMARY KEY", name)
        managed = self.definition.keyed and not self.definition.external
        for name in self.definition.partition_columns if managed else ():
            if name not in names:
                raise self.refuse(f"partition column '{name}' must be part of the primary key (K5).")
        return names

    def ordering(self) -> tuple[str, ...]:
        watermark, sequence = self.properties.get("watermark-key"), self.properties.get("sequence.field")
        if watermark and sequence:
            raise self.refuse("'watermark-key' and 'sequence.field' are two names of one option; give one of them.")
        key, text = ("watermark-key", watermark) if watermark else ("sequence.field", sequence)
        if not text:
            if "sequence.field.sort-order" in self.properties:
                raise self.refuse("'sequence.field.sort-order' needs 'sequence.field' or 'watermark-key'.")
            return ()
        names = self.columns(key, text)
        for name in names:
            self.primitive(key, name)
        return names

    def tombstone(self, key: tuple[str, ...], engine: MergeEngine) -> Column | None:
        text = self.properties.get("tombstone-key")
        for name in ("tombstone-key", "tombstone-string-key-value", "tombstone.keep-values"):
            if name in self.properties and engine is not MergeEngine.DEDUPLICATE:
                raise self.refuse(f"'{name}' belongs to merge engine deduplicate, and the table's is {engine.value}.")
        if not text:
            if "tombstone-string-key-value" in self.properties:
                raise self.refuse("'tombstone-string-key-value' needs 'tombstone-key'.")
            return None
        names = self.columns("tombstone-key", text)
        if len(names) > 1:
            raise self.refuse(f"'tombstone-key' = '{text}': only one column can be the tombstone (U3).")
        self.primitive("tombstone-key", names[0])
        if names[0] in key:
            raise self.refuse(f"'tombstone-key': column '{names[0]}' is part of the primary key.")
        return self.definition.column(names[0])

    def tombstone_value(self, tombstone: Column | None) -> str | None:
        value = self.properties.get("tombstone-string-key-value")
        if value is None or tombstone is None:
            return None
        kind = parse_type(tombstone.type)
        if not kind.is_text:
            raise self.refuse(
                f"'tombstone-string-key-value' needs a string column, and '{tombstone.name}' is of type {kind}."
            )
        if kind.arguments and len(value) > kind.arguments[0]:
            raise self.refuse(f"'tombstone-string-key-value' = '{value}' does not fit into {kind}.")
        return value.ljust(kind.arguments[0]) if kind.name == "char" else value

    def row_kind(self) -> str | None:
        text = self.properties.get("rowkind.field")
        if not text:
            return None
        kind = self.primitive("rowkind.field", text)
        if not kind.is_text:
            raise self.refuse(f"'rowkind.field' column '{text}' is of type {kind}; it must be a string.")
        return self.definition.column(text).name


_DEFAULT: Final = "last_non_null_value"
_DEFAULT_OPTION: Final = "fields.default-aggregate-function"
_ON_GROUP: Final = "partial-update.remove-record-on-sequence-group"


@dataclass(frozen=True)
class _FieldProperties:
    """The result of :class:`_FieldsParser`; its attributes are those of :class:`MergeSpec`."""

    groups: tuple[SequenceGroup, ...] = ()
    functions: Mapping[str, FieldFunction] = field(default_factory=dict)
    remove_on_delete: bool = False
    remove_on_group: tuple[SequenceGroup, ...] = ()


@dataclass(frozen=True)
class _FieldsParser(_Properties):
    """A parser of one table's properties of columns, ``fields.*``, and of those that remove rows."""

    engine: MergeEngine
    key: tuple[str, ...]
    ordering: tuple[str, ...]
    row_kind: str | None
    ignore_delete: bool

    def parse(self) -> _FieldProperties:
        """Parse and check the properties.

        Raises:
            TrinityError: INVALID_TABLE_PROPERTY, COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME, naming property and column.
        """
        given = column_options(self.definition.properties)
        groups = self._groups(given)
        by_field: dict[str, dict[str, str]] = {}
        for (columns, option), value in given.items():
            if option != "sequence-group":
                name, *others = self.columns(f"fields.{columns}.{option}", columns)
                if others:
                    raise self.refuse(f"'fields.{columns}.{option}' names several columns; give it for each of them.")
                by_field.setdefault(name, {})[option] = value
        found = _FieldProperties(
            groups, self._functions(groups, by_field), self._remove_on_delete(), self._remove_on_group(groups)
        )
        self._check_removal(found)
        return found

    # -- groups -------------------------------------------------------------------------------------------

    def _groups(self, given: Mapping[tuple[str, str], str]) -> tuple[SequenceGroup, ...]:
        groups = []
        for (columns, option), value in given.items():
            if option != "sequence-group":
                continue
            name = f"fields.{columns}.{option}"
            if self.engine is not MergeEngine.PARTIAL_UPDATE:
                raise self.refuse(f"'{name}' belongs to merge engine partial-update, not to {self.engine.value}.")
            groups.append(SequenceGroup(self.columns(name, columns), self.columns(name, value)))
        sequence = [c for g in groups for c in g.sequence]
        protected = [c for g in groups for c in g.protected]
        for group in groups:
            for column in group.columns:
                self._check_grouped(f"fields.{','.join(group.sequence)}.sequence-group", column, sequence, protected)
        return tuple(groups)

    def _check_grouped(self, key: str, column: str, sequence: list[str], protected: list[str]) -> None:
        if column in self.key:
            raise self.refuse(f"'{key}' names key column '{column}', which no group can hold.")
        if column == self.row_kind:
            raise self.refuse(f"'{key}' names column '{column}', which is the rowkind.field.")
        if sequence.count(column) > 1:
            raise self.refuse(f"column '{column}' orders more than one sequence group; each has columns of its own.")
        if protected.count(column) > 1:
            raise self.refuse(f"column '{column}' is protected by more than one sequence group.")
        if column in sequence and column in protected:
            raise self.refuse(f"'{key}': column '{column}' orders a sequence group and is protected by one.")
        definition = self.definition.column(column)
        if not definition.nullable:
            raise self.refuse(
                f"'{key}': column '{column}' is NOT NULL; a row that takes no part in the group has NULL there."
            )
        if column in sequence and parse_type(definition.type).nested:
            raise self.refuse(f"'{key}': column '{column}' is of type {definition.type}, which cannot be compared.")

    # -- functions ----------------------------------------------------------------------------------------

    def _functions(
        self, groups: tuple[SequenceGroup, ...], by_field: Mapping[str, Mapping[str, str]]
    ) -> dict[str, FieldFunction]:
        default = self.definition.properties.get(_DEFAULT_OPTION)
        if not self.engine.by_column:
            for name, options in by_field.items():
                raise self.refuse(
                    f"'fields.{name}.{min(options)}' has no meaning for merge engine {self.engine.value}."
                )
            if default:
                raise self.refuse(f"'{_DEFAULT_OPTION}' has no meaning for merge engine {self.engine.value}.")
            return {}
        found = {}
        for column in self.definition.visible:
            function = self._function(column, groups, dict(by_field.get(column.name, {})), default)
            if function:
                found[column.name] = function
        return found

    def _function(
        self, column: Column, groups: tuple[SequenceGroup, ...], options: dict[str, str], default: str | None
    ) -> FieldFunction | None:
        name = options.pop("aggregate-function", None)
        ordered = (*self.ordering, *(c for g in groups for c in g.sequence))
        if column.name in self.key or column.name in ordered or column.name == self.row_kind:
            what = "key" if column.name in self.key else "ordering" if column.name in ordered else "row kind"
            if name or options:
                raise self.refuse(f"column '{column.name}' is a {what} column, which has no function (G7, V1).")
            return None
        protected = any(column.name in g.protected for g in groups)
        chosen = name or default
        if self.engine is MergeEngine.PARTIAL_UPDATE and not protected:
            self._check_outside(column.name, chosen)
            chosen = None
        elif self.engine is MergeEngine.AGGREGATION:
            chosen = chosen or _DEFAULT
        if chosen is None:
            if options:
                raise self.refuse(f"'fields.{column.name}.{min(options)}' needs an aggregate function of the column.")
            return None
        return self._checked(column, chosen, options)

    def _check_outside(self, column: str, chosen: str | None) -> None:
        if chosen not in (None, _DEFAULT):
            raise self.refuse(
                f"column '{column}' has function '{chosen}' and is in no sequence group; outside groups only "
                f"{_DEFAULT} is possible (A5)."
            )

    def _checked(self, column: Column, name: str, options: dict[str, str]) -> FieldFunction:
        function = aggregate_function(name)
        if function is None:
            raise self.refuse(
                f"'fields.{column.name}.aggregate-function' = '{name}' is unknown.{nearest(name, function_names())} "
                f"Known: {', '.join(function_names())}."
            )
        ignore = self._flag(f"fields.{column.name}.ignore-retract", options.pop("ignore-retract", "false"))
        for option in options:
            if option not in function.options:
                known = f"it has {', '.join(function.options)}" if function.options else "it has no options"
                raise self.refuse(f"'fields.{column.name}.{option}' is no option of function '{name}'; {known}.")
        if problem := function.problem(parse_type(column.type), options):
            raise self.refuse(f"column '{column.name}' of type {column.type}: function '{name}' {problem}.")
        return FieldFunction(function.name, ignore, options)

    # -- removal ------------------------------------------------------------------------------------------

    def _remove_on_delete(self) -> bool:
        found = False
        for engine in (MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION):
            key = f"{engine.value}.remove-record-on-delete"
            if key in self.definition.properties:
                if engine is not self.engine:
                    raise self.refuse(f"'{key}' has no meaning for merge engine {self.engine.value}.")
                found = self._flag(key, self.definition.properties[key])
        return found

    def _remove_on_group(self, groups: tuple[SequenceGroup, ...]) -> tuple[SequenceGroup, ...]:
        text = self.definition.properties.get(_ON_GROUP)
        if not text:
            return ()
        names = self.columns(_ON_GROUP, text)
        for name in names:
            if not any(name in g.sequence for g in groups):
                raise self.refuse(f"'{_ON_GROUP}' = '{text}': '{name}' is no sequence column of a group.")
        return tuple(g for g in groups if set(names) & set(g.sequence))

    def _check_removal(self, found: _FieldProperties) -> None:
        on_delete = f"{self.engine.value}.remove-record-on-delete"
        for key, given in ((on_delete, found.remove_on_delete), (_ON_GROUP, bool(found.remove_on_group))):
            if given and self.ignore_delete:
                raise self.refuse(f"'ignore-delete' and '{key}' contradict each other; keep one of them.")
        if found.remove_on_delete and found.groups:
            raise self.refuse(f"'{on_delete}' does not go with sequence groups; use '{_ON_GROUP}'.")

    def _flag(self, key: str, text: str) -> bool:
        if text.strip().lower() not in ("true", "false"):
            raise self.refuse(f"'{key}' = '{text}'; it is true or false.")
        return text.strip().lower() == "true"

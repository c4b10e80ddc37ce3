"""Table options to :class:`~trinity.merge.spec.MergeSpec`: parsed and checked when a table is made (V1)."""

from __future__ import annotations

from typing import Final

from trinity.errors import TrinityError
from trinity.merge.changelog import check_changelog
from trinity.merge.engine import MergeEngine
from trinity.merge.options import duration_ms
from trinity.merge.parse_fields import FieldsParser
from trinity.merge.spec import MergeSpec
from trinity.merge.triggers import check_trigger
from trinity.spi import ROW_KIND, Column, DataType, RowChangeParadigm, TableDefinition, parse_type

__all__ = ["merge_spec"]

_KEYED_ONLY: Final = (
    "merge-engine", "watermark-key", "sequence.field", "sequence.field.sort-order", "tombstone-key",
    "tombstone-string-key-value", "tombstone.retention", "tombstone.keep-values", "rowkind.field", "ignore-delete",
    "bucket",
)  # fmt: skip

_PARSED: Final = "_merge_spec"
"""Attribute of a definition, beside its fields, that holds what :func:`merge_spec` has parsed."""


def merge_spec(definition: TableDefinition) -> MergeSpec:
    """Return the merge engine, order and tombstones that the options of a keyed table ask for.

    They are parsed once for a definition, which never changes, and travel with it.

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY, COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME or NOT_SUPPORTED, naming option
            and column (K1, U3, U8, V1).
    """
    attributes = vars(definition)  # it is frozen: its fields stay as they are
    if _PARSED not in attributes:
        attributes[_PARSED] = _Parser(definition).parse()
    spec: MergeSpec = attributes[_PARSED]
    return spec


class _Parser:
    def __init__(self, definition: TableDefinition) -> None:
        self.definition = definition
        self.options = definition.properties

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
        by_column = FieldsParser(self.definition, engine, key, ordering, row_kind, ignore_delete).parse()
        check_changelog(self.definition, engine)
        check_trigger(self.definition)
        buckets = self.options.get("bucket")
        retention = self.options.get("tombstone.retention")
        if "commit.retry.timeout" in self.options:
            duration_ms(self.options["commit.retry.timeout"], "Table property 'commit.retry.timeout'")
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
            tombstone_rows=self.tombstone_rows(engine),
            buckets=self.positive("bucket", buckets) if buckets else None,
            engine=engine,
            groups=by_column.groups,
            functions=by_column.functions,
            remove_on_delete=by_column.remove_on_delete,
            remove_on_group=by_column.remove_on_group,
        )

    def refuse(self, message: str) -> TrinityError:
        return TrinityError("INVALID_TABLE_PROPERTY", f"Table '{self.definition.full_name}': {message}")

    def choice(self, option: str, values: tuple[str, ...]) -> str:
        """Return an option's value, lower case; the first of ``values`` by default."""
        value = self.options.get(option, values[0]).strip().lower().replace("_", "-")
        if value not in values:
            raise self.refuse(f"'{option}' = '{self.options[option]}'; it is one of {', '.join(values)}.")
        return value

    def positive(self, option: str, text: str) -> int:
        if not text.strip().isdigit() or not 1 <= int(text) <= 4096:
            raise self.refuse(f"'{option}' = '{text}'; it is a number from 1 to 4096.")
        return int(text)

    def engine(self) -> MergeEngine:
        engine = MergeEngine(self.choice("merge-engine", tuple(e.value for e in MergeEngine)))
        paradigm = self.options.get("row-change-paradigm")
        if paradigm and paradigm.upper() not in RowChangeParadigm.__members__:
            raise self.refuse(
                f"'row-change-paradigm' = '{paradigm}'; it is one of {', '.join(RowChangeParadigm.__members__)}."
            )
        if not self.definition.keyed:
            if paradigm and paradigm.upper() == RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS.value:
                raise self.refuse(f"'row-change-paradigm' = '{paradigm}' needs a PRIMARY KEY, and the table has none.")
            for option in (*_KEYED_ONLY, *(o for o in self.options if o.startswith("fields."))):
                if option in self.options:
                    raise self.refuse(f"'{option}' needs a PRIMARY KEY, and the table has none.")
        elif paradigm:
            self.check_paradigm(engine, RowChangeParadigm[paradigm.upper()])
        return engine

    def check_paradigm(self, engine: MergeEngine, paradigm: RowChangeParadigm) -> None:
        changes = paradigm is RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS
        if changes != engine.by_column and engine is not MergeEngine.DEDUPLICATE:
            raise self.refuse(
                f"'row-change-paradigm' = '{paradigm.value}' does not go with merge engine {engine.value}."
            )

    def column(self, option: str, name: str) -> Column:
        try:
            return self.definition.column(name)
        except TrinityError as error:
            raise TrinityError(error.code, f"'{option}': {error.message}") from error

    def columns(self, option: str, text: str) -> tuple[str, ...]:
        names = tuple(self.column(option, name.strip()).name for name in text.split(","))
        for name in names:
            if names.count(name) > 1:
                raise TrinityError("DUPLICATE_COLUMN_NAME", f"'{option}' = '{text}' names column '{name}' twice.")
        return names

    def primitive(self, option: str, name: str) -> DataType:
        kind = parse_type(self.column(option, name).type)
        if kind.nested:
            raise self.refuse(f"{option} column '{name}' is of type {kind}; only primitive columns can be compared.")
        return kind

    def key(self) -> tuple[str, ...]:
        names = self.columns("PRIMARY KEY", ",".join(self.definition.primary_key)) if self.definition.keyed else ()
        for name in names:
            self.primitive("PRIMARY KEY", name)
        managed = self.definition.keyed and not self.definition.external
        for name in self.definition.partition_columns if managed else ():
            if name not in names:
                raise self.refuse(f"partition column '{name}' must be part of the primary key (K5).")
        return names

    def ordering(self) -> tuple[str, ...]:
        watermark, sequence = self.options.get("watermark-key"), self.options.get("sequence.field")
        if watermark and sequence:
            raise self.refuse("'watermark-key' and 'sequence.field' are two names of one option; give one of them.")
        option, text = ("watermark-key", watermark) if watermark else ("sequence.field", sequence)
        if not text:
            if "sequence.field.sort-order" in self.options:
                raise self.refuse("'sequence.field.sort-order' needs 'sequence.field' or 'watermark-key'.")
            return ()
        names = self.columns(option, text)
        for name in names:
            self.primitive(option, name)
        return names

    def tombstone(self, key: tuple[str, ...], engine: MergeEngine) -> Column | None:
        text = self.options.get("tombstone-key")
        for option in ("tombstone-key", "tombstone-string-key-value"):
            if option in self.options and engine is not MergeEngine.DEDUPLICATE:
                raise self.refuse(f"'{option}' belongs to merge engine deduplicate, and the table's is {engine.value}.")
        if not text:
            if "tombstone-string-key-value" in self.options:
                raise self.refuse("'tombstone-string-key-value' needs 'tombstone-key'.")
            return None
        names = self.columns("tombstone-key", text)
        if len(names) > 1:
            raise self.refuse(f"'tombstone-key' = '{text}': only one column can be the tombstone (U3).")
        self.primitive("tombstone-key", names[0])
        if names[0] in key:
            raise self.refuse(f"'tombstone-key': column '{names[0]}' is part of the primary key.")
        return self.definition.column(names[0])

    def tombstone_rows(self, engine: MergeEngine) -> bool:
        option = "tombstone.keep-values"
        if option in self.options and engine is not MergeEngine.DEDUPLICATE:
            raise self.refuse(f"'{option}' belongs to merge engine deduplicate, and the table's is {engine.value}.")
        return self.choice(option, ("false", "true")) == "true"

    def tombstone_value(self, tombstone: Column | None) -> str | None:
        value = self.options.get("tombstone-string-key-value")
        if value is None or tombstone is None:
            return None
        kind = parse_type(tombstone.type)
        if kind.name not in ("string", "char", "varchar"):
            raise self.refuse(
                f"'tombstone-string-key-value' needs a string column, and '{tombstone.name}' is of type {kind}."
            )
        if kind.arguments and len(value) > kind.arguments[0]:
            raise self.refuse(f"'tombstone-string-key-value' = '{value}' does not fit into {kind}.")
        return value.ljust(kind.arguments[0]) if kind.name == "char" else value

    def row_kind(self) -> str | None:
        text = self.options.get("rowkind.field")
        if not text:
            return None
        kind = self.primitive("rowkind.field", text)
        if kind.name not in ("string", "char", "varchar"):
            raise self.refuse(f"'rowkind.field' column '{text}' is of type {kind}; it must be a string.")
        return self.definition.column(text).name

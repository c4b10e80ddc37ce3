"""Options by column: sequence groups, aggregate functions and what a retract does (V1, A5, D1-D5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from trinity.errors import TrinityError, nearest
from trinity.merge.engine import FieldFunction, MergeEngine, SequenceGroup
from trinity.merge.functions import aggregate_function, function_names
from trinity.merge.options import column_options
from trinity.spi import Column, TableDefinition, parse_type

__all__ = ["FieldOptions", "FieldsParser"]

_DEFAULT: Final = "last_non_null_value"
_DEFAULT_OPTION: Final = "fields.default-aggregate-function"
_ON_GROUP: Final = "partial-update.remove-record-on-sequence-group"


@dataclass(frozen=True)
class FieldOptions:
    """The ``fields.*`` options of :class:`FieldsParser`; attributes as of :class:`~trinity.merge.spec.MergeSpec`."""

    groups: tuple[SequenceGroup, ...] = ()
    functions: Mapping[str, FieldFunction] = field(default_factory=dict)
    remove_on_delete: bool = False
    remove_on_group: tuple[SequenceGroup, ...] = ()


@dataclass(frozen=True)
class FieldsParser:
    """A parser of one table's options by column.

    Attributes:
        definition: the table.
        engine: its merge engine.
        key: its key columns.
        ordering: its ``sequence.field``.
        row_kind: its ``rowkind.field``.
        ignore_delete: its ``ignore-delete``.
    """

    definition: TableDefinition
    engine: MergeEngine
    key: tuple[str, ...]
    ordering: tuple[str, ...]
    row_kind: str | None
    ignore_delete: bool

    def parse(self) -> FieldOptions:
        """Parse and check the options.

        Raises:
            TrinityError: INVALID_TABLE_PROPERTY, COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME, naming option and column.
        """
        given = column_options(self.definition.properties)
        groups = self._groups(given)
        by_field: dict[str, dict[str, str]] = {}
        for (columns, option), value in given.items():
            if option != "sequence-group":
                by_field.setdefault(self._column(columns, option), {})[option] = value
        found = FieldOptions(
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
                raise self._refuse(f"'{name}' belongs to merge engine partial-update, not to {self.engine.value}.")
            groups.append(SequenceGroup(self._columns(name, columns), self._columns(name, value)))
        sequence = [c for g in groups for c in g.sequence]
        protected = [c for g in groups for c in g.protected]
        for group in groups:
            for column in group.columns:
                self._check_grouped(f"fields.{','.join(group.sequence)}.sequence-group", column, sequence, protected)
        return tuple(groups)

    def _check_grouped(self, option: str, column: str, sequence: list[str], protected: list[str]) -> None:
        if column in self.key:
            raise self._refuse(f"'{option}' names key column '{column}', which no group can hold.")
        if column == self.row_kind:
            raise self._refuse(f"'{option}' names column '{column}', which is the rowkind.field.")
        if sequence.count(column) > 1:
            raise self._refuse(f"column '{column}' orders more than one sequence group; each has columns of its own.")
        if protected.count(column) > 1:
            raise self._refuse(f"column '{column}' is protected by more than one sequence group.")
        if column in sequence and column in protected:
            raise self._refuse(f"'{option}': column '{column}' orders a sequence group and is protected by one.")
        definition = self.definition.column(column)
        if not definition.nullable:
            raise self._refuse(
                f"'{option}': column '{column}' is NOT NULL; a row that takes no part in the group has NULL there."
            )
        if column in sequence and parse_type(definition.type).nested:
            raise self._refuse(f"'{option}': column '{column}' is of type {definition.type}, which cannot be compared.")

    # -- functions ----------------------------------------------------------------------------------------

    def _functions(
        self, groups: tuple[SequenceGroup, ...], by_field: Mapping[str, Mapping[str, str]]
    ) -> dict[str, FieldFunction]:
        default = self.definition.properties.get(_DEFAULT_OPTION)
        if not self.engine.by_column:
            for name, options in by_field.items():
                raise self._refuse(
                    f"'fields.{name}.{min(options)}' has no meaning for merge engine {self.engine.value}."
                )
            if default:
                raise self._refuse(f"'{_DEFAULT_OPTION}' has no meaning for merge engine {self.engine.value}.")
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
                raise self._refuse(f"column '{column.name}' is a {what} column, which has no function (G7, V1).")
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
                raise self._refuse(f"'fields.{column.name}.{min(options)}' needs an aggregate function of the column.")
            return None
        return self._checked(column, chosen, options)

    def _check_outside(self, column: str, chosen: str | None) -> None:
        if chosen not in (None, _DEFAULT):
            raise self._refuse(
                f"column '{column}' has function '{chosen}' and is in no sequence group; outside groups only "
                f"{_DEFAULT} is possible (A5)."
            )

    def _checked(self, column: Column, name: str, options: dict[str, str]) -> FieldFunction:
        function = aggregate_function(name)
        if function is None:
            raise self._refuse(
                f"'fields.{column.name}.aggregate-function' = '{name}' is unknown.{nearest(name, function_names())} "
                f"Known: {', '.join(function_names())}."
            )
        ignore = self._flag(f"fields.{column.name}.ignore-retract", options.pop("ignore-retract", "false"))
        for option in options:
            if option not in function.options:
                known = f"it has {', '.join(function.options)}" if function.options else "it has no options"
                raise self._refuse(f"'fields.{column.name}.{option}' is no option of function '{name}'; {known}.")
        if problem := function.problem(parse_type(column.type), options):
            raise self._refuse(f"column '{column.name}' of type {column.type}: function '{name}' {problem}.")
        return FieldFunction(function.name, ignore, options)

    # -- removal ------------------------------------------------------------------------------------------

    def _remove_on_delete(self) -> bool:
        found = False
        for engine in (MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION):
            option = f"{engine.value}.remove-record-on-delete"
            if option in self.definition.properties:
                if engine is not self.engine:
                    raise self._refuse(f"'{option}' has no meaning for merge engine {self.engine.value}.")
                found = self._flag(option, self.definition.properties[option])
        return found

    def _remove_on_group(self, groups: tuple[SequenceGroup, ...]) -> tuple[SequenceGroup, ...]:
        text = self.definition.properties.get(_ON_GROUP)
        if not text:
            return ()
        names = self._columns(_ON_GROUP, text)
        for name in names:
            if not any(name in g.sequence for g in groups):
                raise self._refuse(f"'{_ON_GROUP}' = '{text}': '{name}' is no sequence column of a group.")
        return tuple(g for g in groups if set(names) & set(g.sequence))

    def _check_removal(self, found: FieldOptions) -> None:
        on_delete = f"{self.engine.value}.remove-record-on-delete"
        for option, given in ((on_delete, found.remove_on_delete), (_ON_GROUP, bool(found.remove_on_group))):
            if given and self.ignore_delete:
                raise self._refuse(f"'ignore-delete' and '{option}' contradict each other; keep one of them.")
        if found.remove_on_delete and found.groups:
            raise self._refuse(f"'{on_delete}' does not go with sequence groups; use '{_ON_GROUP}'.")

    # -- shared -------------------------------------------------------------------------------------------

    def _refuse(self, message: str) -> TrinityError:
        return TrinityError("INVALID_TABLE_PROPERTY", f"Table '{self.definition.full_name}': {message}")

    def _flag(self, option: str, text: str) -> bool:
        if text.strip().lower() not in ("true", "false"):
            raise self._refuse(f"'{option}' = '{text}'; it is true or false.")
        return text.strip().lower() == "true"

    def _column(self, name: str, option: str) -> str:
        [found] = self._columns(f"fields.{name}.{option}", name)
        return found

    def _columns(self, option: str, text: str) -> tuple[str, ...]:
        try:
            names = tuple(self.definition.column(name.strip()).name for name in text.split(","))
        except TrinityError as error:
            raise TrinityError(error.code, f"'{option}': {error.message}") from error
        for name in names:
            if names.count(name) > 1:
                raise TrinityError("DUPLICATE_COLUMN_NAME", f"'{option}' = '{text}' names column '{name}' twice.")
        return names

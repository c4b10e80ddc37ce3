"""The model: the journalled tables, and the backend's address. Calcite's JSON, validated completely when read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError, field_validator
from pydantic.alias_generators import to_camel

from trinity.errors import TrinityError, nearest
from trinity.journal.jdbc import DATA_SOURCES, DRIVERS, connection_options
from trinity.journal.tables import JournalModel, JournalTable, VersionType
from trinity.options import Options
from trinity.secrets import keep, scrubbing

FACTORY: Final = "org.apache.calcite.adapter.jdbc.JournalledJdbcSchema$Factory"
"""The ``factory`` of a journalled schema."""

ModelSource = str | Path | Mapping[str, Any]
"""A path, ``inline:`` and JSON, or the model as a dict."""

_Names = tuple[str, ...]


class _Part(Options):
    """Part of a model; property names are those of the JSON."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=False)


class _Backend(_Part):
    """The address of the backend: in the operand, or in the file that ``connection`` names."""

    data_source: str | None = None
    jdbc_driver: str | None = None
    jdbc_url: str | None = None
    jdbc_user: str | None = None
    jdbc_password: str | None = None

    def options(self) -> dict[str, str] | None:
        """Return libpq's parameters; None when nothing is given. ``dataSource`` wins over ``jdbcUrl``."""
        if self.data_source is not None:
            _check_known("dataSource", self.data_source, DATA_SOURCES)
            return self._with_user({})
        if self.jdbc_url is None:
            if self.jdbc_driver is not None:
                raise ValueError("jdbcDriver: give jdbcUrl as well")
            return None
        if self.jdbc_driver is not None:
            _check_known("jdbcDriver", self.jdbc_driver, DRIVERS)
        return self._with_user(connection_options(self.jdbc_url))

    def _with_user(self, options: dict[str, str]) -> dict[str, str]:
        given = {"user": self.jdbc_user, "password": self.jdbc_password}
        return {**options, **{k: v for k, v in given.items() if v}}


class _Operand(_Backend):
    """The rewriter's own properties."""

    connection: str | None = None
    jdbc_schema: str | None = None
    jdbc_catalog: str | None = None
    journal_suffix: str = Field("_journal", min_length=1)
    journal_version_field: str = Field("version_number", min_length=1)
    journal_subsequent_version_field: str = Field("subsequent_version_number", min_length=1)
    journal_version_type: VersionType = "TIMESTAMP"
    journal_default_key: _Names | None = None
    journal_tables: dict[str, _Names | None]
    journal_unique_keys: dict[str, tuple[_Names, ...]] = Field(default_factory=dict)

    @field_validator("journal_version_type", mode="before")
    @classmethod
    def _any_case(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @field_validator("journal_default_key", mode="before")
    @classmethod
    def _one_name_or_more(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @field_validator("journal_tables", mode="before")
    @classmethod
    def _list_or_map(cls, value: object) -> object:
        if isinstance(value, list):
            if len(set(map(str, value))) != len(value):
                raise ValueError("a table is listed twice")
            return dict.fromkeys(map(str, value))
        if isinstance(value, dict):
            return {name: [key] if isinstance(key, str) else key for name, key in value.items()}
        return value

    @field_validator("journal_unique_keys", mode="before")
    @classmethod
    def _one_key_or_more(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {table: [[key] if isinstance(key, str) else key for key in keys] for table, keys in value.items()}


class _Schema(_Part):
    name: str = Field(min_length=1)
    type: Literal["custom"]
    factory: Literal["org.apache.calcite.adapter.jdbc.JournalledJdbcSchema$Factory"] = FACTORY
    operand: _Operand


class _Model(_Part):
    version: str = "1.0"
    default_schema: str = ""
    schemas: tuple[_Schema, ...] = Field(min_length=1)


@dataclass(frozen=True)
class LoadedModel:
    """A model that was read and validated.

    Attributes:
        journal: its journalled tables, still without the backend's columns.
        options: libpq's parameters; None when the model names no backend.
    """

    journal: JournalModel
    options: dict[str, str] | None = field(repr=False)


@scrubbing()
def load_model(source: ModelSource) -> LoadedModel:
    """Read and check a model.

    Args:
        source: path of a JSON file, ``inline:`` and the JSON itself, or a dict.

    Raises:
        TrinityError: CONFIGURATION_INVALID, naming schema, table and property; FILESYSTEM_ERROR for a file that cannot
            be read.
    """
    text, label, folder = _source_text(source)
    model = _validated(_Model, text, label)
    names = [s.name for s in model.schemas]
    if len(set(names)) != len(names):
        raise _invalid(label, "schemas: a schema is listed twice")
    tables = tuple(t for schema in model.schemas for t in _tables(schema, label))
    operands = {s.name: s.operand for s in model.schemas}
    journal = JournalModel(
        tables,
        model.default_schema,
        {name: operand.jdbc_schema or name for name, operand in operands.items()},
        catalogs=frozenset(o.jdbc_catalog for o in operands.values() if o.jdbc_catalog),
    )
    return LoadedModel(journal, _one_backend(model, folder, label))


def _source_text(source: ModelSource) -> tuple[Any, str, Path]:
    """Return the JSON value, the model's name in errors, and the folder that relative paths start from."""
    if isinstance(source, Mapping):
        return dict(source), "The model", Path()
    if isinstance(source, str) and source.startswith("inline:"):
        return _json(source.removeprefix("inline:"), "The inline model"), "The inline model", Path()
    path = Path(source)
    return _json(_read(path, "model"), f"Model '{path}'"), f"Model '{path}'", path.parent


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        tables = isinstance(error, IsADirectoryError)
        hint = "a folder of tables is given as warehouse=, not as model=" if tables else "check the path"
        raise TrinityError(
            "FILESYSTEM_ERROR", f"The {what} '{path}' cannot be read: {error.strerror}; {hint}."
        ) from error


def _json(text: str, label: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise _invalid(label, f"not JSON: {error}") from error


_Kind = TypeVar("_Kind", bound=_Part)


def _validated(kind: type[_Kind], value: Any, label: str) -> _Kind:
    keep(value if isinstance(value, Mapping) else {})
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise _invalid(label, "; ".join(_problem(e, value) for e in error.errors())) from error


def _problem(error: Any, value: Any) -> str:
    """Return the text of an error of pydantic: its path (schema and table by name, property), and the problem."""
    path: list[str] = []
    for step in error["loc"]:
        value = value[step] if isinstance(value, (dict, list)) and _has(value, step) else None
        if isinstance(step, int) and isinstance(value, dict) and "name" in value:
            path[-1] = f"schema '{value['name']}'"
        elif step not in ("operand",):
            path.append(str(step))
    message = {"extra_forbidden": "unknown property", "missing": "missing"}.get(error["type"], error["msg"])
    if error["type"] == "extra_forbidden":
        known = [to_camel(f) for part in (_Model, _Schema, _Operand) for f in part.model_fields]
        message += nearest(path[-1], known).rstrip("?")
    if path[-1:] == ["journalVersionType"]:
        message = f"Unknown version type {error['input']!r}; write TIMESTAMP or BIGINT"
    return f"{', '.join(path)}: {message}"


def _has(value: Any, step: Any) -> bool:
    return step in value if isinstance(value, dict) else isinstance(step, int) and step < len(value)


def _tables(schema: _Schema, label: str) -> list[JournalTable]:
    """Return the schema's tables, after the checks that need more than one property."""
    operand = schema.operand
    versions = (operand.journal_version_field, operand.journal_subsequent_version_field)
    where = f"schema '{schema.name}'"
    if versions[0] == versions[1]:
        raise _invalid(
            label, f"{where}: journalVersionField and journalSubsequentVersionField are both '{versions[0]}'"
        )
    for table in operand.journal_unique_keys:
        if table not in operand.journal_tables:
            known = list(operand.journal_tables)
            raise _invalid(
                label, f"{where}, journalUniqueKeys: '{table}' is not in journalTables.{nearest(table, known)}"
            )
    found = []
    for name, given in operand.journal_tables.items():
        key = operand.journal_default_key if given is None else given
        unique = operand.journal_unique_keys.get(name, ())
        if key is None:
            raise _invalid(
                label, f"{where}, table '{name}': no key; list it in journalTables, or set journalDefaultKey"
            )
        for columns, what in [(key, "key"), *((u, "journalUniqueKeys") for u in unique)]:
            _check_columns(label, f"{where}, table '{name}', {what}", columns, versions)
        names = (schema.name, name, operand.jdbc_schema or schema.name, name + operand.journal_suffix)
        found.append(
            JournalTable(
                *names, key, *versions, operand.journal_version_type, unique, catalog=operand.jdbc_catalog or ""
            )
        )
    return found


def _check_columns(label: str, where: str, columns: _Names, versions: tuple[str, str]) -> None:
    if not columns or not all(columns):
        raise _invalid(label, f"{where}: name at least one column")
    if len(set(columns)) != len(columns):
        raise _invalid(label, f"{where}: a column is listed twice in {', '.join(columns)}")
    for column in columns:
        if column in versions:
            raise _invalid(label, f"{where}: '{column}' is a version column")


def _one_backend(model: _Model, folder: Path, label: str) -> dict[str, str] | None:
    """Return the backend that all schemas share; a ``connection`` file wins over properties beside it."""
    found: list[dict[str, str] | None] = []
    for schema in model.schemas:
        given: _Backend = schema.operand
        where = f"{label}: schema '{schema.name}'"
        if schema.operand.connection is not None:
            path = folder / schema.operand.connection
            where += f", connection '{path}'"
            given = _validated(_Backend, _json(_read(path, "connection file"), where), where)
        try:
            found.append(given.options())
        except ValueError as error:
            raise _invalid(where, str(error)) from error
    if any(options != found[0] for options in found):
        raise _invalid(label, "its schemas name different backends; one connection has one, so use a model for each")
    return found[0]


def _check_known(what: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise ValueError(f"{what} '{given}' is unknown; it is one of {', '.join(known)}")


def _invalid(label: str, problem: str) -> TrinityError:
    return TrinityError("CONFIGURATION_INVALID", f"{label}: {problem}.")

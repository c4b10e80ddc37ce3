"""Journalled tables: names, keys, version columns, and the columns of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from trinity.errors import TrinityError, nearest

VersionType = Literal["TIMESTAMP", "BIGINT"]


@dataclass(frozen=True)
class JournalColumn:
    """One column of a journal table.

    Attributes:
        name: its name, as the backend spells it.
        type: the backend's type without length or precision: ``character varying``.
        declared: the type with length or precision: ``character varying(10)``.
        default: SQL text of the DEFAULT, or None.
        generated: True when the backend computes it; then it is never written.
    """

    name: str
    type: str
    declared: str
    default: str | None = None
    generated: bool = False


@dataclass(frozen=True)
class JournalTable:
    """One journalled table.

    Attributes:
        schema: its schema as users write it (the model's ``name``).
        name: its name as users write it.
        backend_schema: the schema on the backend (``jdbcSchema``).
        journal: name of the table that stores the versions.
        version: the version column (``journalVersionField``).
        subsequent: the subsequent version column (``journalSubsequentVersionField``).
        unique_keys: further column lists whose values are unique among live rows (``journalUniqueKeys``).
        columns: the journal's columns in order; empty while the journal does not exist.
        guarded: True when there is a unique index over key and version, which writes need.
        merged: True for a Trinity table, whose versions the backend merges.
        catalog: the catalog or database that its schema is in (``jdbcCatalog``); empty for the current one.
        versions_view: of a Trinity table, the view of all its stored versions; it exists while a statement needs it.
    """

    schema: str
    name: str
    backend_schema: str
    journal: str
    key: tuple[str, ...]
    version: str
    subsequent: str
    version_type: VersionType
    unique_keys: tuple[tuple[str, ...], ...] = ()
    columns: tuple[JournalColumn, ...] = ()
    guarded: bool = True
    merged: bool = False
    catalog: str = ""
    versions_view: str = "versions"

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def returned_view(self) -> str:
        """View of the rows that a change of a Trinity table returns; it exists while a statement needs it."""
        return f"{self.versions_view}_returned"

    @property
    def visible(self) -> tuple[JournalColumn, ...]:
        """Columns that users see: all but the two version columns, in the journal's order."""
        return tuple(c for c in self.columns if c.name not in (self.version, self.subsequent))

    @property
    def written(self) -> tuple[JournalColumn, ...]:
        """The visible columns that an append lists."""
        return tuple(c for c in self.visible if not c.generated)

    @property
    def version_column(self) -> JournalColumn:
        """The version column."""
        return self.column(self.version)

    def column(self, name: str) -> JournalColumn:
        """Return a column of the journal, also a version column. Raise COLUMN_NOT_FOUND."""
        name = name.lower() if self.merged else name  # as in Spark (M10)
        for column in self.columns:
            if column.name == name:
                return column
        known = [c.name for c in self.visible]
        raise TrinityError(
            "COLUMN_NOT_FOUND",
            f"Table {self} has no column '{name}'.{nearest(name, known)} It has: {', '.join(known)}.",
        )

    def visible_column(self, name: str) -> JournalColumn:
        """Return a column that users may name. Raise COLUMN_NOT_FOUND, also for the version columns."""
        name = name.lower() if self.merged else name
        if name in (self.version, self.subsequent):
            raise TrinityError(
                "COLUMN_NOT_FOUND", f"Table {self} has no column '{name}': versions are kept in {self.journal}."
            )
        return self.column(name)


@dataclass(frozen=True)
class JournalModel:
    """All journalled tables of one connection, and how names find them.

    Attributes:
        tables: the journalled tables.
        default_schema: the schema where an unqualified name is looked up first, if it exists.
        schemas: schema in users' statements -> schema on the backend.
        search_path: the backend's further schemas for unqualified names.
        relations: (schema, name) of the backend's ordinary relations with a journalled table's name. In its own
            schema such a relation is hidden; in a schema earlier on the search path it is what the name means.
        catalogs: names that may qualify a schema (``jdbcCatalog``).
    """

    tables: tuple[JournalTable, ...]
    default_schema: str = ""
    schemas: Mapping[str, str] = field(default_factory=dict)
    search_path: tuple[str, ...] = ()
    relations: frozenset[tuple[str, str]] = frozenset()
    catalogs: frozenset[str] = frozenset()

    def find(self, schema: str, name: str) -> JournalTable | None:
        """Return the journalled table of that name; ``schema`` is empty for an unqualified one."""
        if schema:
            return self._exact(schema, name)
        path = (self.default_schema, *self.search_path) if self.default_schema in self.schemas else self.search_path
        for searched in path:
            if (found := self._exact(searched, name)) is not None:
                return found
            if (searched, name) in self.relations:
                return None
        return None

    def _exact(self, schema: str, name: str) -> JournalTable | None:
        return next((t for t in self.tables if t.name == name and t.schema == schema), None)

    @property
    def words(self) -> frozenset[str]:
        """Names of tables and renamed schemas: a statement with one of them may need rewriting."""
        renamed = {user for user, backend in self.schemas.items() if user != backend}
        return frozenset({t.name for t in self.tables} | renamed)

    def with_columns(self, columns: Mapping[str, Mapping[str, str]]) -> JournalModel:
        """Return this model with the columns of journal tables, for rewriting without a backend.

        Args:
            columns: ``schema.table`` -> column of the journal -> type, version columns included.
        """
        known = {
            name: tuple(JournalColumn(column, kind.split("(")[0], kind) for column, kind in given.items())
            for name, given in columns.items()
        }
        return replace(self, tables=tuple(replace(t, columns=known.get(str(t), t.columns)) for t in self.tables))

"""Errors for names that are taken, missing or in use, the same for all catalogs."""

from __future__ import annotations

from collections.abc import Sequence

from trinity.errors import TrinityError


def schema_taken(catalog: str, schema: str) -> TrinityError:
    """Return the error for a schema that exists already."""
    return TrinityError("SCHEMA_ALREADY_EXISTS", f"Schema '{catalog}.{schema}' exists already.")


def no_schema(catalog: str, schema: str, known: Sequence[str]) -> TrinityError:
    """Return the error for a missing schema, with the existing ones."""
    return TrinityError("SCHEMA_NOT_FOUND", f"Catalog '{catalog}' has no schema '{schema}'; it has {', '.join(known)}.")


def schema_in_use(catalog: str, schema: str, tables: Sequence[str]) -> TrinityError:
    """Return the error for a schema that cannot be dropped while it has tables."""
    return TrinityError(
        "SCHEMA_NOT_EMPTY",
        f"Schema '{catalog}.{schema}' still holds {', '.join(tables)}; drop these tables first.",
    )


def schema_stays(catalog: str, schema: str) -> TrinityError:
    """Return the error for dropping the schema that every catalog has."""
    return TrinityError("NOT_SUPPORTED", f"Schema '{catalog}.{schema}' always exists; drop its tables.")


def table_taken(full_name: str) -> TrinityError:
    """Return the error for a table that exists already."""
    return TrinityError(
        "TABLE_ALREADY_EXISTS", f"Table '{full_name}' exists already; use IF NOT EXISTS, or drop it first."
    )


def no_table(full_name: str) -> TrinityError:
    """Return the error for a missing table."""
    return TrinityError("TABLE_NOT_FOUND", f"Table '{full_name}' does not exist.")

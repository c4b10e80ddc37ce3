"""Names of Delta tables in a Spark catalog: Spark's own, a Hive metastore, Unity Catalog.

They are read with SQL. Only Spark makes and drops tables there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NoReturn

from trinity.errors import TrinityError, first_line
from trinity.spi import ConnectorContext, TableHandle
from trinity.storage import Entry, Location
from trinity.storage.folder_names import no_schema
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import Row

_NO_CATALOG: Final = ("CATALOG_NOT_FOUND", "SCHEMA_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE")
"""Conditions of Spark's errors for a catalog that it does not have: it then reads the name as a schema's."""
_MISSING: Final = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "NO_SUCH_TABLE")
_DETAILS: Final = "# Detailed Table Information"
"""Line of DESCRIBE between a table's columns and its other facts."""


class SparkNames:
    """The schemas and tables of a Spark catalog; see :class:`~trinity.storage.FolderCatalog` for the methods.

    Args:
        catalog: the Trinity catalog's name, for handles and messages.
        spark_catalog: the catalog's name in Spark.
        context: the session's context, which has Spark.

    Raises, from every method:
        TrinityError: CONFIGURATION_INVALID where Spark has no such catalog; FILESYSTEM_ERROR where it does not answer.
    """

    def __init__(self, catalog: str, spark_catalog: str, context: ConnectorContext) -> None:
        self._catalog, self._spark_catalog, self._context = catalog, spark_catalog, context

    def list_schemas(self) -> list[str]:
        return sorted(_plain(row[0]) for row in self._rows("SHOW NAMESPACES IN"))

    def list_tables(self, schema: str) -> list[str]:
        """Return the names of a schema's Delta tables, sorted, without views and tables of other formats."""
        known = self.list_schemas()
        if schema not in known:
            raise no_schema(self._catalog, schema, known)
        shown = [row.tableName for row in self._rows("SHOW TABLES IN", schema) if not row.isTemporary]
        return sorted(name for name in shown if _provider(self._details(schema, name) or {}) == "delta")

    def get_table(self, schema: str, table: str) -> TableHandle | None:
        """Return the handle of a table, or None. Raises NOT_SUPPORTED for a view, and for a table of another format."""
        details = self._details(schema, table)
        if details is None:
            return None
        if (provider := _provider(details)) != "delta":
            raise TrinityError(
                "NOT_SUPPORTED",
                f"'{self._catalog}.{schema}.{table}' is no Delta table: in Spark's catalog '{self._spark_catalog}' it "
                f"is a {'table of ' + provider if provider else 'view'}.",
            )
        return TableHandle(self._catalog, schema, table, str(Location.of_uri(details["Location"])))

    def new_table(self, schema: str, table: str) -> NoReturn:
        raise self._not_ours(f"{schema}.{table}", f"CREATE TABLE {schema}.{table} … USING delta")

    def name_table(self, table: TableHandle) -> NoReturn:
        raise self._not_ours(f"{table.schema}.{table.table}", "CREATE TABLE")

    def drop_table(self, table: TableHandle) -> NoReturn:
        raise self._not_ours(f"{table.schema}.{table.table}", f"DROP TABLE {table.schema}.{table.table}")

    def rename_table(self, table: TableHandle, schema: str, name: str) -> NoReturn:
        old = f"{table.schema}.{table.table}"
        raise self._not_ours(old, f"ALTER TABLE {old} RENAME TO {schema}.{name}")

    def sweep(self, schema: str, older_than_ms: int) -> list[Entry]:
        """Remove nothing: only Spark removes tables of its names."""
        return []

    def create_schema(self, schema: str) -> NoReturn:
        raise self._not_ours(schema, f"CREATE SCHEMA {schema}")

    def drop_schema(self, schema: str) -> NoReturn:
        raise self._not_ours(schema, f"DROP SCHEMA {schema}")

    def _not_ours(self, name: str, statement: str) -> TrinityError:
        return TrinityError(
            "NOT_SUPPORTED",
            f"'{self._catalog}.{name}': this catalog has the names of Spark's catalog '{self._spark_catalog}', and "
            f'makes or drops none; say it to Spark: spark.sql("{statement}").',
        )

    def _details(self, schema: str, table: str) -> dict[str, str] | None:
        """Return facts about a table, such as ``Provider`` and ``Location``; None if there is none."""
        from pyspark.errors import PySparkException

        try:
            rows = self._ask("DESCRIBE TABLE EXTENDED", schema, table)
        except PySparkException as error:
            if (error.getCondition() or "").startswith(_MISSING):
                return None
            raise self._trouble(error) from error
        lines = [(row.col_name, row.data_type) for row in rows]
        names = [name for name, _ in lines]
        # columns come first, and may have any name
        return dict(lines[names.index(_DETAILS) + 1 :]) if _DETAILS in names else {}

    def _rows(self, words: str, *names: str) -> Iterable[Row]:
        from pyspark.errors import PySparkException

        try:
            return self._ask(words, *names)
        except PySparkException as error:
            raise self._trouble(error) from error

    def _ask(self, words: str, *names: str) -> list[Row]:
        full_name = ".".join(map(quoted, (self._spark_catalog, *names)))
        return self._context.spark().sql(f"{words} {full_name}").collect()

    def _trouble(self, error: PySparkException) -> TrinityError:
        if (error.getCondition() or "").startswith(_NO_CATALOG):
            return TrinityError(
                "CONFIGURATION_INVALID",
                f"Catalog '{self._catalog}': Spark has no catalog '{self._spark_catalog}'; 'spark_catalog' names one "
                "of its settings spark.sql.catalog.…, or spark_catalog, its own.",
            )
        return TrinityError("FILESYSTEM_ERROR", f"Catalog '{self._catalog}' cannot be read: {first_line(error)}.")


def _plain(name: str) -> str:
    """Return a name without the quotes in which Spark shows it."""
    return name[1:-1].replace("``", "`") if name.startswith("`") and name.endswith("`") else name


def _provider(details: Mapping[str, str]) -> str:
    """Return the format of a table, lower-case; empty for a view."""
    return str(details.get("Provider") or "").lower()

"""Alembic's migrations on Trinity."""

from __future__ import annotations

from typing import Any

from alembic.ddl.base import ColumnName
from alembic.ddl.impl import DefaultImpl
from sqlalchemy.ext.compiler import compiles

from trinity.syntax.parse import expression_tree, spark_text


class TrinityImpl(DefaultImpl):
    """Alembic's operations on Trinity: each is a commit of its own."""

    __dialect__ = "trinity"
    transactional_ddl = False

    def compare_type(self, inspector_column: Any, metadata_column: Any) -> bool:
        """Return True where the types differ as Trinity writes them."""
        write = self.dialect.type_compiler_instance.process
        return write(inspector_column.type) != write(metadata_column.type)

    def compare_server_default(
        self,
        inspector_column: Any,
        metadata_column: Any,
        rendered_metadata_default: str | None,
        rendered_inspector_default: str | None,
    ) -> bool:
        """Return True where the defaults differ as Trinity writes them."""
        compiler = self.dialect.ddl_compiler(self.dialect, None)  # type: ignore[arg-type]  # for a part of a statement
        wanted = compiler.get_column_default_string(metadata_column)
        return _normal(rendered_inspector_default) != _normal(wanted)

    def correct_for_autogen_constraints(
        self, conn_unique_constraints: Any, conn_indexes: Any, metadata_unique_constraints: Any, metadata_indexes: Any
    ) -> None:
        """Ignore indexes and UNIQUE constraints of models, which Trinity does not create."""
        metadata_unique_constraints.clear()
        metadata_indexes.clear()

    def correct_for_autogen_foreignkeys(self, conn_fks: Any, metadata_fks: Any) -> None:
        """Ignore foreign keys of models, which Trinity does not create."""
        metadata_fks.clear()


@compiles(ColumnName, "trinity")
def _rename_column(element: ColumnName, compiler: Any, **kw: Any) -> str:
    quote = compiler.preparer.quote
    table = (compiler.preparer.quote_schema(element.schema) + "." if element.schema else "") + quote(element.table_name)
    return f"ALTER TABLE {table} RENAME COLUMN {quote(element.column_name)} TO {quote(element.newname)}"


def _normal(default: str | None) -> str | None:
    return default and spark_text(expression_tree(default), "spark")

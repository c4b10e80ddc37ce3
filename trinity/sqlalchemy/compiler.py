"""The compilers of SQLAlchemy's statements to Trinity's SQL, which is Spark's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import exc, util
from sqlalchemy.sql import compiler
from sqlalchemy.sql import sqltypes as sa

from trinity.names import split_name
from trinity.sqlalchemy.upsert import Upsert
from trinity.syntax.parameters import literal

_RESERVED: Final = frozenset(
    """all alter and anti any array as at authorization between both by case cast check collate column commit
    constraint create cross cube current current_date current_time current_timestamp current_user date day
    deallocate default delete desc describe distinct drop else end escape except exists explain external extract
    false fetch filter for foreign from full function global grant group grouping having hour ilike in inner insert
    intersect interval into is join key lateral leading left like limit local map merge minus minute month natural
    no not null of offset on only or order outer overlaps partition position primary qualify range references
    replace revoke right rlike rollback rollup row rows second select semi session_user set show some start struct
    table tablesample then time timestamp to trailing true truncate union unique unknown update use user using
    values when where window with within year""".split()  # noqa: SIM905 - a hundred quotes less
)
"""Words that Spark, or the parser of Trinity, may take for more than a name."""

_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")
_NAME: Final = re.compile(r"`(?:[^`]|``)*`|[^\s,()]+")


class IdentifierPreparer(compiler.IdentifierPreparer):
    """The quoting of names by backticks; a schema may have a catalog before it: ``catalog.schema``."""

    reserved_words = set(_RESERVED)  # noqa: RUF012 - as its base declares it

    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`", final_quote="`", escape_quote="`")

    def quote_schema(self, schema: str) -> str:
        """Quote the parts of a schema's name."""
        return ".".join(self.quote(part) for part in split_name(schema))

    def format_schema(self, name: str) -> str:
        """Quote the parts of a schema's name."""
        return self.quote_schema(name)


class SQLCompiler(compiler.SQLCompiler):
    """The compiler of queries and row changes."""

    def render_literal_value(self, value: Any, type_: sa.TypeEngine[Any]) -> str:
        """Write a value as Trinity writes parameters: typed, and with backslashes escaped."""
        process = type_.dialect_impl(self.dialect).bind_processor(self.dialect)
        return literal(process(value) if process is not None else value)

    def visit_empty_set_expr(self, element_types: Iterable[Any], **kw: Any) -> str:
        columns = ", ".join(f"NULL AS c{number}" for number, _ in enumerate(element_types))
        return f"SELECT {columns} WHERE 1 = 0"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._rlike(binary, " RLIKE ", **kw)

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return self._rlike(binary, " NOT RLIKE ", **kw)

    def _rlike(self, binary: Any, words: str, **kw: Any) -> str:
        if flags := binary.modifiers["flags"]:
            raise exc.CompileError(f"Write the flags {flags!r} into the pattern: '(?i)...'.")
        return self.process(binary.left, **kw) + words + self.process(binary.right, **kw)

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"REGEXP_REPLACE({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"

    def visit_is_distinct_from_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"NOT {self.process(binary.left, **kw)} <=> {self.process(binary.right, **kw)}"

    def visit_is_not_distinct_from_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left, **kw)} <=> {self.process(binary.right, **kw)}"

    def limit_clause(self, select: Any, **kw: Any) -> str:
        text = ""
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause, **kw)
        if select._offset_clause is not None:
            text += " OFFSET " + self.process(select._offset_clause, **kw)
        return text

    def for_update_clause(self, select: Any, **kw: Any) -> str:
        """Raise CompileError: rows cannot be locked, since each statement is a commit of its own."""
        raise exc.CompileError("Trinity locks no rows: FOR UPDATE is of PostgreSQL.")

    def delete_extra_from_clause(
        self, delete_stmt: Any, from_table: Any, extra_froms: Any, from_hints: Any, **kw: Any
    ) -> str:
        kw["asfrom"] = True
        return "USING " + ", ".join(t._compiler_dispatch(self, fromhints=from_hints, **kw) for t in extra_froms)

    def visit_insert(self, insert_stmt: Any, *args: Any, **kw: Any) -> str:
        text = str(super().visit_insert(insert_stmt, *args, **kw))  # type: ignore[no-untyped-call]
        on = insert_stmt._trinity_on if isinstance(insert_stmt, Upsert) else ()
        return self._merge(insert_stmt, text, on) if on else text

    def _merge(self, stmt: Upsert, insert: str, on: tuple[str, ...]) -> str:
        """Return a MERGE of the rows of an INSERT, which match stored rows by the columns ``on``."""
        target = self.preparer.format_table(stmt.table)
        start, _, values = insert.partition(" VALUES ")
        names = _NAME.findall(start.removeprefix(f"INSERT INTO {target} "))
        keys = [self.preparer.quote(name) for name in on]
        if not values or not set(keys) <= set(names):
            raise exc.CompileError(f"upsert(...).on({', '.join(on)}) takes values(...), with these columns among them.")
        sets = ", ".join(f"{name} = s.{name}" for name in names if name not in keys)
        return (
            f"MERGE INTO {target} AS t USING (VALUES {values}) AS s({', '.join(names)}) "
            f"ON {' AND '.join(f't.{key} = s.{key}' for key in keys)} "
            + (f"WHEN MATCHED THEN UPDATE SET {sets} " if sets else "")
            + f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
        )


class DDLCompiler(compiler.DDLCompiler):
    """The compiler of table definitions."""

    def _text(self, value: str) -> str:
        return self.sql_compiler.render_literal_value(value, sa.STRINGTYPE)

    def get_column_default_string(self, column: Any) -> str | None:
        """Write the text of a number as the number that it means: ``server_default="10"``."""
        given = getattr(column.server_default, "arg", None)
        if isinstance(column.type, sa.Integer | sa.Numeric) and isinstance(given, str) and _NUMBER.fullmatch(given):
            return given
        return super().get_column_default_string(column)

    def get_column_specification(self, column: Any, **kwargs: Any) -> str:
        if column.computed is not None:
            raise exc.CompileError("Trinity has no computed columns.")
        text = super().get_column_specification(column, **kwargs)
        return text if column.comment is None else f"{text} COMMENT {self._text(column.comment)}"

    def post_create_table(self, table: Any) -> str:
        options = table.dialect_options["trinity"]
        found = ""
        if options["format"]:
            found += f"\nUSING {options['format']}"
        if options["partition_by"]:
            found += f"\nPARTITIONED BY ({', '.join(map(self._partition, _listed(options['partition_by'])))})"
        if table.comment is not None:
            found += f"\nCOMMENT {self._text(table.comment)}"
        properties: Mapping[str, Any] = options["properties"] or {}
        if properties:
            pairs = ", ".join(f"{self._text(k)} = {self._text(str(v))}" for k, v in properties.items())
            found += f"\nTBLPROPERTIES ({pairs})"
        return found

    def _partition(self, field: str) -> str:
        """Write a partition column, or a transform of one as it is."""
        return field if "(" in field else self.preparer.quote(field)

    def visit_primary_key_constraint(self, constraint: Any, **kw: Any) -> str:
        key = constraint.table.dialect_options["trinity"]["key"]
        names = [c.name for c in constraint.columns] if key is None else _listed(key)
        return f"PRIMARY KEY ({', '.join(map(self.preparer.quote, names))})" if names else None  # type: ignore[return-value]  # leaves it out

    def create_table_constraints(self, table: Any, _include_foreign_key_constraints: Any = None, **kw: Any) -> str:
        text = str(super().create_table_constraints(table, _include_foreign_key_constraints, **kw))  # type: ignore[no-untyped-call]
        key = table.dialect_options["trinity"]["key"]
        if key and not table.primary_key:
            text = ", \n\t".join(filter(None, [self.visit_primary_key_constraint(table.primary_key), text]))
        return text

    def visit_foreign_key_constraint(self, constraint: Any, **kw: Any) -> str:
        """Write nothing: Trinity does not check foreign keys."""
        return None  # type: ignore[return-value]  # leaves it out

    def visit_unique_constraint(self, constraint: Any, **kw: Any) -> str:
        names = ", ".join(c.name for c in constraint.columns)
        util.warn(f"Table '{constraint.table.name}': UNIQUE ({names}) is left out; of Trinity's tables only keys are.")
        return None  # type: ignore[return-value]  # leaves it out

    def visit_create_index(self, create: Any, *args: Any, **kw: Any) -> str:
        """Write nothing: Trinity has no indexes; reads skip files by statistics, and by the buckets of keys."""
        return ""

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        return ""

    def visit_set_table_comment(self, create: Any, **kw: Any) -> str:
        return self._commented(create.element, create.element.comment)

    def visit_drop_table_comment(self, drop: Any, **kw: Any) -> str:
        return self._commented(drop.element, "")

    def _commented(self, table: Any, comment: str) -> str:
        name = self.preparer.format_table(table)
        return f"ALTER TABLE {name} SET TBLPROPERTIES ('comment' = {self._text(comment)})"


def _listed(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)

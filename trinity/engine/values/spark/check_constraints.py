"""CHECK constraints on the rows that a statement stores (M6): one expression that returns a row's error, or NULL.

Deleted rows are not checked: no DELETE fails by a constraint. Only a constraint of the format's own, which other
engines check, too, applies to every appended row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from trinity.definition.checks import SHOWN_CHARACTERS, constrained_columns, refuse_folded, violation_text
from trinity.engine.values.defaults import default_text
from trinity.engine.writing.ingest import REFUSAL
from trinity.errors import TrinityError
from trinity.hidden import CHANGE_OPERATION
from trinity.merge.spec import merge_spec
from trinity.merge.sql.fold import is_deleted
from trinity.spark.expressions import check_stored, is_deterministic
from trinity.spark.frames import local_frame
from trinity.spark.remote import analysed
from trinity.spark.settings import pinned
from trinity.spark.texts import as_stored, with_char
from trinity.spark.types import spark_type
from trinity.spi import Check, Operation, TableDefinition
from trinity.syntax.operands import with_plain_comparisons
from trinity.syntax.quoting import quoted, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GIVEN: Final = "_trinity_given_"


def analyse_checks(spark: SparkSession, definition: TableDefinition) -> None:
    """Refuse constraints that are no conditions on one row.

    Raises:
        TrinityError: NOT_SUPPORTED for a constraint that is not deterministic, or that uses more than the row and
            Spark's own functions (N2); TYPE_MISMATCH, SYNTAX_ERROR, ... for text that is no condition.
    """
    from trinity.calls import spark_errors

    rows = local_frame(spark, {c.name: c.type for c in definition.visible}, [])
    _check_stored(definition, spark)
    for check in definition.checks:
        with spark_errors():
            same = is_deterministic(analysed(rows.where(check.expression)), check.expression)
        if not same:
            raise TrinityError(
                "NOT_SUPPORTED",
                f"CHECK constraint '{check.name}' of table '{definition.full_name}': ({check.expression}) does not "
                "give the same answer for the same row each time.",
            )


def check_expressions(definition: TableDefinition, spark: Callable[[], SparkSession]) -> None:
    """Refuse a table of another engine with a DEFAULT or CHECK that Trinity does not allow (N2).

    Raises:
        TrinityError: as :func:`~trinity.engine.values.defaults.default_text` and
            :func:`~trinity.spark.expressions.check_stored`.
    """
    for column in definition.visible:
        default_text(column, spark)
    if definition.checks:
        with pinned(spark()):
            _check_stored(definition, spark())


def checked_input(rows: DataFrame, definition: TableDefinition, table: str) -> DataFrame:
    """Return rows to append, with :data:`~trinity.engine.writing.ingest.REFUSAL`: the error of a row, or NULL."""
    from trinity.spark_names import F

    names = [name for name in rows.columns if name != REFUSAL]
    given = {name.lower(): quoted(name) for name in names}
    values = [given.get(c.name.lower()) or default_text(c, lambda: rows.sparkSession) for c in definition.columns]
    # `try_cast`: ingest will refuse a value that does not fit
    stored = [
        as_stored(F.expr(f"try_cast({value} AS {spark_type(c.type)})"), c).alias(c.name)
        for value, c in zip(values, definition.columns, strict=True)
    ]
    given_columns = [F.col(quoted(name)).alias(f"{_GIVEN}{n}") for n, name in enumerate(names)]
    refused = F.col(REFUSAL) if REFUSAL in rows.columns else F.lit(None).cast("string").alias(REFUSAL)
    filled = with_char(rows.select(*given_columns, *stored, refused), definition.columns)
    found = f"coalesce({REFUSAL}, {_violation(definition, table, filled)}) AS {REFUSAL}"
    return filled.selectExpr(*[f"{_GIVEN}{n} AS {quoted(name)}" for n, name in enumerate(names)], found)


def checked_changes(changes: DataFrame, merge_row: str, definition: TableDefinition, table: str) -> DataFrame:
    """Return the rows of a MERGE's plan, with a refusal where a case would store a row that a constraint forbids.

    Args:
        changes: rows of the plan, with :data:`~trinity.engine.writing.ingest.REFUSAL`.
        merge_row: name of the column with the row that a case makes, and its operation.
        definition: the target.
        table: full name of the target, for messages.
    """
    wide = with_char(changes.selectExpr("*", f"{quoted(merge_row)}.*"), definition.columns)
    stores = f"{quoted(merge_row)}.{CHANGE_OPERATION} <> {int(Operation.DELETE)}"
    found = f"coalesce({REFUSAL}, CASE WHEN {stores} THEN {_violation(definition, table, wide)} END) AS {REFUSAL}"
    return wide.selectExpr(*[found if name == REFUSAL else quoted(name) for name in changes.columns])


def _violation(definition: TableDefinition, table: str, rows: DataFrame) -> str:
    """Return Spark SQL, over rows with the table's columns, for the JSON of the first violation's error, or NULL."""
    refuse_folded(definition)
    _check_stored(definition, rows.sparkSession)
    alive = ""
    if definition.keyed and not all(c.every for c in definition.checks):
        alive = f"NOT coalesce({is_deleted(merge_spec(definition), rows)}, FALSE) AND "
    arms = [
        f"WHEN {'' if c.every else alive}NOT (\n{with_plain_comparisons(c.expression)}\n) "
        f"THEN {_error(definition, table, c)}"
        for c in definition.checks
    ]
    return f"CASE {' '.join(arms)} END"


def _check_stored(definition: TableDefinition, spark: SparkSession) -> None:
    for check in definition.checks:
        check_stored(spark, check.expression, f"CHECK constraint '{check.name}' of table '{definition.full_name}'")


def _error(definition: TableDefinition, table: str, check: Check) -> str:
    columns = constrained_columns(definition, check)
    shown = [f"coalesce(substring(CAST({quoted(name)} AS STRING), 1, {SHOWN_CHARACTERS}), 'NULL')" for name in columns]
    values = [f"concat({text_literal(f'{name} = ')}, {value})" for name, value in zip(columns, shown, strict=True)]
    head, end = map(text_literal, violation_text(table, check))
    message = f"concat({head}, concat_ws(', ', {', '.join(values) or text_literal('always')}), {end})"
    return f"to_json(named_struct('code', 'CONSTRAINT_VIOLATION', 'message', {message}))"

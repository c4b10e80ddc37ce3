"""Checks of a table's definition: its types, DEFAULTs and CHECKs. Spark makes checks that this process cannot make."""

from __future__ import annotations

from dataclasses import replace

from trinity.engine.executes import NotLocal, ThisProcess, execute
from trinity.engine.values.local.check_constraints import LocalChecks, no_zone
from trinity.spi import Check, TableDefinition
from trinity.target import Host


def check_types(definition: TableDefinition, session: Host) -> None:
    """Refuse types that the session's Spark lacks, DEFAULTs of a wrong type, and CHECKs that are no conditions.

    Raises:
        TrinityError: NOT_SUPPORTED naming a CHECK that only Spark evaluates, in a session that executes without it.
    """
    if any("time" in c.type.replace("timestamp", "") for c in definition.columns):
        execute(session, f"TIME in '{definition.full_name}'", lambda _: None, lambda: _check_times(definition, session))
    if any(c.default is not None for c in definition.columns):
        from trinity.engine.values.defaults import check_defaults

        check_defaults(definition, lambda: session.spark)
    for check in definition.checks:
        _check_condition(replace(definition, checks=(check,)), check, session)


def _check_times(definition: TableDefinition, session: Host) -> None:
    from trinity.spark.types import check_time_type

    check_time_type(definition.columns, session.spark)


def _check_condition(definition: TableDefinition, check: Check, session: Host) -> None:
    """Refuse a constraint that is no condition on one row. The definition has no other constraint."""

    def local(_: ThisProcess) -> NotLocal | None:
        found = LocalChecks.of(definition, definition.full_name, no_zone)
        return found if isinstance(found, NotLocal) else None

    def by_spark() -> None:
        from trinity.engine.values.spark.check_constraints import analyse_checks

        analyse_checks(session.spark, definition)

    what = f"CHECK constraint '{check.name}' of table '{definition.full_name}', ({check.expression}),"
    execute(session, what, local, by_spark, arrow=True)

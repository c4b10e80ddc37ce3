"""Row tracking: the numbers that Delta gives to rows, given by Trinity where it commits by itself.

Each file has the number of its first row, its ``baseRowId``, and the version that brought it; the table has the highest
number that was given. Rows that a compaction or a row change writes anew get new ones. (Who keeps numbers of rows that
are copied says so in a commit's tag ``delta.rowTracking.preserved``, which Trinity does not write.)
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.spi import TableHandle
from trinity_delta.actions import Action, domain

__all__ = [
    "ENABLED",
    "FEATURE",
    "MATERIALIZED",
    "ROW_DOMAIN",
    "check_tracking",
    "highest_row_id",
    "with_row_columns",
    "with_row_ids",
]

FEATURE: Final = "rowTracking"
ENABLED: Final = "delta.enableRowTracking"
"""Setting under which readers are shown the numbers of all rows."""
_SUPPORTED: Final = f"delta.feature.{FEATURE}"
ROW_DOMAIN: Final = "delta.rowTracking"
"""Domain metadata: the highest number that was given."""
MATERIALIZED: Final = {
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-",
}
"""Settings that name the columns in which other engines keep the numbers of copied rows, and how the names begin."""


def with_row_columns(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a table, with names of those columns where its rows are tracked."""
    if settings.get(ENABLED, "").lower() != "true":
        return dict(settings)
    return {**{key: f"{start}{uuid.uuid4()}" for key, start in MATERIALIZED.items()}, **settings}


def check_tracking(table: TableHandle, protocol: Mapping[str, Any], settings: Mapping[str, str]) -> None:
    """Refuses to begin with it in a table that may have rows without numbers.

    Args:
        table: the table.
        protocol: its ``protocol`` action.
        settings: the configuration that it is to have.

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY.
    """
    asked = settings.get(ENABLED, "").lower() == "true" or _SUPPORTED in settings
    if asked and FEATURE not in (protocol.get("writerFeatures") or ()):
        raise TrinityError(
            "INVALID_TABLE_PROPERTY",
            f"Table '{table.full_name}': row tracking can be asked for when the table is made, not later, for its rows "
            f"have no numbers. Leave '{ENABLED}' out, or let Spark's own ALTER TABLE number them.",
        )


def highest_row_id(said: Mapping[str, Any]) -> int:
    """The highest number that was given, by the table's domain metadata."""
    return int(json.loads(said["configuration"])["rowIdHighWaterMark"])


def with_row_ids(actions: Iterable[Mapping[str, Any]], highest: int, version: int) -> list[Action]:
    """The actions of a commit, in which new files have numbers for their rows; a file that was there keeps its own.

    Args:
        actions: the commit's.
        highest: the highest number that was given before; -1 for none.
        version: the commit's.
    """
    found, given = list[Action](), highest
    for action in actions:
        added = action.get("add")
        if added is None or added.get("baseRowId") is not None:
            found.append(dict(action))
            continue
        found.append({"add": {**added, "baseRowId": given + 1, "defaultRowCommitVersion": version}})
        given += json.loads(added["stats"])["numRecords"]
    return found if given == highest else [*found, domain(ROW_DOMAIN, {"rowIdHighWaterMark": given})]

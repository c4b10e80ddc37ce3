"""Row tracking: the numbers that Delta gives to rows; Trinity gives them in its own commits.

Each file has the number of its first row, its ``baseRowId``, and the version that added it. The table has the highest
number given. Rows that a compaction or a row change rewrites get new numbers. (A writer that keeps the numbers of
copied rows sets the commit's tag ``delta.rowTracking.preserved``, which Trinity does not write.)
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, Final

from trinity.errors import TrinityError
from trinity.spi import TableHandle
from trinity_delta.actions import Action, domain
from trinity_delta.schema import is_true

FEATURE: Final = "rowTracking"
ENABLED: Final = "delta.enableRowTracking"
"""Setting under which readers see the numbers of all rows."""
_SUPPORTED: Final = f"delta.feature.{FEATURE}"
ROW_DOMAIN: Final = "delta.rowTracking"
"""Domain metadata: the highest number given."""
MATERIALIZED: Final = {
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-",
}
"""Settings that name the columns in which other engines keep the numbers of copied rows, and how the names begin."""


def with_row_columns(settings: Mapping[str, str]) -> dict[str, str]:
    """Return a table's settings; if its rows are tracked, with names for the columns of :data:`MATERIALIZED`."""
    if not is_true(settings, ENABLED):
        return dict(settings)
    return {**{key: f"{start}{uuid.uuid4()}" for key, start in MATERIALIZED.items()}, **settings}


def check_tracking(table: TableHandle, protocol: Mapping[str, Any], settings: Mapping[str, str]) -> None:
    """Refuse to enable row tracking in a table that may have rows without numbers. Raises INVALID_TABLE_PROPERTY."""
    enabled = is_true(settings, ENABLED) or _SUPPORTED in settings
    if enabled and FEATURE not in (protocol.get("writerFeatures") or ()):
        raise TrinityError(
            "INVALID_TABLE_PROPERTY",
            f"Table '{table.full_name}': row tracking can be asked for when the table is made, not later, for its rows "
            f"have no numbers. Leave '{ENABLED}' out, or let Spark's own ALTER TABLE number them.",
        )


def highest_row_id(domain: Mapping[str, Any]) -> int:
    """Return the highest number given, from the table's domain metadata."""
    return int(json.loads(domain["configuration"])["rowIdHighWaterMark"])


def with_row_ids(actions: Iterable[Mapping[str, Any]], highest: int, version: int) -> list[Action]:
    """Return the actions of a commit, with numbers for the rows of new files, above the highest one given before.

    A file whose rows have numbers keeps them.
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

"""The changes of appends to a table that keeps rows whole: which of a key's versions won before and after each.

All versions of a key come to one task, each with the moment from which it exists, and are ranked; rank 1 wins. The
row at a moment is the version with the lowest rank among those that exist by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trinity.engine.feed.shape import VERSION
from trinity.engine.feed.spark.appends import Appends
from trinity.engine.feed.spark.images import AFTER, BEFORE, image, union
from trinity.engine.feed.steps import FIRST
from trinity.engine.reading.files import tiers
from trinity.engine.reading.spark.fold import without_null_keys
from trinity.engine.reading.spark.scan import log_scan
from trinity.engine.reading.spark.selection import to_user_columns
from trinity.hidden import ARRIVAL, DELETED, EXISTS_FROM
from trinity.merge.sql.fold import is_deleted, taking_part, winner_first
from trinity.spark_names import DataFrame
from trinity.spi import Column, arrival_order
from trinity.syntax.quoting import quoted

_RANK: Final = "_trinity_version_rank"
"""INT: rank of a version among those of its key; 1 wins."""
_IMAGE: Final = "_trinity_image"
"""Image of a version; NULL for one that deletes the row."""
_BASE: Final = -2
"""Arrival of base rows: before those of sidecar and log."""


def whole_row_pairs(appends: Appends, columns: Sequence[Column]) -> DataFrame:
    """Return the pairs of images of a run of appends; the images of a pair may be equal."""
    found = [_log(appends)]
    if (base := appends.of_base()) is not None:
        found.append(base.selectExpr("*", f"{_BASE}L AS {ARRIVAL}", f"{FIRST}L AS {EXISTS_FROM}", f"false {DELETED}"))
    spec, splits = appends.spec, appends.splits
    # key and ordering columns are repeated under names that no column of the table has
    names = dict.fromkeys((*spec.key, *spec.ordering))
    placed = {name: f"_trinity_ordering_{number}" for number, name in enumerate(names)}
    further = [f"{quoted(name)} AS {other}" for name, other in placed.items()]
    shown = f"IF({DELETED}, NULL, {image(columns, splits.definition)}) AS {_IMAGE}"
    rows = to_user_columns(union(found), splits, (*further, ARRIVAL, EXISTS_FROM, DELETED))
    rows = rows.selectExpr(*placed.values(), ARRIVAL, EXISTS_FROM, shown)
    key = ", ".join(placed[k] for k in spec.key)
    rank = f"row_number() OVER (PARTITION BY {key} ORDER BY {winner_first(spec, placed)}) AS {_RANK}"
    so_far = f"OVER (PARTITION BY {key} ORDER BY {EXISTS_FROM} RANGE BETWEEN UNBOUNDED PRECEDING AND"
    stood = f"min_by({_IMAGE}, {_RANK}) {so_far}"
    last = f"lead({EXISTS_FROM}) OVER (PARTITION BY {key} ORDER BY {EXISTS_FROM})"
    pairs = rows.selectExpr("*", rank).selectExpr(
        f"{EXISTS_FROM} AS {VERSION}",
        f"{stood} 1 PRECEDING) AS {BEFORE}",
        f"{stood} CURRENT ROW) AS {AFTER}",
        f"NOT {EXISTS_FROM} <=> {last} AS {_RANK}",
    )
    return pairs.where(f"{_RANK} AND {VERSION} > {FIRST}").select(VERSION, BEFORE, AFTER)


def _log(appends: Appends) -> DataFrame:
    """Return the versions of touched keys in log and sidecar, in storage form with arrival, moment and deletion."""
    splits, spec = appends.needed, appends.spec
    in_order = sorted(tiers(splits.files)[1], key=arrival_order)
    rows = without_null_keys(log_scan(appends.spark, splits, spec, in_order, splits.sidecar), splits, spec)
    rows = taking_part(spec, rows)
    if splits.sidecar or len(in_order) > len(appends.files):
        rows = appends.of(rows)
    stored = [quoted(field.name) for field in splits.storage]
    facts = [ARRIVAL, f"{appends.since(in_order)} AS {EXISTS_FROM}", f"{is_deleted(spec, rows)} AS {DELETED}"]
    return rows.selectExpr(*stored, *facts)

"""The plan of a merged read: chosen by statistics alone, in one function, and told in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

import pyarrow as pa

from trinity.engine.reading.base_buckets import layers, well_bucketed
from trinity.engine.reading.passed_rows import Outlook
from trinity.engine.reading.scan import tiers
from trinity.merge.spec import MergeSpec
from trinity.spi import DataFile, SplitSource

__all__ = ["Plan", "Way", "in_words", "plan_of"]


class Way(Enum):
    """A plan, and what it does in words."""

    SCAN = "a scan"
    KNOWN = "a scan that passes over rows by their places, which are known from a read before"
    SEARCH = (
        "a scan that passes over rows by their places; a job over key and ordering columns finds them first, "
        "and they are remembered"
    )
    KEYS = (
        "a scan that passes over rows by their places; those of the keys that are asked for are found first, "
        "by key and ordering columns"
    )
    LOG = "the log is exchanged by key and folded; there is no base to join"
    BUCKETS = "the log is folded and joined to the base, bucket by bucket: the base is neither exchanged nor sorted"
    JOIN = "the log is folded and joined to the base, both exchanged by key"
    BY_COLUMN = "base, sidecar and log are exchanged by key and folded column by column"


class Plan(NamedTuple):
    """A way to read, and what is known of the rows that it passes over by their places, where it does."""

    way: Way
    outlook: Outlook | None = None


def plan_of(
    splits: SplitSource,
    spec: MergeSpec | None,
    files: Sequence[DataFile],
    *,
    whole: bool,
    keys: pa.Table | None = None,
) -> Plan:
    """The plan that costs least.

    Args:
        splits: the version.
        spec: the options of its table; None for a plain one.
        files: those of the version that are left to be read.
        whole: False for a read that asks for some keys: a search would look all of them up.
        keys: those, where they are listed and the read leaves all others out.
    """
    base, log = tiers(files)
    if spec is None or not log:
        return Plan(Way.SCAN)
    if spec.by_column:
        return Plan(Way.BY_COLUMN)
    outlook = Outlook.of(splits, spec)
    if outlook is not None and outlook.is_known:
        return Plan(Way.KNOWN, outlook)
    if outlook is not None and whole and outlook.is_searchable:
        return Plan(Way.SEARCH, outlook)
    if outlook is not None and keys is not None and (some := outlook.of_keys(keys, files)).is_searchable:
        return Plan(Way.KEYS, some)
    if not base:
        return Plan(Way.LOG)
    inside, _ = layers(base, splits.definition)
    return Plan(Way.BUCKETS if well_bucketed(inside, splits.definition) else Way.JOIN)


def in_words(splits: SplitSource, files: Sequence[DataFile], way: Way) -> str:
    """The plan for people: what of the version is read, and how."""
    all_base, all_log = tiers(splits.files)
    base, log = tiers(files)
    deleted = sum(f.deletes.rows for f in files if f.deletes)
    tier_lines = [
        f"base: {_part(base, all_base)}",
        f"log: {_part(log, all_log)}, {_counted(len({f.commit for f in log}), 'commit')}",
    ]
    if splits.sidecar and log:
        tier_lines.append(f"sidecar: {_counted(_rows(splits.sidecar), 'row')} put aside by compaction")
    if deleted:
        tier_lines.append(f"deleted by position: {_counted(deleted, 'row')}, passed over as the files are read")
    if splits.native is not None:
        tier_lines.append("files are opened by the format's own reader, since others have changed rows in its way")
    head = f"merged read of {splits.definition.full_name} at version {splits.version}"
    return "\n".join([head, *tier_lines, f"plan: {way.value}"])


def _part(files: Sequence[DataFile], everything: Sequence[DataFile]) -> str:
    return f"{len(files):,} of {_counted(len(everything), 'file')}, {_counted(_rows(files), 'row')}"


def _rows(files: Iterable[DataFile]) -> int:
    return sum(f.live_rows for f in files)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")

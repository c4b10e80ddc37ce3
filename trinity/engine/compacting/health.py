"""The state of a table's files, by their statistics and footers: what its reads cost, and which compaction helps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from trinity.calls import public
from trinity.display import InNotebooks
from trinity.engine.compacting.levels import fresh_commits
from trinity.engine.compacting.sizes import crowded
from trinity.engine.reading.plan import ReadStrategy, plan_read
from trinity.merge.compaction_strength import Strength
from trinity.merge.properties import CompactionTrigger, compaction_trigger, keeps_versions
from trinity.spi import DataFile, SplitSource, Tier
from trinity.storage.parquet_files import live_rows_in

LOG_SHARE: Final = 0.1
"""Ratio of log rows to base rows from which a full compaction pays: at this ratio a first read costs two scans."""
COMMITS: Final = 20
"""Number of commits in the log from which a minor compaction pays: opening so many files is a tenth of a read."""
SUPERSEDED: Final = 0.3
"""Share of base rows deleted by position from which a full compaction pays: every read decodes them."""
_PASSING: Final = 1.4
"""Cost, in scans, of a read that skips rows deleted by position."""
_EXCHANGED: Final = 5.0
"""Cost, in scans, of a read that exchanges all rows by key: of a log without a base, or of a fold by column."""
MOST_SINCE_CHECKPOINT: Final = 100
"""Commits after the newest checkpoint above which a first read takes noticeably longer."""
_SINCE_CHECKPOINT: Final = (
    "The log has {:,} commits since its newest checkpoint, which each first reader goes through: have the engine that "
    "writes the table make one, or take 'delta.checkpointInterval' away there."
)
_CALLS: Final = {
    Strength.MINOR: "compact()",
    Strength.RESOLVE: 'compact("resolve")',
    Strength.FULL: "compact(full=True)",
}


@public
@dataclass(frozen=True)
class TierSize:
    """Size of one tier of a table.

    Attributes:
        files, bytes: number of files, and of their bytes.
        rows: number of live rows; None when a file's statistics lack it.
    """

    files: int
    rows: int | None
    bytes: int


@public
@dataclass(frozen=True)
class Health(InNotebooks):
    """State of a table's files, returned by ``table.health()``.

    Attributes:
        version: the version whose files these are.
        base: compacted rows, one per key.
        log: row versions as they were appended; all rows of a plain table.
        sidecar: rows that compaction took out of the base, such as tombstones; they are read when there is a log.
        superseded: number of base rows that a resolve has deleted by position; every read skips them.
        commits: number of commits in the log.
        log_share: ratio of log rows to base rows, or of their bytes where rows are not known; 0 without a log, infinite
            without a base.
        read_cost: ratio of the cost of a first merged read of the version to that of a scan of the base; estimated for
            the read's plan, from log share and commits, by the measurements of docs/performance.md.
        strength: the compaction that helps, ``minor``, ``resolve`` or ``full``; None when none does. The table's own
            ``compaction.trigger.*`` decide which, and from which size of the log on.
        since_checkpoint: number of commits after the newest checkpoint of Delta's log, which a first reader goes
            through; None for a format without checkpoints.
        advice: what to do, and why, in a sentence.
    """

    version: int
    base: TierSize
    log: TierSize
    sidecar: TierSize
    superseded: int
    commits: int
    log_share: float
    read_cost: float
    strength: str | None
    since_checkpoint: int | None
    advice: str


def health_of(splits: SplitSource, since_checkpoint: int | None = None) -> Health:
    """Return the state of a version; ``since_checkpoint`` commits follow the newest checkpoint of the format's log."""
    base = _size(f for f in splits.files if f.tier is Tier.BASE)
    log_files = [f for f in splits.files if f.tier is Tier.LOG]
    log, commits = _size(log_files), len({f.commit for f in log_files})
    superseded = sum(f.deletes.rows for f in splits.files if f.deletes and f.tier is Tier.BASE)
    share = log_share(splits)
    live = live_rows_in(f for f in splits.files if f.tier is Tier.BASE) if superseded else 1
    strength, advice = _advice(splits, log_files, share, commits, superseded / (superseded + live))
    if since_checkpoint is not None and since_checkpoint > MOST_SINCE_CHECKPOINT:
        advice = f"{advice} {_SINCE_CHECKPOINT.format(since_checkpoint)}"
    return Health(
        splits.version,
        base,
        log,
        _size(splits.sidecar),
        superseded,
        commits,
        share,
        _read_cost(splits, share, commits, superseded),
        strength,
        since_checkpoint,
        advice,
    )


def log_share(splits: SplitSource) -> float:
    """Return the ratio of log rows to base rows, or of their bytes where rows are not known.

    It is 0 without a log, and infinite without a base.
    """
    known = all(f.rows_known for f in splits.files)
    base, log = (
        sum(f.live_rows if known else f.size for f in splits.files if f.tier is tier) for tier in (Tier.BASE, Tier.LOG)
    )
    return log / base if base else float("inf") if log else 0.0


def _size(files: Iterable[DataFile]) -> TierSize:
    found = list(files)
    rows = sum(f.live_rows for f in found) if all(f.rows_known for f in found) else None
    return TierSize(len(found), rows, sum(f.size for f in found))


def _read_cost(splits: SplitSource, share: float, commits: int, superseded: int) -> float:
    """Estimate the cost of a first merged read, in scans of the base.

    Measured for reads by position: 1.5 with 1 % of the rows in the log, 1.8 with 10 %, 2.2 with 100 commits; for joins:
    1.7, 2.4 and 3.1.
    """
    plan = plan_read(splits, remembered=False)
    if plan.strategy is ReadStrategy.SCAN or not share:
        return _PASSING if superseded else 1.0
    if plan.strategy in (ReadStrategy.BY_COLUMN, ReadStrategy.LOG):
        return _EXCHANGED
    if plan.strategy is ReadStrategy.SEARCH:
        return min(_EXCHANGED, 1.45 + 3.5 * share + 0.004 * commits)
    return min(_EXCHANGED, 1.6 + 8 * share + 0.007 * commits)


def _advice(
    splits: SplitSource, log: list[DataFile], share: float, commits: int, superseded: float
) -> tuple[str | None, str]:
    definition = splits.definition
    if definition.external:
        return None, "The table is external: compact it by its own engine, or by compact() while that engine is idle."
    if not definition.keyed:
        small = sum(map(len, crowded(log)))
        return ("minor", f"compact(): {small} files are small.") if small else (None, "Its files have a good size.")
    if keeps_versions(definition.properties):
        return None, "The table keeps all row versions ('keep-versions'), so there is nothing to compact."
    if superseded >= SUPERSEDED:
        return "full", f"compact(full=True): {superseded:.0%} of the base is superseded, and every read passes over it."
    own = compaction_trigger(definition.properties)
    if (due := _due(own, share, due_commits(splits, own) if own else commits)) is None:
        return None, "The log is small." if log else "A read is a scan."
    strength, why = due
    return strength.value, f"{_CALLS[strength]}: the log {why}."


def due_commits(splits: SplitSource, trigger: CompactionTrigger) -> int:
    """Return the number of commits in the log that a trigger counts: if it folds by levels, those not folded yet."""
    if trigger.commits is not None and trigger.strength in (None, Strength.MINOR):
        return fresh_commits(splits.files, trigger.commits)
    return len({f.commit for f in splits.files if f.tier is Tier.LOG})


def _due(own: CompactionTrigger | None, share: float, commits: int) -> tuple[Strength, str] | None:
    """Return the compaction that a log of this state needs, by the limits that the table's properties name, and why."""
    limits = _limits(own or CompactionTrigger(None, None))
    if (strength := limits.due(share, commits)) is None:
        return None
    if limits.log_share is None or share < limits.log_share:
        return strength, f"has {commits} commits"
    return strength, f"is {share:.0%} of the base" if share != float("inf") else "is all there is"


def _limits(own: CompactionTrigger) -> CompactionTrigger:
    """Return a table's limits, with the default ones where it has none."""
    return CompactionTrigger(
        LOG_SHARE if own.log_share is None else own.log_share,
        COMMITS if own.commits is None else own.commits,
        own.strength,
    )

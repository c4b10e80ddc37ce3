"""The plan of a merged read in words: which files of the version are read, how, and by which executor."""

from __future__ import annotations

from collections.abc import Sequence

from trinity.engine.executes import NotLocal, execute, who_executes
from trinity.engine.reading.files import tiers
from trinity.engine.reading.plan import ReadPlan, session_plan
from trinity.spi import DataFile, SplitSource
from trinity.target import Host


def explained_read(session: Host, splits: SplitSource, where: str | None) -> str:
    """Return the plan of a merged read in words. Raises as :meth:`trinity.Table.explain`."""
    plan = session_plan(session, splits, where)
    if where is not None:
        execute(
            session,
            f"The predicate ({where})",
            lambda _: plan.not_evaluated,
            lambda: _check_by_spark(session, where),
        )
    return in_words(plan, _executor_in(session, plan))


def _check_by_spark(session: Host, where: str) -> None:
    from trinity.engine.reading.spark.merged_read import check_predicate

    check_predicate(session, where)


def _executor_in(session: Host, plan: ReadPlan) -> str:
    process, refused = who_executes(session, arrow=True), plan.not_local
    if isinstance(process, NotLocal):
        return _executor(refused or process)
    if process.alone:
        return "this process" if refused is None else f"none, since this needs Spark: {refused.reason}"
    return _executor(refused)


def in_words(plan: ReadPlan, executor: str | None = None) -> str:
    """Describe a plan for people. Without an executor's name the text says which calls Spark executes."""
    splits = plan.splits
    all_base, all_log = tiers(splits.files)
    base, log = tiers(plan.files)
    deleted = sum(f.deletes.rows for f in plan.files if f.deletes)
    lines = [
        f"merged read of {splits.definition.full_name} at version {splits.version}",
        f"base: {_part(base, all_base)}",
        f"log: {_part(log, all_log)}, {_counted(len({f.commit for f in log}), 'commit')}",
    ]
    if splits.sidecar and log:
        lines.append(f"sidecar: {_rows(splits.sidecar)} moved there by compaction")
    if deleted:
        lines.append(f"deleted by position: {_counted(deleted, 'row')}, passed over as the files are read")
    if splits.native is not None:
        lines.append("Spark opens files by the format's own reader, since others may have changed rows in its way")
    return "\n".join([*lines, f"plan: {plan.strategy.value}", f"executor: {executor or _executor(plan.not_local)}"])


def _executor(refused: NotLocal | None) -> str:
    if refused is None:
        return "Spark; to_arrow() reads in this process, without it"
    return f"Spark, for to_arrow() too: {refused.reason}"


def _part(files: Sequence[DataFile], everything: Sequence[DataFile]) -> str:
    return f"{len(files):,} of {_counted(len(everything), 'file')}, {_rows(files)}"


def _rows(files: Sequence[DataFile]) -> str:
    """Return the number of rows by the format's metadata."""
    known = all(f.rows_known for f in files)
    return _counted(sum(f.live_rows for f in files), "row") if known else "an unknown number of rows"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")

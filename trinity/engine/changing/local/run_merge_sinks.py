"""The run of merge sinks in threads of this process: the same tasks as in Spark (S1-S6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from trinity.engine.changing.change_tasks import ChangeTask, SinkTask, Written, collect_results

__all__ = ["Part", "write_changes"]

Part = Callable[[], Iterable[pa.RecordBatch]]
"""Makes rows of the plan: layout columns, row id, merge row, refusal. All rows of one row id are of one part."""


def write_changes(parts: Sequence[Part], last: Part, task: ChangeTask, sink: SinkTask) -> Written:
    """Write the changes, and commit nothing.

    Args:
        parts: made side by side, each with a sink of its own.
        last: made when the others are.
        task: turns rows of the plan into changes.
        sink: takes these.

    Raises:
        TrinityError: the errors of conforming, guard and sink, and of the statement's expressions.
    """

    def run(order: int, part: Part) -> list[bytes]:
        return sink(order, task(part()))

    if len(parts) > 1:
        with ThreadPoolExecutor(min(len(parts), pa.cpu_count())) as pool:
            found = list(pool.map(run, range(len(parts)), parts))
    else:
        found = [run(order, part) for order, part in enumerate(parts)]
    return collect_results([fragment for fragments in [*found, run(len(parts), last)] for fragment in fragments])

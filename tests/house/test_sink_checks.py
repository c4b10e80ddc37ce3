"""The sink checks need no Spark, and can fail. test_conformance.py runs them on all adapters (``merge-sinks``)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import trinity
from trinity.memory import MemoryFormat
from trinity.spi import (
    Connector,
    ConnectorContext,
    MergeSink,
    MergeTableHandle,
    PageSink,
    PageSinkProvider,
    SinkId,
    WriteTarget,
)
from trinity.storage import ParquetSinkProvider
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.sink_bench import SinkBench
from trinity_conformance.playing.sink_checks import SINK_CHECKS


def test_sinks_need_no_spark(tmp_path: Path) -> None:
    code = f"""
import sys, trinity
from trinity_conformance.playing.sink_bench import SinkBench
from trinity_conformance.playing.sink_checks import SINK_CHECKS
for connector in ("memory", "parquet"):
    catalogs = {{"c": {{"connector": connector, "warehouse": {str(tmp_path)!r} + "/" + connector}}}}
    with trinity.connect(catalogs=catalogs, catalog="c") as session:
        for check in SINK_CHECKS.values():
            check(SinkBench(session, "c"))
print("pyspark" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "False", found.stderr


class Faulty(PageSinkProvider):
    """The shared sinks with one fault.

    Args:
        fault: the change of a page before the sink gets it; or ``abort``.
    """

    def __init__(self, fault: Callable[[pa.RecordBatch], pa.RecordBatch] | str) -> None:
        self.fault = fault

    def create_page_sink(self, target: WriteTarget, sink: SinkId) -> PageSink:
        return ParquetSinkProvider().create_page_sink(target, sink)

    def updates_in_place(self, merge: MergeTableHandle) -> bool:
        return ParquetSinkProvider().updates_in_place(merge)

    def create_merge_sink(self, merge: MergeTableHandle, sink: SinkId) -> MergeSink:
        return FaultySink(ParquetSinkProvider().create_merge_sink(merge, sink), self.fault)


class FaultySink(MergeSink):
    def __init__(self, inner: MergeSink, fault: Callable[[pa.RecordBatch], pa.RecordBatch] | str) -> None:
        self.inner = inner
        self.fault = fault

    def store_merged_rows(self, page: pa.RecordBatch) -> None:
        self.inner.store_merged_rows(page if isinstance(self.fault, str) else self.fault(page))

    def finish(self) -> list[bytes]:
        return self.inner.finish()

    def abort(self) -> None:
        if self.fault == "abort":
            self.inner.finish()
        else:
            self.inner.abort()


def only(page: pa.RecordBatch, *operations: int) -> pa.RecordBatch:
    return page.filter(pc.is_in(page.column("operation"), value_set=pa.array(operations, pa.int8())))


def known_only(page: pa.RecordBatch) -> pa.RecordBatch:
    return only(page, 1, 2, 4, 5)


def no_deletes(page: pa.RecordBatch) -> pa.RecordBatch:
    return only(page, 0, 1, 3, 4, 6)


def no_delete_halves(page: pa.RecordBatch) -> pa.RecordBatch:
    return only(page, 0, 1, 2, 3, 4, 6)


def no_insert_halves(page: pa.RecordBatch) -> pa.RecordBatch:
    return only(page, 0, 1, 2, 3, 5, 6)


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (known_only, "operations"),
        (no_deletes, "plain-changes"),
        (no_deletes, "tombstones"),
        (no_delete_halves, "moved-keys"),
        (no_delete_halves, "halves-in-different-sinks"),
        (no_insert_halves, "columns-that-stay"),
        (no_insert_halves, "kept-keys"),
        (no_insert_halves, "keys-of-every-type"),
        ("abort", "aborted"),
    ],
)
def test_a_faulty_sink_is_found_out(fault: Callable[[pa.RecordBatch], pa.RecordBatch] | str, check: str) -> None:
    class FaultyFormat(MemoryFormat):
        def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
            connector = super().create(catalog, options, context)
            connector.sinks = Faulty(fault)
            return connector

    with (
        trinity.connect(catalogs={"c": {"connector": FaultyFormat}}, catalog="c") as session,
        pytest.raises(NonConformance),
    ):
        SINK_CHECKS[check](SinkBench(session, "c"))

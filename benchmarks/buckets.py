"""``python -m benchmarks.buckets``: appends and reads of tables in a bucket, and the plain tools there.

The store is a SeaweedFS of the benchmark's own on this machine, or the one that ``--place`` and the environment name.
Each read is measured on a disk, too, in the same run: the bucket's ratio is to be the disk's.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import pyarrow.parquet as pq
import typer
from pyarrow.fs import FileSystem, S3FileSystem
from rich.console import Console

import trinity
from benchmarks.data import changes
from benchmarks.machine import facts
from benchmarks.reads import ReadBench
from benchmarks.result_files import RESULTS, save_results
from benchmarks.results import Result
from benchmarks.run import SETTINGS, table_of
from benchmarks.tables import Scene, arrow_rows
from benchmarks.timing import Rounds, in_turns
from trinity import TableName

_SERVERS = ("master", "volume", "filer", "s3")
_PATIENCE_S = 60
_KEY = {"access_key_id": "AKIABENCH0000001", "secret_access_key": "of-this-benchmark-alone"}


@dataclass
class BucketBench(ReadBench):
    """Appends to tables in a bucket, and reads of them.

    Attributes:
        place: where the reference's files are, ``s3://bucket/path``.
        files: the bucket's files, for pyarrow.
    """

    place: str = ""
    files: FileSystem = field(default_factory=S3FileSystem)

    def cases(self) -> Iterator[Result]:
        """Measure every case in turn."""
        yield from self.append_in_bucket()
        yield from super().cases()

    def append_in_bucket(self) -> Iterator[Result]:
        """Measure an append of a tenth of the rows from Arrow, compared with ``pq.write_table`` to the same bucket."""
        self.scene.prepared("changed_10", changes(self.session.spark, self.rows, self.rows // 10, 200, 2))
        rows, table = arrow_rows(self.folder / "changed_10"), self.scene.new_table(self.catalog)
        one, target = rows.slice(0, 1), f"{self.place.removeprefix('s3://')}/reference.parquet"

        def plainly() -> None:
            pq.write_table(rows, target, filesystem=self.files)

        commit, _ = in_turns(self.runs, lambda: table.upsert(one), lambda: None)
        ours, reference = in_turns(self.runs, lambda: table.upsert(rows), plainly)
        yield Result("append, Arrow table", self.catalog, ours, reference, 1.3, commit.median)

    def _path(self, name: str) -> str:
        return f"{self.place}/{name}".replace("s3://", "s3a://")


@contextmanager
def _seaweed() -> Iterator[dict[str, Any]]:
    """Start a store on this machine, and yield the options by which it is reached."""
    program = str(Path(sysconfig.get_path("scripts"), "weed"))
    folder = Path(tempfile.mkdtemp(prefix="trinity-bench-"))
    key = {"accessKey": _KEY["access_key_id"], "secretKey": _KEY["secret_access_key"]}
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [{"name": "bench", "credentials": [key], "actions": ["Admin"]}]}))
    free = dict(
        zip([f"-{server}.port{kind}" for server in _SERVERS for kind in ("", ".grpc")], _free_ports(8), strict=True)
    )
    ports, port = [f"{option}={number}" for option, number in free.items()], free["-s3.port"]
    volumes = ("-volume.max=0", "-master.volumeSizeLimitMB=64", "-s3.port.iceberg=0", "-s3.port.lance=0")
    local = ("-ip=127.0.0.1", "-ip.bind=127.0.0.1")
    command = [program, "server", f"-dir={folder}", *local, *volumes, "-filer", "-s3", f"-s3.config={config}", *ports]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.2)
        yield {"endpoint": f"http://127.0.0.1:{port}", "allow_http": True, **_KEY}
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as opened:
        found = [opened.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in found]


def _files(options: Mapping[str, Any]) -> FileSystem:
    """Return the store as pyarrow reaches it, with the keys of the environment."""
    if not options:
        return S3FileSystem(endpoint_override=os.environ.get("AWS_ENDPOINT_URL"))
    address = str(options["endpoint"]).removeprefix("http://")
    return S3FileSystem(
        endpoint_override=address,
        scheme="http",
        access_key=_KEY["access_key_id"],
        secret_key=_KEY["secret_access_key"],
        region="us-east-1",
        allow_bucket_creation=True,
    )


def run(
    rows: Annotated[int, typer.Option(min=1000, help="Rows of the base.")] = 4_000_000,
    runs: Annotated[int, typer.Option(min=1, help="Rounds per case; the median counts.")] = 3,
    formats: Annotated[str, typer.Option(help="Which formats, with commas.")] = "parquet,delta,iceberg",
    place: Annotated[str, typer.Option(help="s3://bucket/path; a store of its own by default.")] = "",
    name: Annotated[str, typer.Option(help="Name of the result file.")] = "buckets",
    results: Annotated[Path, typer.Option(help="Folder of the result file.")] = RESULTS,
) -> None:
    """Measure Trinity and the plain tools in a bucket."""
    known, found = {**facts(), "rows": rows, "runs": runs}, list[Result]()
    with ExitStack() as opened:
        folder, options = Path(opened.enter_context(tempfile.TemporaryDirectory())), dict[str, Any]()
        if not place:
            options, place = opened.enter_context(_seaweed()), "s3://bench/tables"
            _files(options).create_dir("bench")
        for result in _measured(folder, place, options, formats.split(","), rows, runs):
            found.append(result)
            save_results([result], name, known, results)
            print(f"{result.catalog:8} {result.case:58} {result.ratio:6.2f}x  budget {result.budget}", flush=True)
    Console().print(table_of(found))


def _measured(
    folder: Path, place: str, options: Mapping[str, Any], formats: list[str], rows: int, runs: int
) -> Iterator[Result]:
    with trinity.connect(catalogs=_catalogs(folder, place, options), spark_settings=SETTINGS) as session:
        scene, files = Scene(session, rows, Rounds(runs), folder), _files(options)
        for fmt in formats:
            bucket = BucketBench(scene, f"{fmt}_bucket", place=place, files=files)
            for bench in (bucket, ReadBench(scene, f"{fmt}_disk")):
                where = "bucket" if bench is bucket else "disk"
                for result in bench.cases():
                    yield replace(result, case=f"{where}: {result.case}", catalog=fmt)
                for table in session.list_tables(bench.catalog, "default"):
                    session.drop_table(TableName(bench.catalog, "default", table))
        session.spark.stop()


def _catalogs(folder: Path, place: str, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options of two catalogs for each format: one in the bucket, one on a disk."""
    catalogs: dict[str, dict[str, Any]] = {}
    for fmt in ("parquet", "delta", "iceberg"):
        catalogs[f"{fmt}_disk"] = {"connector": fmt, "warehouse": str(folder / "disk" / fmt)}
        catalogs[f"{fmt}_bucket"] = {
            "connector": fmt,
            "warehouse": f"{place}/{fmt}",
            "storage_options": dict(options),
        }
    catalogs["iceberg_bucket"]["uri"] = f"sqlite:///{folder}/catalog.db"
    return catalogs


def main() -> None:
    """Run the command."""
    typer.run(run)


if __name__ == "__main__":
    main()

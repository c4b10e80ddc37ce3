"""Missing permissions to read or write are PERMISSION_DENIED in every format, and the table is unchanged."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

SCRIPT: Final = """
import os, sys
import pyarrow as pa, trinity
from trinity import Column, TrinityError

root = os.geteuid() == 0

def everything(place):
    yield place
    for above, folders, files in os.walk(place):
        yield from (os.path.join(above, found) for found in (*folders, *files))

def spoil(place, cause):
    "Root may do everything, so that it becomes somebody else."
    for path in everything(place) if cause == "read-only" else [place]:
        os.chmod(path, (0o555 if os.path.isdir(path) else 0o444) if cause == "read-only" else 0o000)
    if root:
        os.seteuid(65534)

def mend(place):
    if root:
        os.seteuid(0)
    os.chmod(place, 0o755)
    for path in everything(place):
        os.chmod(path, 0o755)

def told(what, work):
    try:
        work()
        code = "done"
    except TrinityError as error:
        code = error.code
    return f"{what} {code}"

def beside(place, fmt):
    return trinity.connect(catalogs={"new": {"connector": fmt, "warehouse": os.path.join(place, "new")}})

def tried(fmt, cause, spoil):
    place = os.path.join(sys.argv[1], fmt, cause)
    name, columns = f"{fmt}.default.t", [Column("k", "int"), Column("v", "string")]
    row = pa.table({"k": [2], "v": ["b"]})
    with trinity.connect(place) as session:
        table = session.create_table(name, columns, primary_key=["k"])
        table.upsert(pa.table({"k": [1], "v": ["a"]}))
        spoil(place, cause)
        yield told("upsert", lambda: table.upsert(row))
        yield told("vacuum", lambda: table.vacuum("0 seconds"))
        yield told("create", lambda: session.create_table(f"{fmt}.default.u", columns))
        yield told("connect", lambda: trinity.connect(place).table(name).to_arrow())
        yield told("new", lambda: trinity.connect(os.path.join(place, "new/w")))
        yield told("first", lambda: beside(place, fmt).create_table("new.default.t", columns))
        yield told("drop", lambda: session.drop_table(name))
        mend(place)
        if cause != "nothing":
            yield f"rows {session.table(name).to_arrow().num_rows}"

FORMATS = ("parquet", "delta", "iceberg")
for fmt in FORMATS:
    list(tried(fmt, "nothing", lambda place, cause: None))  # what is imported late is not for everybody to read
for fmt in FORMATS:
    for cause in ("read-only", "closed"):
        print(fmt, cause, *tried(fmt, cause, spoil))
"""
WRITES: Final = ("upsert", "vacuum", "create", "drop", "new", "first")
CODES: Final = {
    "read-only": {**dict.fromkeys(WRITES, "PERMISSION_DENIED"), "connect": "done"},
    "closed": dict.fromkeys((*WRITES, "connect"), "PERMISSION_DENIED"),
}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that other users can read, unlike pytest's."""
    with tempfile.TemporaryDirectory() as found:
        Path(found).chmod(0o755)
        yield Path(found)


def test_codes_do_not_depend_on_the_format(open_folder: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(open_folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        fmt, cause, *found = line.split()
        outcome = dict(zip(found[::2], found[1::2], strict=True))
        assert outcome == {**CODES[cause], "rows": "1"}, (fmt, cause)
    assert len(done.stdout.splitlines()) == 3 * len(CODES)

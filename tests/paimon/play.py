"""Real Paimon plays histories in its own environment; rows are passed both ways as Parquet files."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from trinity.spi import arrow_type
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.tables import Row
from trinity_conformance.model.values import decode
from trinity_conformance.playing.traces import Compact, History, Upsert

_DRIVER: Final = Path(__file__).with_name("driver.py")
_ROOT: Final = _DRIVER.parents[2]


@dataclass(frozen=True)
class Answer:
    """Paimon's answer to a history.

    Attributes:
        rows: the merged rows; None when it failed.
        error: the error.
    """

    rows: tuple[Row, ...] | None
    error: str = ""


def answers(histories: Mapping[str, History], folder: Path) -> dict[str, Answer]:
    """Return Paimon's answers to histories of upserts and compactions.

    Args:
        histories: name of a table -> its history.
        folder: the folder of the tables.
    """
    plan = [_plan(name, history, folder) for name, history in histories.items()]
    (folder / "plan.json").write_text(json.dumps(plan))
    python = Path(os.environ.get("PAIMON_PYTHON", _ROOT / ".venv-paimon" / "bin" / "python"))
    if not python.exists():
        raise FileNotFoundError(f"no environment with pyspark 3.5 at {python}: run `make test-paimon`")
    environment = {**os.environ, "PYSPARK_PYTHON": str(python)}
    with (folder / "driver.log").open("w") as log:
        done = subprocess.run([python, _DRIVER, folder], env=environment, stdout=log, stderr=log, check=False)
    if done.returncode:
        raise RuntimeError(f"the driver failed:\n{(folder / 'driver.log').read_text()[-4000:]}")
    return {name: _answer(folder, name) for name in histories}


def _plan(name: str, history: History, folder: Path) -> dict[str, object]:
    steps = []
    for number, step in enumerate(history.steps):
        if isinstance(step, Compact):
            steps.append("compact")
        elif isinstance(step, Upsert):
            pq.write_table(_arrow(history.shape, step), folder / f"{name}-{number}.parquet")
            steps.append(f"{name}-{number}.parquet")
        else:
            raise ValueError(f"{step.op} is none of what Paimon is asked")
    return {"name": name, "ddl": _ddl(history.shape), "steps": steps}


def _arrow(shape: Shape, step: Upsert) -> pa.Table:
    """Return the rows of a commit; omitted columns are NULL, as in an INSERT with a list of columns."""
    names = step.names or shape.names
    places = {name: place for place, name in enumerate(names)}
    columns = {
        c.name: pa.array(
            [decode(c.type, row[places[c.name]]) if c.name in places else None for row in step.rows], arrow_type(c.type)
        )
        for c in shape.columns
    }
    return pa.table(columns)


def _ddl(shape: Shape) -> str:
    """Return the CREATE TABLE for Paimon; ``write-only`` keeps it from compacting except where the history says so."""
    columns = ", ".join(f"{c.name} {c.type}{' NOT NULL' if c.name in shape.key else ''}" for c in shape.columns)
    parts = f" PARTITIONED BY ({', '.join(shape.partition_by)})" if shape.partition_by else ""
    own = {"primary-key": ",".join(shape.key), "bucket": "1"}
    if shape.engine != "first-row":  # its reads return rows of compacted files only
        own["write-only"] = "true"
    options = ", ".join(f"'{key}' = '{value}'" for key, value in {**shape.options(), **own}.items())
    return f"CREATE TABLE {{table}} ({columns}){parts} TBLPROPERTIES ({options})"


def _answer(folder: Path, name: str) -> Answer:
    error = folder / f"{name}.error"
    if error.exists():
        return Answer(None, error.read_text())
    return Answer(tuple(pq.read_table(folder / f"{name}.rows").to_pylist()))

"""``python -m tests.world [WORD...]`` asks the systems, and keeps what they did in docs/runs/systems.json.

Of the systems that none of the words is in the name of, what they did before stays.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.support.oracles import Oracle, Postgres
from tests.support.paths import ROOT
from tests.support.postgres import running_server
from tests.support.spark import started
from tests.world.asking import ask
from tests.world.laws import LAWS
from tests.world.players import DeltaRs, DuckDbMerge, DuckDbStatements, PostgresMerge, PyIceberg
from tests.world.spark_players import (
    DeltaStatements,
    IcebergStatements,
    SparkMerge,
    delta_merge,
    iceberg_merge,
    taken_by_spark,
)
from trinity_conformance.model.statements import BY_SOURCE, Statement
from trinity_delta.format import DELTA_JAR
from trinity_iceberg.format import ICEBERG_JAR

_HISTORIES: Final = 40
_OF_SPARK: Final = 10
"""Histories of a system in Spark, where a MERGE takes a second."""
_KEPT: Final = ROOT / "docs/runs/systems.json"


@contextmanager
def _systems(folder: Path) -> Iterator[Mapping[str, tuple[Oracle, Oracle | None]]]:
    """Yields name and version -> the player of upserts, and that of statements."""
    with running_server() as running:
        spark = started(folder / "spark", short_tier=False)
        postgres = Postgres(running.options)
        number = str(postgres.connection.info.server_version // 10000)
        yield {
            f"delta-rs merge {version('deltalake')}": (DeltaRs(folder), None),
            f"PyIceberg upsert {version('pyiceberg')}": (PyIceberg(folder), None),
            f"DuckDB MERGE {version('duckdb')}": (DuckDbMerge(), DuckDbStatements()),
            f"PostgreSQL MERGE {number}": (PostgresMerge(running.options), postgres),
            f"Delta MERGE {_version(DELTA_JAR)}": (
                delta_merge(spark, folder),
                DeltaStatements(spark, folder / "of_delta"),
            ),
            f"Iceberg MERGE {_version(ICEBERG_JAR)}": (
                iceberg_merge(spark, folder / "upserts"),
                IcebergStatements(spark, folder / "of_iceberg"),
            ),
        }
        spark.stop()


def _version(jar: str) -> str:
    return jar.rpartition(":")[2]


def _taken_by(subject: Oracle) -> Callable[[Statement], bool]:
    """Which statements a system knows: PostgreSQL has WHEN NOT MATCHED BY SOURCE from 17 on."""
    if isinstance(subject, (DeltaStatements, IcebergStatements)):
        return taken_by_spark
    if not isinstance(subject, Postgres) or subject.by_source:
        return lambda _: True
    return lambda statement: all(case.when != BY_SOURCE for case in statement.cases)


def main(words: Sequence[str]) -> None:
    """Asks the systems with one of some words in their names, or every one, about every law."""
    found = json.loads(_KEPT.read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder, _systems(Path(folder)) as systems:
        for name, (upserts, statements) in systems.items():
            if not words or any(word in name for word in words):
                histories = _OF_SPARK if isinstance(upserts, SparkMerge) else _HISTORIES
                found["answers"][name] = _answers(upserts, statements, histories)
                found["dates"][name] = datetime.now(UTC).date().isoformat()
        of_now = {
            kind: {name: found[kind][name] for name in systems if name in found[kind]} for kind in ("dates", "answers")
        }
    found = {"histories": _HISTORIES, "of_spark": _OF_SPARK, **of_now}
    _KEPT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _answers(upserts: Oracle, statements: Oracle | None, histories: int) -> dict[str, Any]:
    """Asks one system."""
    asked = ((law, statements if law.asked else upserts) for law in LAWS)
    return {
        law.title: ask(subject, law, histories, _taken_by(subject)).to_json()
        for law, subject in asked
        if subject is not None
    }


if __name__ == "__main__":
    main(sys.argv[1:])

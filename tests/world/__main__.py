"""``python -m tests.world [WORD...]`` tests the systems, and saves their results in docs/runs/systems.json.

Systems whose names contain none of the words keep their saved results. ``make world`` makes the environments of those
that need their own, and tests all.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
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
from tests.world.paimon_players import PaimonMerge, PaimonStatements, PyPaimon, paimon, pypaimon, taken_by_paimon
from tests.world.players import DeltaRs, DuckDbMerge, DuckDbStatements, PostgresMerge, PyIceberg
from tests.world.spark_players import (
    DeltaStatements,
    IcebergStatements,
    delta_merge,
    iceberg_merge,
    taken_by_spark,
)
from trinity_conformance.model.statements import BY_SOURCE, Statement
from trinity_delta.format import DELTA_JAR
from trinity_iceberg.format import ICEBERG_JAR

_HISTORIES: Final = 40
_OF_SPARK: Final = 10
"""Number of histories of a system in Spark, where a MERGE takes a second."""
_KEPT: Final = ROOT / "docs/runs/systems.json"


@dataclass(frozen=True)
class _Players:
    """A running system: its version, the player of upserts, and that of statements, if it has SQL."""

    version: str
    upserts: Oracle
    statements: Oracle | None = None


@contextmanager
def _delta_rs(folder: Path) -> Iterator[_Players]:
    yield _Players(version("deltalake"), DeltaRs(folder))


@contextmanager
def _pyiceberg(folder: Path) -> Iterator[_Players]:
    yield _Players(version("pyiceberg"), PyIceberg(folder))


@contextmanager
def _duckdb(_: Path) -> Iterator[_Players]:
    yield _Players(version("duckdb"), DuckDbMerge(), DuckDbStatements())


@contextmanager
def _postgres(_: Path) -> Iterator[_Players]:
    with running_server() as running, Postgres(running.options) as statements:
        number = str(statements.connection.info.server_version // 10000)
        yield _Players(number, PostgresMerge(running.options), statements)


@contextmanager
def _delta(folder: Path) -> Iterator[_Players]:
    spark = started(folder / "spark", short_tier=False)
    yield _Players(_of(DELTA_JAR), delta_merge(spark, folder), DeltaStatements(spark, folder / "plain"))
    spark.stop()


@contextmanager
def _iceberg(folder: Path) -> Iterator[_Players]:
    spark = started(folder / "spark", short_tier=False)
    upserts, statements = iceberg_merge(spark, folder / "upserts"), IcebergStatements(spark, folder / "plain")
    yield _Players(_of(ICEBERG_JAR), upserts, statements)
    spark.stop()


@contextmanager
def _paimon(folder: Path) -> Iterator[_Players]:
    with paimon(folder) as worker:
        yield _Players(PaimonMerge.version, PaimonMerge(worker), PaimonStatements(worker))


@contextmanager
def _pypaimon(folder: Path) -> Iterator[_Players]:
    with pypaimon(folder) as worker:
        yield _Players(worker.ask("version"), PyPaimon(worker))


def _of(jar: str) -> str:
    return jar.rpartition(":")[2]


_SYSTEMS: Final[Mapping[str, tuple[Callable[[Path], AbstractContextManager[_Players]], int]]] = {
    "delta-rs merge": (_delta_rs, _HISTORIES),
    "PyIceberg upsert": (_pyiceberg, _HISTORIES),
    "DuckDB MERGE": (_duckdb, _HISTORIES),
    "PostgreSQL MERGE": (_postgres, _HISTORIES),
    "Delta MERGE": (_delta, _OF_SPARK),
    "Iceberg MERGE": (_iceberg, _OF_SPARK),
    "Apache Paimon": (_paimon, _OF_SPARK),
    "pypaimon": (_pypaimon, _HISTORIES),
}
"""System -> (its runner, the number of histories of a law)."""


def _taken_by(subject: Oracle) -> Callable[[Statement], bool]:
    """Return a function that selects the statements that a system knows. PostgreSQL 17 added NOT MATCHED BY SOURCE."""
    if isinstance(subject, PaimonStatements):
        return taken_by_paimon
    if subject.dialect == "spark":
        return taken_by_spark
    if not isinstance(subject, Postgres) or subject.by_source:
        return lambda _: True
    return lambda statement: all(case.when != BY_SOURCE for case in statement.cases)


def main(words: Sequence[str]) -> None:
    """Ask the systems whose name contains one of these words, or all systems, about every law."""
    found = json.loads(_KEPT.read_text(encoding="utf-8"))
    dates, answers = found["dates"], found["answers"]
    for system, (running, histories) in _SYSTEMS.items():
        if words and not any(word in system for word in words):
            continue
        with TemporaryDirectory() as folder, running(Path(folder)) as players:
            for other in [name for name in answers if name.startswith(f"{system} ")]:
                del answers[other], dates[other]
            name = f"{system} {players.version}"
            answers[name] = _answers(players, histories)
            dates[name] = datetime.now(UTC).date().isoformat()
    order = sorted(answers, key=lambda name: list(_SYSTEMS).index(name.rpartition(" ")[0]))
    of_now = {"dates": {name: dates[name] for name in order}, "answers": {name: answers[name] for name in order}}
    found = {"histories": _HISTORIES, "of_spark": _OF_SPARK, **of_now}
    _KEPT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _answers(players: _Players, histories: int) -> dict[str, Any]:
    """Ask one system about every law."""
    asked = ((law, players.statements if law.asked else players.upserts) for law in LAWS)
    return {
        law.title: ask(subject, law, histories, _taken_by(subject)).to_json()
        for law, subject in asked
        if subject is not None
    }


if __name__ == "__main__":
    main(sys.argv[1:])

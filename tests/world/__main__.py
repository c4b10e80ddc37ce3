"""``python -m tests.world`` asks the systems, and keeps what they did in docs/runs/systems.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.support.oracles import Oracle, Postgres
from tests.support.paths import ROOT
from tests.support.postgres import running_server
from tests.world.asking import ask
from tests.world.laws import LAWS
from tests.world.players import DeltaRs, DuckDbMerge, DuckDbStatements, PostgresMerge, PyIceberg
from trinity_conformance.model.statements import BY_SOURCE, Statement

_HISTORIES: Final = 40
_KEPT: Final = ROOT / "docs/runs/systems.json"


@contextmanager
def _systems(folder: Path) -> Iterator[Mapping[str, tuple[Oracle, Oracle | None]]]:
    """Yields name and version -> the player of upserts, and that of statements."""
    with running_server() as running:
        postgres = Postgres(running.options)
        number = str(postgres.connection.info.server_version // 10000)
        yield {
            f"delta-rs merge {version('deltalake')}": (DeltaRs(folder), None),
            f"PyIceberg upsert {version('pyiceberg')}": (PyIceberg(folder), None),
            f"DuckDB MERGE {version('duckdb')}": (DuckDbMerge(), DuckDbStatements()),
            f"PostgreSQL MERGE {number}": (PostgresMerge(running.options), postgres),
        }


def _taken_by(subject: Oracle) -> Callable[[Statement], bool]:
    """Which statements a system knows: PostgreSQL has WHEN NOT MATCHED BY SOURCE from 17 on."""
    if not isinstance(subject, Postgres) or subject.by_source:
        return lambda _: True
    return lambda statement: all(case.when != BY_SOURCE for case in statement.cases)


def main() -> None:
    """Asks every system about every law."""
    answers: dict[str, dict[str, Any]] = {}
    with TemporaryDirectory() as folder, _systems(Path(folder)) as systems:
        for name, (upserts, statements) in systems.items():
            answers[name] = {}
            for law in LAWS:
                if (subject := statements if law.asked else upserts) is not None:
                    answers[name][law.title] = ask(subject, law, _HISTORIES, _taken_by(subject)).to_json()
    found = {"date": datetime.now(UTC).date().isoformat(), "histories": _HISTORIES, "answers": answers}
    _KEPT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

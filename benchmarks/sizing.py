"""``python -m benchmarks.sizing``: the cost of a read by the size of the log, as a table of docs/operate/sizing.md.

No JVM starts. A cell is the median time to read all rows in a new session, divided by that of a compacted table.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

import trinity
from benchmarks.local import rows_of
from benchmarks.options import Rows, Runs
from benchmarks.timing import Rounds, timings_of
from trinity import Session

_SHARES: Final = (0.001, 0.01, 0.1, 0.3, 1.0)
_COMMITS: Final = (1, 10, 50, 200)


def _changed(session: Session, rows: int, share: float, commits: int) -> str:
    """Make a table, change a share of its rows in several commits, and return its name."""
    name = f"t_{int(share * 1000)}_{commits}"
    table = session.create_table(
        name, rows_of(np.arange(rows), 0), primary_key=["id"], properties={"watermark-key": "ts", "write.sync": "false"}
    )
    table.compact("full")
    ids = np.random.default_rng(7).choice(rows, int(rows * share), replace=False)
    for number, part in enumerate(np.array_split(ids, commits) if share else ()):
        table.upsert(rows_of(part, number + 1))
    return name


def _read(warehouse: str, table: str) -> None:
    with trinity.connect(warehouse, engine="local") as session:
        session.table(table).to_arrow()


def main(
    rows: Rows = 500_000, runs: Runs = 3, folder: Annotated[Path | None, typer.Option(help="Folder for tables.")] = None
) -> None:
    """Print the table, in Markdown."""
    with tempfile.TemporaryDirectory(dir=folder) as made, trinity.connect(made, engine="local") as session:
        compacted = _changed(session, rows, 0, 1)
        print(f"| in the log | {' | '.join(f'{n} commits' for n in _COMMITS)} |")
        print("|---|" + "---|" * len(_COMMITS))
        for share in _SHARES:
            cells = []
            for commits in _COMMITS:
                names = {"log": _changed(session, rows, share, commits), "compacted": compacted}
                works = {kind: lambda _, name=name: _read(made, name) for kind, name in names.items()}
                found = timings_of(Rounds(runs), works)
                cells.append(f"{found['log'].median / found['compacted'].median:.1f}")
            print(f"| {share:.1%} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    typer.run(main)

"""The process of :class:`tests.world.paimon_players.PyPaimon`: pypaimon, without Java."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.world.answering import answer_all


def main(folder: Path) -> None:
    """Answer requests until the input ends."""
    pypaimon: Any = import_module("pypaimon")
    catalog = pypaimon.CatalogFactory.create({"warehouse": str(folder / "pypaimon")})
    catalog.create_database("d", True)

    def create(table: str, path: str, key: Sequence[str], options: Mapping[str, str]) -> None:
        schema = pypaimon.Schema.from_pyarrow_schema(pq.read_schema(path), primary_keys=key, options=options)
        catalog.create_table(table, schema, False)

    def append(table: str, path: str) -> int:
        """Write a commit, and return the number of the snapshot after it."""
        made = catalog.get_table(table)
        builder = made.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        write.write_arrow(pq.read_table(path))
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()
        return int(made.snapshot_manager().get_latest_snapshot().id)

    def rows(table: str, path: str, snapshot: int | None = None) -> None:
        made = catalog.get_table(table)
        if snapshot is not None:
            made = made.copy({"scan.snapshot-id": str(snapshot)})
        builder = made.new_read_builder()
        pq.write_table(builder.new_read().to_arrow(builder.new_scan().plan().splits()), path)

    def installed() -> str:
        return version("pypaimon")

    actions: dict[str, Callable[..., Any]]
    actions = {"version": installed, "create": create, "append": append, "rows": rows}
    answer_all(actions, lambda error: f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())

"""Keys and watermarks of types that have few values, or none that a person reads."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from trinity import Column, Session, Table

VALUES: dict[str, list[Any]] = {
    "boolean": [False, True],
    "binary": [b"", b"a", b"a\0", b"\x80", b"\xff" * 5],
}


def _rows(kind: str, rows: list[tuple[Any, int, Any, int]]) -> pa.Table:
    arrow = {"boolean": pa.bool_(), "binary": pa.binary()}[kind]
    columns = list(zip(*rows, strict=True))
    types = {"k": arrow, "j": pa.int32(), "seen": arrow, "v": pa.int64()}
    return pa.table({name: pa.array(columns[place], of) for place, (name, of) in enumerate(types.items())})


def _shown(table: Table) -> dict[tuple[Any, int], tuple[Any, int]]:
    rows = table.to_arrow().to_pylist()
    found = {(row["k"], row["j"]): (row["seen"], row["v"]) for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("kind", VALUES)
def test_rows_fold_change_and_are_compacted(local: Session, local_fmt: str, kind: str) -> None:
    columns = [Column("k", kind), Column("j", "int"), Column("seen", kind), Column("v", "bigint")]
    table = local.create_table(
        f"{local_fmt}.default.t", columns, primary_key=["k", "j"], properties={"watermark-key": "seen"}
    )
    values = VALUES[kind]
    drawn = list(enumerate(product(values, [None, *values], [None, *values])))
    table.upsert(_rows(kind, [(k, number, first, 1) for number, (k, first, _) in drawn]))
    table.upsert(_rows(kind, [(k, number, then, 2) for number, (k, _, then) in drawn]))
    expected = {}
    for number, (k, first, then) in drawn:
        last = max(first, then, key=lambda value: (value is not None, value or values[0]))
        expected[k, number] = (last, 2 if last == then else 1)
    assert _shown(table) == expected
    before = table.splits().version
    table.compact("full")
    assert _shown(table) == expected
    gone = [key for key in expected if key[0] == values[-1]][:3]
    table.delete([{"k": k, "j": j} for k, j in gone])
    table.update("v = 2 AND j < 4", {"v": "v + 10"})
    left = {key: value for key, value in expected.items() if key not in gone}
    left = {key: (seen, v + 10 if v == 2 and key[1] < 4 else v) for key, (seen, v) in left.items()}
    assert _shown(table) == left
    kinds = table.changes(before).to_arrow().column("_change_type").to_pylist()
    assert kinds.count("delete") == len(gone)

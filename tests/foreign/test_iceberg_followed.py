"""An external Iceberg table, read while its owners add files without rewriting, and change the metadata's codec."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import trinity
from tests.support.numbered import Numbered, batch, new_table
from trinity import Table
from trinity.datasource.answers import answer

pytestmark = pytest.mark.inner


def with_codec(others: Numbered, codec: str) -> None:
    with others.load_table().transaction() as changes:
        changes.set_properties({"write.metadata.compression-codec": codec})


def add_file(others: Numbered, place: Path, *keys: int) -> None:
    pq.write_table(batch(*keys), place)
    others.load_table().add_files([f"file://{place}"])


def inserted(table: Table, since: int) -> list[tuple[int, str]]:
    return sorted((row.id, row["_change_type"]) for row in table.changes(since).collect())


@pytest.mark.parametrize("first", ["none", "gzip"])
def test_a_stream_and_changes_go_on(warehouse: Path, tmp_path: Path, first: str) -> None:
    others = new_table(tmp_path / "files", first)
    with trinity.connect(warehouse, engine="local") as session:
        table = session.register("iceberg.default.t", "iceberg", tmp_path / "files", {"primary-key": "id"})

        def ask(question: str, **more: object) -> object:
            return answer(lambda: [session], {"ask": question, "table": str(table.name), **more})

        reached = ask("offset", start={"begins": "rows", "table": ""}, begun=True, most=None)
        for codec, key in (("gzip", 10), ("none", 20), ("gzip", 30)):
            since = table.version
            with_codec(others, codec)
            others.append(key)
            add_file(others, tmp_path / f"added-{key}.parquet", key + 1)
            table.upsert(batch(key + 2))
            assert inserted(table, since) == [(key + n, "insert") for n in range(3)]
            now = ask("offset", start=reached, begun=True, most=None)
            assert len(ask("batch", start=reached, end=now)) == table.version - since == 3  # type: ignore[arg-type]
            reached = now
        expected = sorted([1, *(key + n for key in (10, 20, 30) for n in range(3))])
        assert sorted(table.to_arrow()["id"].to_pylist()) == others.ids() == expected

"""Iceberg tables without a catalog: the spellings of a commit's number, and the hint beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.support.adapter import append, code_of
from tests.support.iceberg_lake import open_catalog
from tests.support.numbered import ENDINGS, Numbered, batch, new_table
from trinity.spi import ConnectorMetadata, TableHandle
from trinity.storage import ObjectStore

PLAIN, GZIP, OLD = ENDINGS


class Folder:
    """A table without a catalog that Trinity and others write to."""

    def __init__(self, tmp_path: Path, codec: str = "none") -> None:
        self.others: Numbered = new_table(tmp_path / "files", codec)
        self.handle = TableHandle("lake", "ns", "t", str(tmp_path / "files"))
        self._lake = open_catalog(tmp_path / "w")
        self.sinks = self._lake.sinks

    @property
    def metadata(self) -> ConnectorMetadata:
        return self._lake.open_external(self.handle)

    def append(self, *keys: int) -> int:
        """Append rows by Trinity, and return the version."""
        return append(self, self.handle, *((key, "v") for key in keys)).version  # type: ignore[arg-type]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.metadata.get_splits(self.handle).files)

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.others.folder.glob("v[0-9]*"))


@pytest.mark.parametrize(("codec", "ending"), [("none", PLAIN), ("gzip", GZIP), ("GZIP", GZIP)])
def test_commits_keep_the_codec_of_the_table(tmp_path: Path, codec: str, ending: str) -> None:
    folder = Folder(tmp_path, codec.lower())
    with folder.others.load_table().transaction() as changes:
        changes.set_properties({"write.metadata.compression-codec": codec})
    folder.append(2)
    folder.others.append(3)
    folder.append(4)
    assert folder.names[1:] == [f"v{n}{ending}" for n in range(2, 7)]
    assert folder.others.ids() == [1, 2, 3, 4]
    assert folder.rows == 4


def test_a_codec_that_iceberg_does_not_have_is_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with folder.others.load_table().transaction() as changes:
        changes.set_properties({"write.metadata.compression-codec": "zstd"})
    code, message = code_of(lambda: folder.append(2))
    assert (code, "zstd" in message) == ("NOT_SUPPORTED", True)
    assert folder.rows == 1


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_spelling_of_a_number_is_read(tmp_path: Path, ending: str) -> None:
    folder = Folder(tmp_path)
    folder.others.append(2)
    newest = folder.others.load_table().metadata
    Path(folder.others.folder, "v3.metadata.json").unlink()
    folder.others.write(3, newest, ending)
    assert folder.rows == 2
    folder.append(3)
    assert folder.names[-1] == "v4.metadata.json"
    assert folder.others.ids() == [1, 2, 3]


@pytest.mark.parametrize("ending", [GZIP, OLD, ".metadata.json"])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_two_spellings_of_a_number_are_one_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str, ending: str
) -> None:
    """Another engine commits the number in another spelling, right before or after Trinity's check."""
    folder = Folder(tmp_path, codec)
    put = ObjectStore.put_if_absent
    taken: list[object] = []

    def meanwhile(store: ObjectStore, name: str, data: bytes) -> None:
        if name.endswith(".metadata.json") and not taken:
            taken.append(name)
            number = folder.others.newest() + 1
            table = folder.others.load_table()
            others: Any = folder.others
            write = Numbered.write
            monkeypatch.setattr(Numbered, "write", lambda self, n, metadata, _: write(self, n, metadata, ending))
            table.append(batch(7))
            monkeypatch.setattr(Numbered, "write", write)
            assert others.file(number) is not None
        put(store, name, data)

    monkeypatch.setattr(ObjectStore, "put_if_absent", meanwhile)
    folder.append(2)
    assert taken
    assert folder.others.ids() == [1, 2, 7]
    assert folder.rows == 3
    numbers = [name.partition(".")[0] for name in folder.names]
    assert len(set(numbers)) == len(numbers)


def test_a_spelling_that_nobody_knows_takes_its_number_too(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    Path(folder.others.folder, "v3.zstd.metadata.json").write_bytes(b"?")
    for call in (lambda: folder.rows, lambda: folder.append(2)):
        code, message = code_of(call)
        assert (code, "v3.zstd.metadata.json" in message) == ("NOT_SUPPORTED", True)


def test_padded_numbers_stay_padded(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for number in (1, 2):
        path = Path(folder.others.folder, f"v{number}.metadata.json")
        path.rename(path.with_name(f"v{number:03d}.metadata.json"))
    folder.append(2)
    assert folder.names == ["v001.metadata.json", "v002.metadata.json", "v003.metadata.json"]
    assert folder.rows == 2


def test_a_padded_number_is_the_same_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path)
    put = ObjectStore.put_if_absent
    taken: list[object] = []

    def meanwhile(store: ObjectStore, name: str, data: bytes) -> None:
        if name.endswith(".metadata.json") and not taken:
            taken.append(folder.others.write(3, folder.others.load_table().metadata, PLAIN, digits=5))
        put(store, name, data)

    monkeypatch.setattr(ObjectStore, "put_if_absent", meanwhile)
    folder.append(2)
    assert folder.names == ["v00003.metadata.json", "v00004.metadata.json", "v1.metadata.json", "v2.metadata.json"]


HINTS: dict[str, Callable[[Path], object]] = {
    "behind": lambda hint: hint.write_text("1"),
    "missing": lambda hint: hint.unlink(),
    "garbage": lambda hint: hint.write_bytes(b"\xff\xfe no number"),
    "empty": lambda hint: hint.write_bytes(b""),
    "with blanks": lambda hint: hint.write_text(" 2 \n"),
}


@pytest.mark.parametrize("how", HINTS)
def test_a_hint_that_says_little_does_no_harm(tmp_path: Path, how: str) -> None:
    folder = Folder(tmp_path)
    HINTS[how](folder.others.hint)
    assert folder.rows == 1
    folder.append(2)
    assert folder.others.hint.read_text() == "3"
    assert folder.others.ids() == [1, 2]


def test_a_hint_that_names_what_is_missing_is_refused(tmp_path: Path) -> None:
    """Other engines refuse such a table; another commit would hide that one is missing."""
    folder = Folder(tmp_path)
    folder.others.append(2)
    Path(folder.others.folder, "v3.metadata.json").unlink()
    for call in (lambda: folder.rows, lambda: folder.append(3)):
        code, message = code_of(call)
        assert code == "BAD_DATA"
        assert "version-hint.text' says 3" in message
        assert "write 2 into it" in message
    folder.others.hint.write_text("2")
    folder.append(3)
    assert folder.others.ids() == [1, 3]


def test_a_number_that_is_missing_leaves_two_newest_ones(tmp_path: Path) -> None:
    """Other engines count up from the hint, and stop at the gap; they do not see the versions after it."""
    folder = Folder(tmp_path)
    folder.append(2)
    folder.append(3)
    Path(folder.others.folder, "v3.metadata.json").unlink()
    folder.others.hint.write_text("2")
    code, message = code_of(lambda: folder.append(4))
    assert code == "BAD_DATA"
    assert "after which number 3 is missing" in message
    folder.others.hint.write_text("4")
    folder.append(4)
    assert folder.others.ids() == [1, 2, 3, 4]


def test_a_table_that_a_catalog_took_over_is_read_as_the_catalog_has_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.append(2)
    catalog = SqlCatalog("new", uri=f"sqlite:///{tmp_path}/new.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("ns")
    table = catalog.register_table("ns.t", f"file://{folder.others.file(3)}")
    assert folder.rows == 2
    table.append(batch(3))
    assert folder.rows == 3
    code, message = code_of(lambda: folder.append(4))
    assert (code, "belongs to a catalog" in message) == ("NOT_SUPPORTED", True)

"""Objects of the storage seam: what a store answers, and how it changes the objects below its location."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trinity.storage import Location, ObjectStore


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(str(tmp_path))


def put_objects(store: ObjectStore, *names: str) -> None:
    for name in names:
        store.put_if_absent(name, name.encode())


def test_a_location_and_its_text_are_the_same_store(tmp_path: Path) -> None:
    assert ObjectStore(Location.of(str(tmp_path))).root == ObjectStore(f"file://{tmp_path}").root == str(tmp_path)


def test_a_folder_that_goes_between_two_looks_is_made(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir, failed = Path.mkdir, list[Path]()

    def once_there(self: Path, *given: Any, **named: Any) -> None:
        if not failed:
            failed.append(self)
            raise FileExistsError(self)
        mkdir(self, *given, **named)

    monkeypatch.setattr(Path, "mkdir", once_there)
    store.make_folder("t")
    assert Path(store.path("t")).is_dir()
    put_objects(store, "file")
    with pytest.raises((FileExistsError, NotADirectoryError)):
        store.make_folder("file")


def test_walk_passes_over_what_is_hidden(store: ObjectStore) -> None:
    put_objects(store, "a.parquet", "p=1/b.pq", "p=1/c.txt", "_log/d.parquet", "p=1/.e.parquet", "p=1/_f/g.parquet")
    found = dict(store.walk(".parquet", ".pq", hidden="._"))
    assert found == {name: store.stat(name) for name in ("a.parquet", "p=1/b.pq")}
    assert {name for name, _ in store.walk(".parquet", hidden=".")} == {
        "a.parquet",
        "_log/d.parquet",
        "p=1/_f/g.parquet",
    }
    assert list(ObjectStore(store.path("nowhere")).walk(".parquet", hidden=".")) == []


def test_move_takes_the_place_of_what_is_there(store: ObjectStore) -> None:
    put_objects(store, "staged/a", "b")
    moved = store.stat("staged/a")
    store.move("staged/a", "b")
    assert store.stat("b") == moved
    assert store.get("b") == b"staged/a"
    assert store.names("staged") == []
    with pytest.raises(FileNotFoundError):
        store.move("staged/a", "c")


def test_a_time_that_is_set_is_the_one_that_is_told(store: ObjectStore) -> None:
    put_objects(store, "a")
    before = store.stat("a")
    store.set_modified("a", 1_234_567_890_123_456_000)
    found = store.stat("a")
    assert found is not None
    assert found.modified_ns == 1_234_567_890_123_456_000
    assert found != before


@pytest.mark.parametrize("listed", [False, True])
def test_a_stream_makes_its_folder_and_replaces_only_when_told(store: ObjectStore, listed: bool) -> None:
    for new in (True, False):
        with store.writer("below/a", new=new, listed=listed) as out:
            out.write(b"some")
            out.write(b" bytes")
        assert store.get("below/a") == b"some bytes"
    with pytest.raises(FileExistsError):
        store.writer("below/a")


def test_folders_are_told_from_objects(store: ObjectStore) -> None:
    put_objects(store, "below/a")
    assert store.is_folder()
    assert store.is_folder("below")
    assert not store.is_folder("below/a")
    assert not store.is_folder("nowhere")


@pytest.mark.parametrize("elsewhere", ["/x/a b", "file:/x/a b", "file:///x/./a b"])
def test_metadata_may_name_what_lies_elsewhere(store: ObjectStore, elsewhere: str) -> None:
    assert store.resolve(elsewhere) == "/x/a b"
    assert store.resolve("p=1/a b") == f"{store.root}/p=1/a b"

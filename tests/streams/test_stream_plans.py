"""Offsets of a stream of changes, without Spark: the rows between two, and their form in a checkpoint (C7)."""

from __future__ import annotations

import json

import pytest

from trinity import TrinityError
from trinity.datasource.offsets import Batch, Offset, batch, commits_after
from trinity.datasource.options import Options
from trinity.datasource.parts import SourceFile, grouped
from trinity.spi import HistoryEntry

pytestmark = pytest.mark.inner

ROWS = Offset(begins="rows")


def history(*versions: int) -> list[HistoryEntry]:
    return [HistoryEntry(version, version * 1000, "append") for version in versions]


def versions(found: Batch) -> tuple[int | None, list[int]]:
    return found.rows.version if found.rows else None, [entry.version for entry in found.changes]


def test_a_stream_begins_with_the_rows_and_goes_on_with_changes() -> None:
    known = history(0, 1, 2, 3, 4)
    assert versions(batch("t", known, ROWS, Offset(2))) == (2, [])
    assert versions(batch("t", known, Offset(2), Offset(4))) == (None, [3, 4])
    assert versions(batch("t", known, Offset(4), Offset(4))) == (None, [])
    assert [entry.version for entry in commits_after("t", known, ROWS)] == [4]


def test_a_batch_is_the_same_when_it_is_asked_for_again_later() -> None:
    first, later = history(0, 1, 2), history(0, 1, 2, 3, 9)
    for start in (ROWS, Offset(1), Offset(0), Offset(begins="latest"), Offset(1, begins="version")):
        assert batch("t", first, start, Offset(2)) == batch("t", later, start, Offset(2))


def test_versions_may_have_gaps() -> None:
    assert versions(batch("t", history(3, 7, 9, 20), Offset(7), Offset(20))) == (None, [9, 20])


def test_what_was_vacuumed_is_an_error_that_names_the_oldest() -> None:
    with pytest.raises(TrinityError, match=r"no version 2 any more.* oldest version still readable is 5, the newest 6"):
        batch("t", history(5, 6), Offset(2), Offset(6))
    with pytest.raises(TrinityError, match="oldest version still readable is 5"):
        batch("t", history(5, 6), ROWS, Offset(4))
    # only the version that was read is missing: the changes of the next one may be on disk
    assert versions(batch("t", history(5, 6), Offset(4), Offset(6))) == (None, [5, 6])


def test_versions_that_a_table_has_never_had() -> None:
    with pytest.raises(TrinityError, match=r"no version 9, which the stream has come to.* repaired"):
        commits_after("t", history(5, 6), Offset(9))


@pytest.mark.parametrize("offset", [ROWS, Offset(7, "id"), Offset(0), Offset(3, begins="version")])
def test_offsets_are_json_of_one_text(offset: Offset) -> None:
    text = json.dumps(offset.to_dict())
    assert Offset.from_dict(json.loads(text)) == offset
    assert json.dumps(Offset.from_dict(json.loads(text)).to_dict()) == text


@pytest.mark.parametrize(
    "data", [{}, {"version": "7"}, {"version": True}, {"begins": "now"}, {"begins": "version"}, {"begins": "timestamp"}]
)
def test_what_is_no_offset(data: dict[str, object]) -> None:
    with pytest.raises(TrinityError, match="is none of a stream of Trinity's"):
        Offset.from_dict(data)


def test_small_files_go_together() -> None:
    sizes = [1, 2, 40_000_000, 3, 16_000_000, 1_000_000]
    files = [SourceFile(str(size), size, (), 0, 0, False) for size in sizes]
    assert [[file.bytes for file in group] for group in grouped(files)] == [
        [1, 2],
        [40_000_000],
        [3, 16_000_000],
        [1_000_000],
    ]
    assert grouped([]) == []


def test_options_have_any_case_and_no_unknown_names() -> None:
    assert Options.of({"TABLE": "delta.sales.orders"}).table == "delta.sales.orders"
    with pytest.raises(TrinityError, match=r"Unknown option 'tabel'\. Did you mean 'table'"):
        Options.of({"tabel": "t"})
    with pytest.raises(TrinityError, match=r"option\(\"table\""):
        Options.of({"table": " "})


@pytest.mark.parametrize(
    ("given", "begins"),
    [
        ({}, Offset(begins="rows")),
        ({"startingversion": "LATEST"}, Offset(begins="latest")),
        ({"startingVersion": " 7 "}, Offset(7, begins="version")),
        ({"startingTimestamp": "2026-01-31"}, Offset(begins="timestamp", timestamp_ms=10)),
    ],
)
def test_a_stream_begins_where_its_options_say(given: dict[str, str], begins: Offset) -> None:
    assert Options.of({"table": "t", **given}).for_stream().beginning(len) == begins


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"startingVersion": "1", "startingTimestamp": "2026-01-31"}, "not both"),
        ({"startingVersion": "one"}, "startingVersion=one: give a whole number, 0 or more"),
        ({"maxVersionsPerTrigger": "0"}, "1 or more"),
        ({"onSchemaChange": "follow"}, "it is fail or ignore"),
        ({"endingVersion": "1"}, "spark.readStream has no option endingVersion"),
    ],
)
def test_options_that_no_stream_takes(given: dict[str, str], message: str) -> None:
    with pytest.raises(TrinityError, match=message) as raised:
        Options.of({"table": "t", **given}).for_stream()
    assert raised.value.code == "INVALID_ARGUMENTS"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"maxVersionsPerTrigger": "1"}, "spark.read has no option maxVersionsPerTrigger"),
        ({"startingVersion": "latest"}, "no changes yet to come"),
        ({"endingVersion": "1"}, "need where changes begin"),
        ({"startingVersion": "1", "readChangeFeed": "false"}, "with the columns that tell what changed"),
        ({"startingTimestamp": "2026-01-31", "versionAsOf": "1"}, "not both"),
    ],
)
def test_options_that_no_batch_takes(given: dict[str, str], message: str) -> None:
    with pytest.raises(TrinityError, match=message):
        Options.of({"table": "t", **given}).for_batch()


def test_a_time_behind_the_newest_commit_is_no_beginning() -> None:
    assert [e.version for e in commits_after("t", history(1, 2, 3), Offset(begins="timestamp", timestamp_ms=1500))] == [
        2,
        3,
    ]
    with pytest.raises(TrinityError, match="startingVersion=latest streams what comes"):
        commits_after("t", history(1, 2, 3), Offset(begins="timestamp", timestamp_ms=3001))

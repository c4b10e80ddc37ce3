"""What a commit keeps: the order of its files, its numbers, bounds, partitions, and what old versions need.

A history does not see these: it writes few files in a commit, and asks for no numbers. So they are handwritten, on one
table each, and use the sinks and the metadata of the adapter as the engine does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trinity import Column
from trinity.errors import TrinityError
from trinity.spi import Capability, CommitResult, SinkId, TransactionId, arrow_type
from trinity_conformance.model.values import Json, decode, sql_literal
from trinity_conformance.playing.cases import Record, Recorded, in_words
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.needs import with_types
from trinity_conformance.playing.single_checks import try_checks
from trinity_conformance.playing.statistics import wrong_statistics
from trinity_conformance.playing.subject import TrinitySubject

if TYPE_CHECKING:
    from trinity_conformance.playing.observations import Tally

_CHECK: Final = "commits"
_NUMBERS: Final = count()
_MANY: Final = 1000
_ONE_WRITER: Final = {"commit.retry.timeout": "0 seconds"}
"""A commit that reports a lost race fails at once, as there is no other writer."""
_COMMITS: Final = 12
"""Number of commits: enough for version numbers of two digits, and for a checkpoint of a format's log."""
_SHARED: Final = "shared-prefix-of-sixty-four-characters-and-more-so-that-it-is-cut"
_BOUNDS: Final[Mapping[str, tuple[Json, ...]]] = {
    "string": (
        "a", "x" * 17, "x" * 16 + "y", "y" * 33, "y" * 32 + "z", _SHARED + "1", _SHARED + "2", "q" * 15 + "ä" + "b",
        "q" * 15 + "\U0001f600", "\U0010ffff" * 17, "r" * 31 + "\uffff" + "s",
    ),
    "decimal(10,2)": ("-99999999.99", "-0.01", "0.01", "12.34", "99999999.99"),
    "decimal(38,10)": ("-9007199254740993.0000000001", "0.0000000001", "9007199254740993.0000000001"),
    "timestamp": ("1969-12-31T23:59:59.999999", "2024-03-31T01:30:00.000001", "2024-03-31T01:30:00.000999"),
    "timestamp_ntz": ("1969-12-31T23:59:59.999999", "2024-03-31T01:30:00.000001", "2024-03-31T01:30:00.000999"),
    "date": ("1582-10-04", "1969-12-31", "9999-12-31"),
    "bigint": (-(2**63), 2**53 + 1, 2**63 - 1),
}  # fmt: skip
"""Type -> values whose bounds are easily cut, rounded or swapped. Each is written to a file of its own."""
_BOUNDS_OF_SPARK: Final[Mapping[str, tuple[Json, ...]]] = {
    "binary": ("00", "7f" * 17, "7f" * 16 + "ff", "ff" * 17, "ff" * 33, "80"),
    "double": ("-0.0", "NaN", "1.5", "Infinity"),
}
"""Such values of the types that only Spark orders."""


@dataclass(frozen=True)
class _Bench:
    """A bench that makes tables of k, w, v, writes to them as the engine's tasks do, and records it.

    Attributes:
        session: the session.
        can: the adapter's capabilities.
        record: the steps so far.
    """

    session: Any
    can: Collection[Capability]
    record: Record

    def make(self, key: Sequence[str] = ("k",), kind: str = "string", name: str = "", **options: Any) -> Any:
        """Make a table of k INT, w INT and v of a type."""
        columns = [Column("k", "int"), Column("w", "int"), Column("v", kind)]
        name = name or f"c.default.commits{next(_NUMBERS)}"
        options["properties"] = {**_ONE_WRITER, **options.get("properties", {})}
        given = ", ".join(f"{option}={value!r}" for option, value in {"primary_key": tuple(key), **options}.items())
        self.record.made(name, f"create_table t (k int, w int, v {kind}), {given}")
        return Recorded(self.session.create_table(name, columns, primary_key=key, **options), self.record)

    def keyed(self, name: str = "") -> Any:
        """Make a table with key k and watermark w."""
        return self.make(name=name, properties={"watermark-key": "w"})

    def commit(
        self,
        table: Any,
        tasks: Sequence[pa.Table],
        failed: Mapping[int, pa.Table] | None = None,
        txn: TransactionId | None = None,
    ) -> CommitResult:
        """Return the result of a commit of several tasks, the last of which finished first.

        Args:
            table: the table.
            tasks: the rows of each task.
            failed: number of a task -> the rows of an earlier run of it, which has left its file.
            txn: the transaction.
        """
        in_order = " | ".join(map(in_words, tasks))
        first = "".join(f", task {number} ran before with {in_words(rows)}" for number, rows in (failed or {}).items())
        of = f"transaction {txn[1]} of '{txn[0]}', " if txn else ""
        self.record.did(
            str(table.name), f"commit {of}{len(tasks)} tasks, of which the last finished first{first}: {in_order}"
        )
        metadata = table.connector.metadata
        insert = metadata.begin_insert(table.handle)
        for number, rows in (failed or {}).items():
            self._task(insert, number, rows)
        fragments = [self._task(insert, order, rows) for order, rows in enumerate(tasks)]
        done: CommitResult = metadata.finish_insert(insert, [f for made in reversed(fragments) for f in made], txn)
        return done

    def run(self, statement: str) -> None:
        """Run a statement."""
        self.record.ran(statement)
        self.session.sql(statement)

    def _task(self, insert: Any, order: int, rows: pa.Table) -> list[bytes]:
        """Return the fragments of a task."""
        made = self.session.connector("c").sinks.create_page_sink(insert.target, SinkId(order))
        given = dict(zip((c.name for c in insert.definition.columns), insert.target.storage, strict=True))
        columns = [
            rows.column(name).cast(field.type) if name in rows.column_names else pa.nulls(len(rows), field.type)
            for name, field in given.items()
        ]
        for page in pa.Table.from_arrays(columns, schema=insert.target.storage).to_batches():
            made.append_page(page)
        found: list[bytes] = made.finish()
        return found


def _rows(*rows: tuple[int, int, Any], kind: str = "string") -> pa.Table:
    k, w, v = zip(*rows, strict=True)
    return pa.table({"k": pa.array(k, pa.int32()), "w": pa.array(w, pa.int32()), "v": pa.array(v, arrow_type(kind))})


def _read(table: Any, where: str | None = None, version: int | None = None) -> list[tuple[int, Any]]:
    return sorted((row["k"], row["v"]) for row in table.to_arrow(where=where, version=version).to_pylist())


def _expect(found: object, wanted: object, what: str) -> None:
    if found != wanted:
        raise NonConformance(_CHECK, f"{what}: {found} instead of {wanted}")


def _files_have_their_order(bench: _Bench) -> None:
    """Check that the files of a commit are in the order of their tasks, whichever finished first (K4, L2)."""
    table = bench.keyed()
    metadata = table.connector.metadata
    done = bench.commit(table, [_rows((1, 1, f"task {order}")) for order in range(12)])
    _expect(len(metadata.get_splits(table.handle).files), 12, "files of a commit of twelve tasks")
    _expect((done.rows, done.files), (12, 12), "(rows, files) of the result of a commit of twelve tasks")
    _expect(_read(table), [(1, "task 11")], "a tie between twelve files of a commit, which finished in reverse")
    names = [row["v"] for row in sorted(table.log().to_arrow().to_pylist(), key=lambda r: (r["_file"], r["_pos"]))]
    _expect(names, [f"task {order}" for order in range(12)], "log() of a commit of twelve tasks")


def _a_failed_task_leaves_nothing(bench: _Bench) -> None:
    """Check that the file of a task that ran again is no part of the commit, and that a vacuum removes it (L6)."""
    table = bench.make(key=())
    done = bench.commit(table, [_rows((1, 1, "again"))], {0: _rows((1, 1, "first try"))})
    _expect(_read(table), [(1, "again")], "a commit of a task that ran twice")
    _expect((done.rows, done.files), (1, 1), "(rows, files) of its result")
    gone = table.vacuum("0 seconds")
    _expect(gone.files, 1, "files that a vacuum removes after a task that ran twice")
    _expect(_read(table), [(1, "again")], "the same after the vacuum")


def _results_say_what_was_written(bench: _Bench) -> None:
    """Check every field of the results of commits (L4)."""
    table = bench.keyed()
    metadata = table.connector.metadata
    before = metadata.get_splits(table.handle).version

    def result(done: CommitResult, what: str) -> None:
        splits = metadata.get_splits(table.handle)
        _expect(done.version, splits.version, f"version of the result of {what}")
        entries = [e for e in metadata.history(table.handle) if e.version == done.version]
        _expect(len(entries), 1, f"commits of the version of {what} in history()")

    def sizes(files: Sequence[Any]) -> tuple[int, int, int]:
        return sum(f.rows for f in files), len(files), sum(f.size for f in files)

    first = table.upsert(_rows((1, 1, "a"), (2, 1, "a")), txn=("app", 7))
    result(first, "an upsert")
    new = metadata.get_splits(table.handle).files
    _expect((first.rows, first.files, first.bytes), sizes(new), "(rows, files, bytes) of the result of an upsert")
    _expect((new[0].rows, first.skipped), (2, False), "(rows, skipped) of an upsert")
    again = table.upsert(_rows((9, 9, "z")), txn=("app", 7))
    _expect((again.skipped, again.rows, again.files, again.version), (True, 0, 0, first.version), "a retry")
    _expect(metadata.recorded_txn(table.handle, "app") in (7, None), True, "the transaction on record being 7")
    result(table.upsert(_rows((1, 2, "b"))), "a second upsert")
    compacted = table.compact(full=True)
    result(compacted, "a compaction")
    base = metadata.get_splits(table.handle)
    _expect(compacted.rows, sum(f.rows for f in base.files), "rows of the result of a compaction")
    _expect(compacted.files, len(base.files) + len(base.sidecar), "files of the result of a compaction")
    _expect(compacted.bytes, sum(f.size for f in (*base.files, *base.sidecar)), "bytes of the result of a compaction")
    _expect(
        len([e for e in metadata.history(table.handle) if e.version > before]),
        3,
        "commits of two upserts and a compaction",
    )
    _expect(table.upsert(_rows((9, 9, "z")), txn=("app", 7)).skipped, True, "skipped, a retry after a compaction")


def _nothing_is_no_version(bench: _Bench) -> None:
    """Check that an append without files makes no version, unless it has a transaction to record (L4)."""
    table = bench.make(key=())
    table.append(_rows((1, 1, "a")))
    before = _versions(table)
    table.append(_rows((1, 1, "a")).slice(0, 0))
    done = bench.commit(table, [])
    _expect(done, CommitResult(before[-1]), "the result of an append without files")
    _expect(_versions(table), before, "versions after an append without files")
    done = bench.commit(table, [], txn=("app", 1))
    recorded = _versions(table)
    _expect(len(recorded) - len(before), 1, "versions of an append without files that has a transaction")
    _expect(done, CommitResult(recorded[-1]), "the result of an append without files that has a transaction")
    _expect(bench.commit(table, [], txn=("app", 1)).skipped, True, "skipped, the same again")
    _expect(table.append(_rows((9, 9, "z")), txn=("app", 1)).skipped, True, "skipped, a retry with rows")
    _expect(_versions(table), recorded, "versions after two retries")
    _expect(_read(table), [(1, "a")], "a table after appends without files")


def _versions(table: Any) -> list[int]:
    return [entry.version for entry in table.connector.metadata.history(table.handle)]


def _truncating_nothing_is_no_version(bench: _Bench) -> None:
    """Check that TRUNCATE of a table without rows and tombstones makes no version (M12)."""
    table = bench.make(key=())
    table.append(_rows((1, 1, "a")))
    table.truncate()
    before = _versions(table)
    _expect(table.truncate().version, before[-1], "version of the result of TRUNCATE of an empty table")
    _expect(_versions(table), before, "versions after TRUNCATE of an empty table")


def _restoring_nothing_is_no_version(bench: _Bench) -> None:
    """Check that a restore of the present version makes no version (L11)."""
    table = bench.make(key=())
    table.append(_rows((1, 1, "a")))
    before = _versions(table)
    _expect(table.restore(before[-1]).skipped, True, "skipped, a restore of what is there")
    _expect(_versions(table), before, "versions after a restore of what is there")


def _transactions_are_of_their_application(bench: _Bench) -> None:
    """Check that the names of applications are compared exactly (L4)."""
    table = bench.make(key=())
    for application in ("app", "App", "app ", "\u00e4pp", "a/pp", "%61pp"):
        done = table.append(_rows((1, 1, application)), txn=(application, 1))
        _expect(done.skipped, False, f"skipped, the first transaction of '{application}'")


def _numbers_of_transactions_are_whole(bench: _Bench) -> None:
    """Check that the number of a transaction has 64 bits (L4)."""
    for number in (2**31 + 1, 2**53 + 1, 2**63 - 1):
        table = bench.make(key=())
        for what, again in (("", False), (" again", True)):
            done = table.append(_rows((1, 1, "a")), txn=("app", number))
            _expect(done.skipped, again, f"skipped, transaction {number}{what}")


def _a_new_table_has_nothing_of_a_dropped_one(bench: _Bench) -> None:
    """Check that a new table has no rows, tombstones, transactions or versions of a dropped namesake (L4, L10)."""
    table = bench.keyed()
    table.upsert(_rows((1, 5, "a"), (2, 5, "a")), txn=("app", 1))
    table.delete([1])
    table.compact(full=True)
    bench.run(f"DROP TABLE {table.name}")
    table = bench.keyed(str(table.name))
    _expect(
        (_read(table), len(_versions(table))), ([], 1), "(rows, versions) of a table with the name of a dropped one"
    )
    _expect(table.upsert(_rows((1, 1, "new")), txn=("app", 1)).skipped, False, "skipped, its first transaction")
    _expect(_read(table), [(1, "new")], "a table with the name of a dropped one")


def _a_renamed_table_is_the_same(bench: _Bench) -> None:
    """Check that rows, tombstones, transactions and versions stay when a table is renamed (L3, L4, L10)."""
    table = bench.keyed()
    table.upsert(_rows((1, 5, "a"), (2, 5, "a")), txn=("app", 1))
    table.delete([1])
    table.compact(full=True)
    before, old = _versions(table), str(table.name)
    try:
        bench.run(f"ALTER TABLE {old} RENAME TO {old}_renamed")
    except TrinityError as error:
        if error.code == "NOT_SUPPORTED":
            return  # a bucket cannot move a table's folder
        raise
    bench.record.renamed(old, f"{old}_renamed")
    table = Recorded(bench.session.table(f"{old}_renamed"), bench.record)
    _expect(_versions(table)[: len(before)], before, "versions of a renamed table")
    _expect(table.upsert(_rows((9, 9, "z")), txn=("app", 1)).skipped, True, "skipped, a retry after a renaming")
    table.upsert(_rows((1, 1, "late"), (2, 1, "late")))
    _expect(_read(table), [(2, "a")], "late rows of a renamed table")


def _schemas_keep_their_tables_apart(bench: _Bench) -> None:
    """Check that tables of one name in two schemas are two tables (N1)."""
    table = bench.keyed()
    schema = f"c.schema{next(_NUMBERS)}"
    bench.run(f"CREATE SCHEMA {schema}")
    other = bench.keyed(f"{schema}.{str(table.name).rpartition('.')[2]}")
    table.upsert(_rows((1, 1, "one")), txn=("app", 1))
    _expect(other.upsert(_rows((1, 1, "other")), txn=("app", 1)).skipped, False, "skipped, the other's transaction")
    _expect((_read(table), _read(other)), ([(1, "one")], [(1, "other")]), "tables of one name in two schemas")
    bench.run(f"DROP TABLE {other.name}")
    bench.run(f"DROP SCHEMA {schema}")
    _expect(_read(table), [(1, "one")], "a table after the drop of one of its name in another schema")


def _versions_grow_one_by_one(bench: _Bench) -> None:
    """Check that a statement is one commit: no reader sees a part of it, not even in the past (L6, L10)."""
    table = bench.make(key=())
    metadata = table.connector.metadata
    table.append(_rows((1, 1, "a"), (2, 1, "a")), txn=("app", 1))
    seen = {tuple(_read(table))}
    steps: dict[str, Callable[[], object]] = {
        "an append with a transaction": lambda: table.append(_rows((3, 1, "a")), txn=("app", 2)),
        "an UPDATE": lambda: bench.run(f"UPDATE {table.name} SET v = 'b' WHERE k = 1"),
        "a compaction": lambda: table.compact(full=True),
    }
    for what, step in steps.items():
        before = {e.version for e in metadata.history(table.handle)}
        step()
        seen.add(tuple(_read(table)))
        for version in sorted({e.version for e in metadata.history(table.handle)} - before):
            shown = tuple(_read(table, version=version))
            if shown not in seen:
                raise NonConformance(_CHECK, f"{what}: version {version} shows {list(shown)}, a part of a commit")
    listed = metadata.history(table.handle)
    times = [entry.timestamp_ms for entry in listed]
    _expect(times, sorted(set(times)), "times of the commits, which grow")
    now = datetime.now(UTC)
    for time in (datetime.fromtimestamp(ms / 1000, UTC) for ms in times):
        if abs(now - time) > timedelta(hours=1):
            raise NonConformance(_CHECK, f"a commit of now is said to be of {time}, and it is {now}")


def _many_versions_have_their_order(bench: _Bench) -> None:
    """Check that the twelfth version is the newest, and keeps all before it and the first transaction (L4, L10)."""
    table = bench.make(key=())
    metadata = table.connector.metadata
    commits = f"append {_COMMITS} rows (n, 1, 'a') in commits of their own, the first as transaction 1 of 'app'"
    bench.record.did(str(table.name), commits)
    append = bench.session.table(str(table.name)).append
    txns = [("app", 1), *[None] * (_COMMITS - 1)]
    versions = [append(_rows((n, 1, "a")), txn=txn).version for n, txn in enumerate(txns)]
    rows = [(n, "a") for n in range(_COMMITS)]
    _expect(_read(table), rows, f"a table of {_COMMITS} commits")
    _expect(table.splits().version, versions[-1], f"the newest version after {_COMMITS} commits")
    listed = [entry.version for entry in metadata.history(table.handle)]
    _expect(listed[-_COMMITS:], versions, f"history() of {_COMMITS} commits")
    _expect(table.append(_rows((9, 9, "z")), txn=("app", 1)).skipped, True, "skipped, a retry of the first commit")


def _old_versions_keep_what_they_need(bench: _Bench) -> None:
    """Check that a vacuum with a retention leaves the versions within it readable, and refuses older ones (L10)."""
    table = bench.keyed()
    versions = list[tuple[int, list[tuple[int, Any]]]]()

    def after(_: object) -> None:
        versions.append((table.splits().version, _read(table)))

    after(table.upsert(_rows((1, 1, "a"), (9, 1, "1"))))
    after(table.upsert(_rows((2, 1, "a"), (9, 2, "2")), txn=("app", 1)))
    then = table.splits().timestamp_ms
    after(table.compact(full=True))
    bench.record.did(str(table.name), "vacuum, and keep the versions since the second write")
    table.connector.metadata.vacuum(table.handle, then + 1)
    for version, rows in versions[1:]:
        _expect(_read(table, version=version), rows, f"version {version}, which the retention keeps")
    table.vacuum("0 seconds")
    _expect(_read(table), versions[-1][1], "the table after a vacuum that keeps one version")
    _expect(table.upsert(_rows((7, 7, "z")), txn=("app", 1)).skipped, True, "skipped, a retry after a vacuum")
    try:
        found = _read(table, version=versions[0][0])
    except TrinityError as error:
        _expect(error.code, "INVALID_ARGUMENTS", "the code of a read of a version that vacuum removed")
    else:
        raise NonConformance(_CHECK, f"a version that vacuum removed reads {found}")


def _tombstones_outlive_maintenance(bench: _Bench) -> None:
    """Check that deleted keys stay deleted through two compactions and a vacuum (U4, K6)."""
    table = bench.keyed()
    table.upsert(_rows(*((k, 5, "a") for k in range(1, _MANY))))
    table.delete([1])
    for full in (True, False, True):  # the second, of a log much smaller than the base, does not rewrite the base
        table.compact(full=full)
        table.vacuum("0 seconds")
        table.upsert(_rows((1, 4, "late"), (2, 4, "late")))
        _expect(_read(table, "k IN (1, 2)"), [(2, "a")], "late rows after compactions of a deleted key")


def _a_widened_key_keeps_its_place(bench: _Bench) -> None:
    """Check that keys are found in buckets that were written when they had a narrower type (K5, L3)."""
    table = bench.make(properties={"watermark-key": "w", "bucket": "8"})
    table.upsert(_rows(*((k, 1, "a") for k in range(20))))
    table.compact(full=True)
    bench.run(f"ALTER TABLE {table.name} ALTER COLUMN k TYPE BIGINT")
    table = Recorded(bench.session.table(str(table.name)), bench.record)
    for number in range(20):
        _expect(_read(table, f"k = {number}"), [(number, "a")], f"rows where k = {number}, whose type was widened")


def _deletes_by_position_stay(bench: _Bench) -> None:
    """Check that rows deleted by position stay so after later appends and another resolve (R1)."""
    table = bench.keyed()
    table.upsert(_rows((1, 1, "a"), (2, 1, "a"), (3, 1, "a")))
    table.compact(full=True)
    table.upsert(_rows((1, 9, "new")))
    table.compact("resolve")
    _expect(_read(table), [(1, "new"), (2, "a"), (3, "a")], "a table after a resolve")
    table.upsert(_rows((4, 1, "a")))
    table.compact("resolve")
    _expect(_read(table), [(1, "new"), (2, "a"), (3, "a"), (4, "a")], "a table after an append and a second resolve")


def _truncate_takes_all(bench: _Bench) -> None:
    """Check that TRUNCATE deletes rows and tombstones, returns their number, and keeps transactions (M12, L4)."""
    table = bench.keyed()
    table.upsert(_rows((1, 5, "a"), (2, 5, "a"), (3, 5, "a")), txn=("app", 1))
    table.delete([1])
    table.compact(full=True)
    _expect(table.truncate().rows, 2, "rows of the result of TRUNCATE")
    _expect(_read(table), [], "a table after TRUNCATE")
    _expect(table.upsert(_rows((1, 5, "a")), txn=("app", 1)).skipped, True, "skipped, a retry after TRUNCATE")
    table.upsert(_rows((1, 1, "again"), (2, 1, "again")))
    _expect(_read(table), [(1, "again"), (2, "again")], "late rows after TRUNCATE")


def _a_restore_brings_back(bench: _Bench) -> None:
    """Check that a restore is the earlier version, with its tombstones (L11)."""
    table = bench.keyed()
    table.upsert(_rows((1, 5, "a"), (2, 5, "a")))
    table.delete([1])
    table.compact(full=True)
    then = table.splits().version
    table.upsert(_rows((1, 9, "back"), (2, 9, "b"), (3, 9, "c")))
    table.compact(full=True)  # the files of the earlier version are live no more
    done = table.restore(then)
    _expect(_read(table), [(2, "a")], "a table after a restore")
    _expect((done.rows, done.version), (1, table.splits().version), "(rows, version) of the result of a restore")
    numbers = [[f.commit for f in table.splits(version).files] for version in (then, None)]
    _expect(numbers[1], numbers[0], "commit numbers of the files that a restore brings back")
    table.upsert(_rows((1, 4, "late"), (2, 6, "newer")))
    _expect(_read(table), [(2, "newer")], "rows that come after a restore")


def _a_restore_keeps_transactions(bench: _Bench) -> None:
    """Check that a restore forgets no transaction, neither of the version that it brings back nor a later one (L11)."""
    table = bench.keyed()
    table.upsert(_rows((1, 5, "a")), txn=("app", 1))
    then = table.splits().version
    table.upsert(_rows((1, 9, "b")), txn=("app", 2))
    table.restore(then)
    for number in (2, 1):
        _expect(table.upsert(_rows((7, 7, "z")), txn=("app", number)).skipped, True, "skipped, a retry after a restore")
    _expect(_read(table), [(1, "a")], "a table after a restore, and retries")


def _what_is_declared_stays(bench: _Bench) -> None:
    """Check that NOT NULL, DEFAULT, comments and properties are as they were given, whatever is committed (L3)."""
    name = f"c.default.commits{next(_NUMBERS)}"
    statement = (
        "k INT NOT NULL COMMENT 'the key', w INT DEFAULT 7, v STRING NOT NULL DEFAULT 'it\\'s' COMMENT 'ä \"value\"', "
        "PRIMARY KEY (k) NOT ENFORCED) TBLPROPERTIES ('watermark-key' = 'w', 'comment' = 'all of it')"
    )
    bench.record.made(name, f"CREATE TABLE t ({statement}")
    bench.session.sql(f"CREATE TABLE {name} ({statement}")
    table = Recorded(bench.session.table(name), bench.record)

    declared: dict[str, object] = {
        "k": ("int", False, None, "the key"),
        "w": ("int", True, "7", None),
        "v": ("string", False, r"'it\'s'", 'ä "value"'),
        "watermark-key": "w",
        "comment": "all of it",
    }

    def stays(when: str) -> None:
        found = table.connector.metadata.get_table_definition(table.handle)
        columns = {c.name: (c.type, c.nullable, c.default, c.comment) for c in found.visible}
        for what, wanted in declared.items():
            _expect({**found.properties, **columns}.get(what), wanted, f"what is declared of {what} {when}")

    stays("in a new table")
    table.upsert(_rows((1, 1, "a")))
    table.compact(full=True)
    stays("after an upsert and a compaction")
    bench.run(f"ALTER TABLE {name} ALTER COLUMN w COMMENT 'when'")
    bench.run(f"ALTER TABLE {name} SET TBLPROPERTIES ('comment' = 'none of it')")
    declared |= {"w": ("int", True, "7", "when"), "comment": "none of it"}
    stays("after new comments")
    bench.run(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('comment')")
    bench.run(f"ALTER TABLE {name} ALTER COLUMN w DROP DEFAULT")
    declared |= {"w": ("int", True, None, "when"), "comment": None}
    stays("after a property and a DEFAULT were taken away")


def _bounds_lose_no_row(bench: _Bench) -> None:
    """Check that a predicate on an ordering column finds each value again, in a file of its own (L9)."""
    _find_all(bench, _BOUNDS)


def _bounds_of_other_types_lose_no_row(bench: _Bench) -> None:
    """Check that values of types that only Spark orders, and NaN and -0.0, are found beside others (L9, K2, K3)."""
    _find_all(bench, _BOUNDS_OF_SPARK)
    if Capability.DOUBLE in bench.can:
        table = bench.make(kind="double")
        bench.commit(table, [_rows((0, 1, 1.5), (1, 1, math.nan), (2, 1, -0.0), kind="double")])
        _finds(table, f"v > {_literal('double', '1e300')}", 1)
        _finds(table, f"v = {_literal('double', '0.0')}", 2)


def _find_all(bench: _Bench, bounds: Mapping[str, tuple[Json, ...]]) -> None:
    for kind, values in _tried_types(bounds, bench.can):
        table = bench.make(key=("k",), kind=kind, properties={"watermark-key": "v"})
        values = (*values, None)
        bench.commit(table, [_rows((n, 1, decode(kind, value)), kind=kind) for n, value in enumerate(values)])
        for compacted in (False, True):
            if compacted:
                table.compact(full=True)
            for number, value in enumerate(values):
                for where in (*_tests(kind, value), f"k = {number}"):
                    _finds(table, where, number)


def _tried_types(
    bounds: Mapping[str, tuple[Json, ...]], can: Collection[Capability]
) -> Sequence[tuple[str, tuple[Json, ...]]]:
    return with_types([*bounds.items()], lambda item: item[:1], can)


def _statistics_hold(bench: _Bench) -> None:
    """Check that the statistics of files hold for each of their rows, for readers who leave files out by them (L9)."""
    for kind, values in _tried_types({**_BOUNDS, **_BOUNDS_OF_SPARK}, bench.can):
        table = bench.make(kind=kind, properties={"watermark-key": "v"})
        rows = [(number, 1, decode(kind, value)) for number, value in enumerate((*values, None))]
        bench.commit(table, [_rows(*pair, kind=kind) for pair in pairwise(rows)])
        _statistics(table)
        table.compact(full=True)
        _statistics(table)


def _statistics(table: Any) -> None:
    if (wrong := wrong_statistics(table.splits())) is not None:
        raise NonConformance(_CHECK, wrong)


def _tests(kind: str, value: Json) -> tuple[str, ...]:
    """Return predicates that are true for a value."""
    if value is None:
        return ("v IS NULL",)
    literal = _literal(kind, value)
    return f"v = {literal}", f"v >= {literal} AND v <= {literal}"


def _literal(kind: str, value: Json) -> str:
    """Return a literal by which files are left out; a DECIMAL that is cast from text is none."""
    return str(value) if kind.startswith("decimal") else sql_literal(kind, value)


def _finds(table: Any, where: str, number: int) -> None:
    found = [row["k"] for row in table.to_arrow(where=where).to_pylist()]
    if number not in found:
        raise NonConformance(_CHECK, f"row {number} is not found by {where}; it finds {sorted(found)}")


def _bounds_follow_their_columns(bench: _Bench) -> None:
    """Check that a predicate finds the rows of columns that have exchanged their names (L3, L9)."""
    table = bench.make(key=(), kind="int")
    table.append(_rows((1, 10, 100), kind="int"))
    table.append(_rows((2, 20, 200), kind="int"))
    for old, new in (("w", "x"), ("v", "w"), ("x", "v")):
        bench.run(f"ALTER TABLE {table.name} RENAME COLUMN {old} TO {new}")
    table = Recorded(bench.session.table(str(table.name)), bench.record)
    for number, where in ((1, "w = 100"), (2, "w = 200"), (1, "v = 10"), (2, "v = 20")):
        _finds(table, where, number)


def _partitions_keep_their_values(bench: _Bench) -> None:
    """Check that partition values are read back unchanged, NULL and unusual text among them (L9, K5)."""
    texts = [None, "a", "__HIVE_DEFAULT_PARTITION__x", "a/b", "a=b", "%41", " x ", "ä", "null", "NULL"]
    table = bench.make(key=(), partition_by=["v"])
    table.append(_rows(*((number, 1, text) for number, text in enumerate(texts))))
    _expect(sorted(_read(table), key=str), sorted(enumerate(texts), key=str), "a table partitioned by odd text")
    try:
        table.append(_rows((len(texts), 1, "")))
        texts.append("")
    except TrinityError as error:  # some formats read it as NULL, and so must refuse it
        _expect(error.code, "CONSTRAINT_VIOLATION", "the code of the refusal of '' as a partition")
    for number, text in enumerate(texts):
        where = "v IS NULL" if text is None else f"v = {sql_literal('string', text)}"
        _finds(table, where, number)
        _expect(len(_read(table, where)), 1, f"rows where {where}")


COMMITS: Final[Mapping[str, Callable[[_Bench], None]]] = {
    check.__name__[1:].replace("_", " "): check
    for check in (
        _files_have_their_order,
        _a_failed_task_leaves_nothing,
        _results_say_what_was_written,
        _nothing_is_no_version,
        _truncating_nothing_is_no_version,
        _restoring_nothing_is_no_version,
        _transactions_are_of_their_application,
        _numbers_of_transactions_are_whole,
        _a_new_table_has_nothing_of_a_dropped_one,
        _a_renamed_table_is_the_same,
        _schemas_keep_their_tables_apart,
        _versions_grow_one_by_one,
        _many_versions_have_their_order,
        _old_versions_keep_what_they_need,
        _tombstones_outlive_maintenance,
        _a_widened_key_keeps_its_place,
        _deletes_by_position_stay,
        _truncate_takes_all,
        _a_restore_brings_back,
        _a_restore_keeps_transactions,
        _partitions_keep_their_values,
        _what_is_declared_stays,
        _bounds_lose_no_row,
        _bounds_of_other_types_lose_no_row,
        _bounds_follow_their_columns,
        _statistics_hold,
    )
}
"""All checks, by name."""
_OF_RESTORE: Final = (_a_restore_brings_back, _a_restore_keeps_transactions, _restoring_nothing_is_no_version)
_NEEDS: Final[Mapping[Callable[[_Bench], None], frozenset[Capability]]] = {
    _versions_grow_one_by_one: frozenset((Capability.ROW_CHANGES, Capability.TIME_TRAVEL)),
    _old_versions_keep_what_they_need: frozenset((Capability.TIME_TRAVEL,)),
    _a_widened_key_keeps_its_place: frozenset((Capability.WIDEN_COLUMN,)),
    _deletes_by_position_stay: frozenset((Capability.RESOLVE,)),
    **dict.fromkeys((_truncate_takes_all, _truncating_nothing_is_no_version), frozenset((Capability.TRUNCATE,))),
    _a_renamed_table_is_the_same: frozenset((Capability.RENAME_TABLE,)),
    **dict.fromkeys(_OF_RESTORE, frozenset((Capability.RESTORE,))),
    _partitions_keep_their_values: frozenset((Capability.PARTITION_BY_VALUE,)),
    _bounds_follow_their_columns: frozenset((Capability.RENAME_COLUMN,)),
}  # fmt: skip
"""Check -> the capabilities that it needs."""


def try_commits(
    subject: TrinitySubject, tally: Tally, checks: Mapping[str, Callable[[_Bench], None]] = COMMITS
) -> list[NonConformance]:
    """Run the checks that the adapter's capabilities allow, and return the failures."""
    bench = partial(_Bench, subject.session, subject.capabilities)
    return try_checks(subject, tally, _CHECK, checks, _NEEDS, bench, ["local"])

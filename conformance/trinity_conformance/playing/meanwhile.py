"""Commits between the beginning and the end of another one. They are handwritten, as a history has one writer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import trinity
from trinity.errors import TrinityError
from trinity.spi import Capability
from trinity_conformance.playing.cases import Record, Recorded
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.single_checks import try_checks
from trinity_conformance.playing.subject import TrinitySubject

if TYPE_CHECKING:
    from trinity_conformance.playing.observations import Tally

_CHECK: Final = "concurrency"
_MANY: Final = 1000
_NUMBERS: Final = count()
_COLUMNS: Final = ("k INT", "w INT", "v STRING")


class _Bench:
    """A bench that makes tables, and runs functions within a call of the adapter."""

    def __init__(self, session: trinity.Session, record: Record) -> None:
        self._session, self._record = session, record
        self._made: dict[str, str] = {}

    def make(self, *, keyed: bool, **options: str) -> Any:
        """Make a table of k, w, v: plain, or keyed by k with watermark w, unless other options are given."""
        name = f"c.default.meanwhile{next(_NUMBERS)}"
        key = ["PRIMARY KEY (k) NOT ENFORCED"] if keyed else []
        options = {o.replace("_", "-"): v for o, v in options.items()} or ({"watermark-key": "w"} if keyed else {})
        listed = ", ".join(f"'{option}' = '{value}'" for option, value in options.items())
        properties = f" TBLPROPERTIES ({listed})" if options else ""
        self._made[name] = f"CREATE TABLE {name} ({', '.join([*_COLUMNS, *key])}){properties}"
        self._record.made(name, self._made[name])
        self._session.sql(self._made[name])
        return Recorded(self._session.table(name), self._record)

    def remake(self, table: Any) -> None:
        """Drop a table, and make it again under its name."""
        self.sql(f"DROP TABLE {table.name}")
        self.sql(self._made[str(table.name)])

    def expect_name(self, table: Any, expected: list[tuple[int, str | None]], what: str) -> None:
        """Compare the rows of the table that now has the name."""
        _expect(self._session.table(str(table.name)), expected, what)

    def sql(self, statement: str) -> None:
        """Run a statement."""
        self._record.ran(statement)
        self._session.sql(statement)

    @contextmanager
    def within(self, call: str, happens: Callable[[], object], *, before: bool = False) -> Iterator[None]:
        """Call a function once, after a method of the adapter's metadata has returned, or before it."""
        metadata = self._session.connector("c").metadata
        method = getattr(metadata, call)

        def meanwhile() -> None:
            with self._record.within(f"{'before' if before else 'after'} its {call}"):
                happens()

        def and_then(*arguments: Any, **options: Any) -> Any:
            delattr(metadata, call)
            if before:
                meanwhile()
            found = method(*arguments, **options)
            if not before:
                meanwhile()
            return found

        setattr(metadata, call, and_then)
        try:
            yield
        finally:
            vars(metadata).pop(call, None)


def _data(*rows: tuple[int, int, str | None]) -> pa.Table:
    k, w, v = zip(*rows, strict=True)
    return pa.table({"k": pa.array(k, pa.int32()), "w": pa.array(w, pa.int32()), "v": pa.array(v, pa.string())})


_DEMANDS: Final = (
    ("ADD CONSTRAINT positive CHECK (w > 0)", _data((1, -1, "a"))),
    ("ALTER COLUMN v SET NOT NULL", _data((1, 1, None))),
)
"""(a constraint, rows that violate it)."""


_GONE: Final = ("TRANSACTION_CONFLICT", "TABLE_NOT_FOUND")
"""Error codes of a statement whose table does not exist any more."""


def _expect(table: Any, expected: list[tuple[int, str | None]], what: str, where: str | None = None) -> None:
    rows = table.to_arrow(where=where).to_pylist()
    found = sorted((row["k"], row["v"]) for row in rows)
    if found != expected:
        raise NonConformance(_CHECK, f"{what}: the table reads {found} instead of {expected}")


def _both_appends_are_kept(bench: _Bench) -> None:
    """Check that an append does not fail because of another one's commit, and overwrites none (L7)."""
    table = bench.make(keyed=False)
    with bench.within("begin_insert", lambda: table.append(_data((2, 1, "meanwhile")))):
        table.append(_data((1, 1, "a")))
    _expect(table, [(1, "a"), (2, "meanwhile")], "an append while another one is under way")


def _the_later_commit_wins(bench: _Bench) -> None:
    """Check that the append that is committed later is later, whichever of two began first (K4)."""
    table = bench.make(keyed=True)
    with bench.within("begin_insert", lambda: table.upsert(_data((1, 1, "meanwhile")))):
        table.upsert(_data((1, 1, "a")))
    _expect(table, [(1, "a")], "a tie between two upserts, of which the first to begin was committed last")


def _a_transaction_is_recorded_once(bench: _Bench) -> None:
    """Check that a transaction that is written twice at the same time is committed once (L4)."""
    table, again = bench.make(keyed=False), _data((1, 1, "a"))
    with bench.within("begin_insert", lambda: table.append(again, txn=("app", 1))):
        second = table.append(again, txn=("app", 1))
    _expect(table, [(1, "a")], "a transaction that another writer committed while it was under way")
    if not second.skipped:
        raise NonConformance(
            _CHECK, "a transaction that was committed twice at the same time is not said to be skipped"
        )


def _compaction_counts_as_earlier(bench: _Bench) -> None:
    """Check that rows that arrive during a compaction stay, and are later than all that it folded (K6)."""
    for full in (True, False):
        table = bench.make(keyed=True)
        table.upsert(_data(*((k, 1, "a") for k in range(_MANY))))
        if not full:
            table.compact(full=True)  # the next compaction, of a log much smaller than the base, does not rewrite it
        table.upsert(_data((1, 1, "b")))
        table.upsert(_data((2, 1, "b")))
        with bench.within("begin_rewrite", partial(table.upsert, _data((1, 1, "meanwhile")))):
            table.compact(full=full)
        _expect(
            table, [(1, "meanwhile"), (2, "b")], "an upsert with an equal watermark during a compaction", "k IN (1, 2)"
        )


def _one_of_two_compactions_wins(bench: _Bench) -> None:
    """Check that files are replaced once: a second compaction conflicts, and the table reads as before (L3, L7)."""
    table = bench.make(keyed=True)
    table.upsert(_data((1, 1, "a"), (2, 1, "a")))
    table.upsert(_data((1, 2, "b")))
    try:
        with bench.within("begin_rewrite", lambda: table.compact(full=True)):
            table.compact(full=True)
    except TrinityError as error:
        if error.code != "TRANSACTION_CONFLICT":
            raise NonConformance(_CHECK, f"two compactions of the same files: {error.code}: {error.message}") from error
    _expect(table, [(1, "b"), (2, "a")], "two compactions of the same files at the same time")


def _a_statement_sees_what_came_meanwhile(bench: _Bench) -> None:
    """Check that a commit that a statement should have seen makes it run again, or fail: no update is lost (L7)."""
    for keyed in (True, False):
        table = bench.make(keyed=keyed)
        write = table.upsert if keyed else table.append
        write(_data((1, 1, "a")))
        meanwhile = f"UPDATE {table.name} SET v = concat(v, 'b') WHERE k = 1"
        with bench.within("begin_merge", partial(bench.sql, meanwhile)):
            bench.sql(f"UPDATE {table.name} SET v = concat(v, 'c') WHERE k = 1")
        _expect(table, [(1, "abc")], "two updates of one row at the same time")


def _a_statement_sees_what_went_meanwhile(bench: _Bench) -> None:
    """Check that rows deleted while a statement reads them do not reappear, even without a tombstone (L7)."""

    def deleted(table: Any) -> None:
        bench.sql(f"DELETE FROM {table.name} WHERE k = 1")
        table.compact(full=True)

    ways: dict[str, Callable[[Any], object]] = {
        "TRUNCATE": lambda table: bench.sql(f"TRUNCATE TABLE {table.name}"),
        "DELETE and compaction": deleted,
    }
    for what, way in ways.items():
        table = bench.make(keyed=True, merge_engine="deduplicate")
        table.upsert(_data((1, 1, "a")))
        with bench.within("begin_merge", partial(way, table)):
            bench.sql(f"UPDATE {table.name} SET v = concat(v, 'c') WHERE k = 1")
        _expect(table, [], f"an UPDATE of a row that {what} removed meanwhile")


def _compaction_is_no_conflict(bench: _Bench) -> None:
    """Check that no statement runs again for a compaction, or for other rows that were folded (L3, L7)."""
    table = bench.make(keyed=True, watermark_key="w", **{"commit.retry.timeout": "0 seconds"})
    table.upsert(_data((1, 1, "a"), (2, 1, "a")))

    def folded() -> None:
        table.upsert(_data((3, 1, "meanwhile")))
        table.compact(full=True)

    with bench.within("begin_merge", folded):
        bench.sql(f"UPDATE {table.name} SET v = concat(v, 'c') WHERE k = 1")
    _expect(table, [(1, "ac"), (2, "a"), (3, "meanwhile")], "an UPDATE while a compaction folded other rows")


def _a_write_stays_with_its_table(bench: _Bench) -> None:
    """Check that rows written for a table do not go into another table that got its name (L7)."""
    writes: dict[str, Callable[[Any], object]] = {
        "begin_insert": lambda table: table.upsert(_data((1, 1, "b"))),
        "begin_merge": lambda table: bench.sql(f"UPDATE {table.name} SET v = 'b' WHERE k = 1"),
        "begin_rewrite": lambda table: table.compact(full=True),
    }
    for call, write in writes.items():
        table = bench.make(keyed=True)
        table.upsert(_data((1, 1, "a")))
        what = f"DROP and CREATE right after {call}"
        with bench.within(call, partial(bench.remake, table)):
            try:
                write(table)
            except TrinityError as error:
                _is_one_of(_GONE, what, error)
            else:
                if call != "begin_merge":  # a statement runs again, on the new table
                    raise NonConformance(_CHECK, f"{what} went through; {_GONE[0]} was expected")
        bench.expect_name(table, [], what)


def _files_are_there_when_they_are_committed(bench: _Bench) -> None:
    """Check that a file that a vacuum removed before its commit is not committed (L8)."""
    table = bench.make(keyed=False)
    with bench.within("finish_insert", lambda: table.vacuum("0 seconds"), before=True):
        _refused("TRANSACTION_CONFLICT", "an append whose file a vacuum took", lambda: table.append(_data((1, 1, "a"))))
    _expect(table, [], "an append whose file a vacuum took")


def _rows_meet_what_is_demanded_meanwhile(bench: _Bench) -> None:
    """Check that a constraint added while rows are written holds for them too, or they are not committed (M6)."""
    for demand, bad in _DEMANDS:
        table = bench.make(keyed=True)
        with bench.within("begin_insert", partial(bench.sql, f"ALTER TABLE {table.name} {demand}")):
            _refused("TRANSACTION_CONFLICT", f"an upsert that began before {demand}", partial(table.upsert, bad))
        _expect(table, [], f"an upsert that began before {demand}")


def _a_constraint_is_for_rows_that_came_meanwhile(bench: _Bench) -> None:
    """Check that a constraint is not added if a row that violates it is committed before it (M6)."""
    for demand, bad in _DEMANDS:
        table = bench.make(keyed=False)
        alter = partial(bench.sql, f"ALTER TABLE {table.name} {demand}")
        with bench.within("alter_table", partial(table.append, bad), before=True):
            _refused("CONSTRAINT_VIOLATION", f"{demand}, before which a row came", alter)
        table.append(bad)
        rows = [(1, bad["v"][0].as_py())] * 2
        _expect(table, rows, f"{demand}, which was refused")


def _refused(code: str, what: str, call: Callable[[], object]) -> None:
    try:
        call()
    except TrinityError as error:
        _is_one_of((code,), what, error)
    else:
        raise NonConformance(_CHECK, f"{what} went through; {code} was expected")


def _is_one_of(codes: Collection[str], what: str, error: TrinityError) -> None:
    if error.code not in codes:
        expected = " or ".join(codes)
        raise NonConformance(_CHECK, f"{what}: {error.code} instead of {expected}: {error.message}") from error


MEANWHILE: Final[Mapping[str, Callable[[_Bench], None]]] = {
    check.__name__[1:].replace("_", " "): check
    for check in (
        _both_appends_are_kept,
        _the_later_commit_wins,
        _a_transaction_is_recorded_once,
        _compaction_counts_as_earlier,
        _one_of_two_compactions_wins,
        _a_statement_sees_what_came_meanwhile,
        _a_statement_sees_what_went_meanwhile,
        _compaction_is_no_conflict,
        _a_write_stays_with_its_table,
        _files_are_there_when_they_are_committed,
        _rows_meet_what_is_demanded_meanwhile,
        _a_constraint_is_for_rows_that_came_meanwhile,
    )
}
"""All checks, by name."""
_NEEDS: Final[Mapping[Callable[[_Bench], None], frozenset[Capability]]] = {
    **dict.fromkeys(
        (_a_statement_sees_what_came_meanwhile, _compaction_is_no_conflict, _a_write_stays_with_its_table),
        frozenset((Capability.ROW_CHANGES,)),
    ),
    _a_statement_sees_what_went_meanwhile: frozenset((Capability.ROW_CHANGES, Capability.TRUNCATE)),
    **dict.fromkeys(
        (_rows_meet_what_is_demanded_meanwhile, _a_constraint_is_for_rows_that_came_meanwhile),
        frozenset((Capability.CONSTRAINTS,)),
    ),
}
"""Check -> the capabilities that it needs."""


def try_meanwhile(
    subject: TrinitySubject, tally: Tally, checks: Mapping[str, Callable[[_Bench], None]] = MEANWHILE
) -> list[NonConformance]:
    """Run the checks that the adapter's capabilities allow with each executor, and return the failures."""
    return try_checks(subject, tally, _CHECK, checks, _NEEDS, partial(_Bench, subject.session), subject.executors)

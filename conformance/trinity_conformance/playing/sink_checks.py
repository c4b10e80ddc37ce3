"""S1-S6: what the merge sinks of any adapter must do, page by page, without Spark in the sinks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from trinity.errors import TrinityError
from trinity.spi import MergeTableHandle, Operation, RowChangeParadigm
from trinity_conformance.model.values import POOLS, Json, decode, equal_form
from trinity_conformance.playing.cases import Record
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.single_checks import try_checks
from trinity_conformance.playing.sink_bench import MergePageRow, SinkBench, SinkTable
from trinity_conformance.playing.subject import TrinitySubject

SinkCheck = Callable[[SinkBench], None]

_INSERT, _DELETE, _UPDATE = int(Operation.INSERT), int(Operation.DELETE), int(Operation.UPDATE)
_UPDATE_INSERT, _UPDATE_DELETE = int(Operation.UPDATE_INSERT), int(Operation.UPDATE_DELETE)
_KEYS: Final = {
    "double": ("-0.0", "0.0"),
    "float": ("NaN", "NaN"),
    "char(3)": ("a", "a "),
    "decimal(10,2)": ("1.50", "1.5"),
}
"""Key types with two spellings of one key, or with a key that does not equal itself (K2)."""


def _expect(rule: str, what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise NonConformance("merge-sinks", f"{rule}: {what}: {found} instead of {wanted}")


def _row(k: Json, w: int | None = None, s: str | None = None) -> dict[str, Json]:
    return {"k": k, "w": w, "s": s}


def _page_layout(bench: SinkBench) -> None:
    """Check S1, S5, C7: the row id column has a name; the handle is pinned, with the columns of the update cases.

    The pinned version is one commit, however it is asked for.
    """
    for table in (bench.plain((1, "a")), bench.keyed((1, 1, "a"))):
        merge = table.begin(case1=("s",))
        _expect("S5", "update_case_columns", dict(merge.update_case_columns), {1: ("s",)})
        newest = table.metadata.history(table.handle)[-1]
        _expect("S5", "the pinned version", merge.table.version, newest.version)
        _expect("C7", "its commit's id", table.metadata.get_splits(table.handle).commit_id, newest.commit_id)
        _expect("S1", "stored columns", len(merge.insert.target.storage), len(merge.insert.definition.columns))
        taken = merge.row_id in merge.insert.target.storage.names
        _expect("S1", f"row id {merge.row_id!r} is a column of the table", taken, False)


def _operations(bench: SinkBench) -> None:
    """Check S2: operations that the paradigm lacks are refused, and have no effect."""
    replacing = RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW
    tables = {
        "plain": bench.plain((1, "a")),
        "keyed": bench.keyed((1, 1, "a")),
        "changed": bench.keyed((1, 1, "a"), changed=True),
    }
    for kind, table in tables.items():
        merge = table.begin()
        _expect("S2", f"paradigm of {kind}", merge.paradigm is replacing, kind != "changed")
        row_id = _row(1, 1, "a") if table.key else table.row_id(k=1)
        wrong = (0, 3, 6, -1, 127, None) if merge.paradigm is replacing else (0, 4, 5, 6, -1, 127, None)
        for operation in wrong:
            _refused(table, merge, MergePageRow(operation, _row(2, 2, "b"), row_id))
        _expect("S2", f"rows of {kind} after refused pages", len(table.rows()), 1)


def _refused(table: SinkTable, merge: MergeTableHandle, change: MergePageRow) -> None:
    sink, before = table.sink(merge), table.stored()
    try:
        sink.store_merged_rows(table.page(merge, [MergePageRow(_INSERT, _row(3, 3, "c")), change]))
    except TrinityError as error:
        _expect("S2", f"code for operation {change.operation}", error.code, "INVALID_ARGUMENTS")
        sink.abort()
        _expect("S2", "files of a refused sink", table.stored() - before, set())
        return
    raise NonConformance("merge-sinks", f"S2: operation {change.operation} was accepted under {merge.paradigm.value}")


def _empty_pages(bench: SinkBench) -> None:
    """Check S4: empty pages do nothing, alone or between others."""
    for table in (bench.plain((1, "a")), bench.keyed((1, 1, "a"))):
        before = table.stored()
        merge = table.begin()
        _expect("S4", "fragments of a sink without pages", table.run(merge), [])
        _expect("S4", "fragments of empty pages", table.run(merge, [], []), [])
        _expect("S4", "files of empty pages", table.stored() - before, set())
        table.finish(merge, table.run(merge, [], [MergePageRow(_INSERT, _row(2, 2, "b"))], []))
        _expect("S4", "rows with empty pages between", table.values("k", "s"), [(1, "a"), (2, "b")])


def _plain_changes(bench: SinkBench) -> None:
    """Check S3: deletes have no data; only the deleted rows disappear from their files, and other files stay."""
    table = bench.plain((1, "a"), (2, "b"), (3, None), (2, "b"))
    table.store(_row(4, None, "d"))
    untouched = table.files()[-1].path
    merge = table.begin(case0=("s",))
    changes = [
        MergePageRow(_DELETE, {}, table.row_id(k=1), -1),
        MergePageRow(_UPDATE_DELETE, {}, table.row_id(k=3), -1),
        MergePageRow(_UPDATE_INSERT, _row(3, None, "c"), table.row_id(k=3)),
        MergePageRow(_INSERT, _row(5, None, None)),
    ]
    table.finish(merge, table.run(merge, changes))
    _expect("S3", "rows", table.values("k", "s"), [(2, "b"), (2, "b"), (3, "c"), (4, "d"), (5, None)])
    _expect("S3", "an untouched file is still there", untouched in [f.path for f in table.files()], True)


def _columns_that_stay(bench: SinkBench) -> None:
    """Check S5: a sink that updates in place gets rows without the columns that no case changes, and keeps these."""
    for gone in ((), (1,)):
        table = bench.plain((1, "a"), (2, "b"), (3, None))
        merge = table.begin(case0=("s",))
        if not table.updates_in_place(merge):
            return
        merge = replace(merge, in_place=True)
        changes = [MergePageRow(_DELETE, {}, table.row_id(k=k), -1) for k in gone]
        for k, s in ((2, "new"), (3, "c")):
            changes += [
                MergePageRow(_UPDATE_DELETE, {}, table.row_id(k=k)),
                MergePageRow(_UPDATE_INSERT, {"s": s}, table.row_id(k=k)),
            ]
        table.finish(merge, table.run(merge, changes))
        left = [] if gone else [(1, "a")]
        _expect("S5", "rows that are updated in place", table.values("k", "s"), [*left, (2, "new"), (3, "c")])


def _a_file_without_rows_left(bench: SinkBench) -> None:
    """Check S3: a file without rows left is gone, and deletions of many pages add up."""
    table = bench.plain((1, "a"), (2, "b"))
    merge = table.begin()
    pages = [[MergePageRow(_DELETE, {}, table.row_id(k=k))] for k in (2, 1)]
    table.finish(merge, table.run(merge, *pages))
    _expect("S3", "rows", table.values("k"), [])
    _expect("S3", "files", [f for f in table.files() if f.rows], [])


def _halves_in_different_sinks(bench: SinkBench) -> None:
    """Check S4: the halves of an update may reach different sinks, in any order."""
    table = bench.plain((1, "a"), (2, "b"), (3, "c"))
    for k, first in ((1, 0), (2, 1)):
        merge = table.begin(case0=("s",))
        row_id = table.row_id(k=k)
        halves = [
            [MergePageRow(_UPDATE_DELETE, {}, row_id)],
            [MergePageRow(_UPDATE_INSERT, _row(k, None, "new"), row_id)],
        ]
        table.finish(merge, [f for n in (first, 1 - first) for f in table.run(merge, halves[n], order=n)])
    _expect("S4", "rows", table.values("k", "s"), [(1, "new"), (2, "new"), (3, "c")])


def _moved_keys(bench: SinkBench) -> None:
    """Check S4, M7: an updated key leaves a tombstone with its old ordering, whichever sink has which half."""
    table = bench.keyed((1, 7, "a"), (2, 5, "b"), (3, 1, "c"))
    for k, w, first in ((1, 7, 0), (2, 5, 1)):
        merge = table.begin(case0=("k",))
        old = _row(k, w, "ab"[k - 1])
        halves = [[MergePageRow(_UPDATE_DELETE, {}, old)], [MergePageRow(_UPDATE_INSERT, _row(k + 10, w, "n"), old)]]
        table.finish(merge, [f for n in (first, 1 - first) for f in table.run(merge, halves[n], order=n)])
    gone = sorted((r["k"], r["w"]) for r in table.rows() if r["gone"])
    _expect("S4", "tombstones", gone, [(1, 7), (2, 5)])
    live = sorted((r["k"], r["w"]) for r in table.rows() if not r["gone"])
    _expect("S4", "other rows", live, [(1, 7), (2, 5), (3, 1), (11, 7), (12, 5)])


def _kept_keys(bench: SinkBench) -> None:
    """Check S4, M7: the delete half of an update with an unchanged key is dropped, before or after the other half."""
    table = bench.keyed((1, 7, "a"), (2, 7, "b"))
    merge = table.begin(case0=("s",))
    old, new = [_row(1, 7, "a"), _row(2, 7, "b")], [_row(1, 7, "new"), _row(2, 7, "new")]
    pages = [
        [MergePageRow(_UPDATE_DELETE, {}, old[0])],
        [MergePageRow(_UPDATE_INSERT, new[0], old[0]), MergePageRow(_UPDATE_INSERT, new[1], old[1])],
        [MergePageRow(_UPDATE_DELETE, {}, old[1])],
    ]
    table.finish(merge, table.run(merge, *pages))
    wanted = [(1, None, "a"), (1, None, "new"), (2, None, "b"), (2, None, "new")]
    _expect("M7", "key, tombstone, s", table.values("k", "gone", "s"), wanted)


def _filled_keys(bench: SinkBench) -> None:
    """Check M7: a key that is vacated and filled writes only the insert."""
    table = bench.keyed((1, 7, "a"), (2, 7, "b"), (3, 7, "c"))
    merge = table.begin(case0=("k",))
    changes = []
    for k, to, s in ((1, 2, "a"), (2, 1, "b")):  # they change places
        changes += [
            MergePageRow(_UPDATE_DELETE, {}, _row(k, 7, s)),
            MergePageRow(_UPDATE_INSERT, _row(to, 7, s), _row(k, 7, s)),
        ]
    changes += [MergePageRow(_DELETE, {}, _row(3, 7, "c")), MergePageRow(_INSERT, _row(3, 8, "new"))]
    table.finish(merge, table.run(merge, changes))
    _expect("M7", "tombstones", [r for r in table.rows() if r["gone"]], [])
    wanted = sorted([(1, "a"), (2, "b"), (3, "c"), (2, "a"), (1, "b"), (3, "new")], key=repr)
    _expect("M7", "stored rows", table.values("k", "s"), wanted)


def _tombstones(bench: SinkBench) -> None:
    """Check U5: a deleted row leaves key, ordering and other columns, and the mark."""
    for changed in (False, True):
        table = bench.keyed((1, 7, "a"), (2, None, "b"), changed=changed)
        merge = table.begin()
        gone = [MergePageRow(_DELETE, {}, _row(1, 7, "a")), MergePageRow(_DELETE, {}, _row(2, None, "b"))]
        table.finish(merge, table.run(merge, gone))
        marked = sorted((r["k"], r["w"], r["s"]) for r in table.rows() if r["gone"])
        _expect("U5", "tombstones", marked, [(1, 7, "a"), (2, None, "b")])


def _changed_rows(bench: SinkBench) -> None:
    """Check S2: a changed-columns sink takes full rows under one operation."""
    table = bench.keyed((1, 7, "a"), (2, 5, "b"), changed=True)
    merge = table.begin(case3=("s",))
    _expect("S2", "paradigm", merge.paradigm, RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS)
    changes = [
        MergePageRow(_UPDATE, _row(1, 8, "new"), _row(1, 7, "a"), 3),
        MergePageRow(_INSERT, _row(3, 1, "c"), None, 4),
    ]
    table.finish(merge, table.run(merge, changes))
    wanted = [(1, 7, "a"), (1, 8, "new"), (2, 5, "b"), (3, 1, "c")]
    _expect("S2", "stored rows", table.values("k", "w", "s"), wanted)


def _keys_of_every_type(bench: SinkBench) -> None:
    """Check K2, M7: an update with an unchanged key writes one row, whatever the key's types and spelling."""
    kinds = {f"k{n}": kind for n, kind in enumerate(POOLS)}
    spellings = {name: _KEYS.get(kind, (POOLS[kind][-1],) * 2) for name, kind in kinds.items()}
    table = bench.keyed_by(kinds)
    table.store({**{name: old for name, (old, _) in spellings.items()}, "w": 1, "s": "a"})
    merge = table.begin(case0=("s",))
    old, new = ({n: _padded(kinds[n], pair[i]) for n, pair in spellings.items()} for i in (0, 1))
    row_id = {**old, "w": 1, "s": "a"}
    changes = [
        MergePageRow(_UPDATE_DELETE, {}, row_id),
        MergePageRow(_UPDATE_INSERT, {**new, "w": 1, "s": "b"}, row_id),
    ]
    table.finish(merge, table.run(merge, changes))
    _expect("K2", "tombstones", [r for r in table.rows() if r["gone"]], [])
    for name, kind in kinds.items():
        found = {equal_form(kind, r[name]) for r in table.rows()}
        _expect("K2", f"keys of type {kind}", found, {equal_form(kind, decode(kind, spellings[name][0]))})


def _padded(kind: str, key: Json) -> Json:
    """Return a CHAR as it is stored."""
    return str(key).ljust(int(kind[5:-1])) if kind.startswith("char(") else key


def _run_twice(bench: SinkBench) -> None:
    """Check S6: if a sink ran twice, only the fragments that finish_merge gets count."""
    for table in (bench.plain((1, "a"), (2, "b")), bench.keyed((1, 7, "a"), (2, 5, "b"))):
        merge = table.begin()
        row_id = _row(1, 7, "a") if table.key else table.row_id(k=1)
        pages = [MergePageRow(_DELETE, {}, row_id), MergePageRow(_INSERT, _row(3, 1, "c"))]
        table.run(merge, pages)
        second = table.run(merge, pages)
        unfinished = table.sink(merge)
        unfinished.store_merged_rows(table.page(merge, pages))
        table.finish(merge, second)
        wanted = [1, 1, 2, 3] if table.key else [2, 3]
        _expect("S6", "keys", [k for (k,) in table.values("k")], wanted)


def _aborted(bench: SinkBench) -> None:
    """Check S6: an aborted sink leaves no file of its own, and touches no others."""
    for table in (bench.plain((1, "a"), (2, "b")), bench.keyed((1, 7, "a"), (2, 5, "b"))):
        before = table.stored()
        merge = table.begin()
        row_id = _row(1, 7, "a") if table.key else table.row_id(k=1)
        kept = table.run(merge, [MergePageRow(_INSERT, _row(3, 1, "c"))], order=1)
        table.sink(merge).abort()
        sink = table.sink(merge)
        sink.store_merged_rows(
            table.page(merge, [MergePageRow(_DELETE, {}, row_id), MergePageRow(_INSERT, _row(4, 1, "d"))])
        )
        sink.abort()
        _expect("S6", "new files after an abort", len(table.stored() - before), 1)
        table.finish(merge, kept)
        _expect("S6", "keys", [k for (k,) in table.values("k")], [1, 2, 3])


def _conflicts(bench: SinkBench) -> None:
    """Check L7: of two merges that rewrite one file the second fails, and changes nothing."""
    table = bench.plain((1, "a"), (2, "b"))
    merges = [table.begin(), table.begin()]
    ran = [table.run(m, [MergePageRow(_DELETE, {}, table.row_id(k=k))]) for m, k in zip(merges, (1, 2), strict=True)]
    table.finish(merges[0], ran[0])
    try:
        table.finish(merges[1], ran[1])
    except TrinityError as error:
        _expect("L7", "code", error.code, "TRANSACTION_CONFLICT")
        _expect("L7", "rows", table.values("k"), [(2,)])
        return
    raise NonConformance("merge-sinks", f"L7: both merges of one file were committed; rows {table.rows()}")


SINK_CHECKS: Final[Mapping[str, SinkCheck]] = {
    check.__name__[1:].replace("_", "-"): check
    for check in (
        _page_layout, _operations, _empty_pages, _plain_changes, _columns_that_stay, _a_file_without_rows_left,
        _halves_in_different_sinks, _moved_keys, _kept_keys, _filled_keys, _tombstones, _changed_rows,
        _keys_of_every_type, _run_twice, _aborted, _conflicts,
    )
}  # fmt: skip
"""Name -> a check, which raises NonConformance; its docstring names the rules."""


def try_sinks(
    subject: TrinitySubject, tally: Tally, checks: Mapping[str, SinkCheck] = SINK_CHECKS
) -> list[NonConformance]:
    """Run the checks; return the failures."""

    def bench(record: Record) -> SinkBench:
        return SinkBench(subject.session, "c", record)

    return try_checks(subject, tally, "merge-sinks", checks, {}, bench, ["local"])

"""One public callable as the first call of a forked process, without a session and without Spark."""

from __future__ import annotations

import multiprocessing as mp
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from trinity.errors import CODES, TrinityError

if TYPE_CHECKING:
    from tests.hostile.calls import Subjects
    from trinity import Table

_LOADED: Final = [
    "pytest", "pyspark.sql", "tests.hostile.calls", "trinity_parquet", "trinity_delta", "trinity_iceberg.metadata",
    "trinity.sql.statements", "trinity.engine.reading.arrow_read", "trinity.engine.changing.writer_delete",
    "trinity.engine.compacting.compact", "trinity.engine.feed.spark.change_feed", "trinity.applying.spark.history",
    "trinity.journal.backends.warehouse.backend", "trinity.engine.reading.spark.merged_read",
]  # fmt: skip
"""Modules that the server has imported, which takes longer than a call; it has called none of them."""
_AT_ONCE: Final = 4


FORMS: Final = {
    "follow, transformed": "trinity.cdc.follow(table, other, transform=lambda rows: rows)",
    "rows where": "table.to_df(where='k = 1')",
    "rows of a version": "table.to_df(version=1)",
    "rows in the process where": "assert table.to_arrow(where='k = 1').num_rows == 1",
    "a predicate of Spark's": "table.to_arrow(where='substr(v, 1, 1) = \"x\"')",
    "changes without preimages": "table.changes(1, preimages=False)",
    "delete by a condition": "table.delete('k = 1')",
    "delete by keys": "table.delete(rows.select(['k']))",
    "delete all": "table.delete(None)",
    "update where": "table.update('k = 1', {'v': \"'y'\"})",
    "update all": "table.update(set={'v': 'upper(v)'})",
    "merge": "table.merge(rows, 't.k = s.k').when_matched_update_all().when_not_matched_insert_all().execute()",
    "merge that deletes": "table.merge(rows, 't.k = s.k').when_matched_delete('s.k > 0').execute()",
    "compact in full": "table.compact(full=True)",
    "a default": "session.create_table('c', [trinity.Column('a', 'int', default='1 + 1')])",
    "a check": "session.create_table('c', rows.schema, checks={'c': 'k > 0'})",
    "a generated default": "session.create_table('c', [trinity.Column('a', 'timestamp', default='now()')])",
    "evolve": "table.upsert(rows.append_column('w', rows['k']), evolve=True)",
    "a wider type": "table.upsert(rows.set_column(0, 'k', rows['k'].cast('int64')), evolve=True)",
    "versions of rows": "trinity.apply_changes(rows, 'h', ['k'], 'v', stored_as_scd_type=2, session=session)",
    "deletes among events": "trinity.apply_changes(rows, 'h', ['k'], 'v', apply_as_deletes='k = 9', session=session)",
    "SELECT": "session.sql('SELECT * FROM t').collect()",
    "INSERT": "session.sql(\"INSERT INTO t VALUES (2, 'y')\")",
    "MERGE": "session.sql('MERGE INTO t USING other s ON t.k = s.k WHEN MATCHED THEN DELETE')",
    "UPDATE": "session.sql(\"UPDATE t SET v = 'z' WHERE k = ?\", params=[1])",
    "DELETE": "session.sql('DELETE FROM t WHERE k IN (1, 2)')",
    "CREATE": "session.sql('CREATE TABLE n (a INT DEFAULT 1, b CHAR(3), CHECK (a > 0))')",
    "ALTER": "session.sql('ALTER TABLE t ADD COLUMN w INT')",
    "a cursor": "trinity.dbapi.connect(warehouse='w2').cursor().execute('SELECT 1').fetchall()",
}
"""Further forms of calls, by name; they use a session, a table, another keyed table, and Arrow data."""


class Outcome(NamedTuple):
    """The outcome of a call.

    Attributes:
        call: the call's name.
        code: the code of the TrinityError that it raised; None for a result; for any other error its text.
        message: the error's message.
    """

    call: str
    code: str | None
    message: str = ""

    @property
    def is_refusal(self) -> bool:
        """Whether the call raised an error of Trinity that names what is wrong with the call."""
        return self.code in CODES and self.code != "GENERIC_INTERNAL_ERROR"

    @property
    def wants_spark(self) -> bool:
        """Whether the call failed because Spark could not be started."""
        return self.code == "CONFIGURATION_INVALID" and "needs Java" in self.message


def outcomes(names: Sequence[str], fmt: str, folder: Path, java: str | None = None) -> list[Outcome]:
    """Make each call in a process of its own.

    Args:
        names: the names of the calls in ``tests.hostile.calls``.
        fmt: the format of the table.
        folder: the folder for the warehouse of each call.
        java: a ``JAVA_HOME``, which may not exist; None for the machine's.
    """
    context = mp.get_context("forkserver")
    context.set_forkserver_preload(_LOADED)
    with ThreadPoolExecutor(_AT_ONCE if java is not None else 1) as threads:  # Spark needs all of the machine
        return list(threads.map(lambda name: _forked(context, name, fmt, folder / name, java), names))


def _forked(context: ForkServerContext, name: str, fmt: str, folder: Path, java: str | None) -> Outcome:
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(theirs, name, fmt, folder, java))
    process.start()
    theirs.close()
    try:
        return Outcome(name, *ours.recv())
    except EOFError:
        return Outcome(name, "the process has ended")
    finally:
        process.join()


def _run(pipe: Connection, name: str, fmt: str, folder: Path, java: str | None) -> None:
    folder.mkdir(parents=True)
    os.chdir(folder)
    if java is not None:
        os.environ["JAVA_HOME"] = java
    try:
        pipe.send(_called(name, fmt, folder / "w"))
    except BaseException as error:
        pipe.send((f"{type(error).__name__}: {error}", ""))


def _called(name: str, fmt: str, folder: Path) -> tuple[str | None, str]:
    import trinity
    from tests.hostile.calls import ROW, Subjects
    from trinity import Column

    subjects = Subjects(folder, ROW, fmt)
    columns = [Column("k", "int"), Column("v", "string"), Column("ts", "bigint"), Column("gone", "boolean")]
    options = {"watermark-key": "ts", "tombstone-key": "gone"}
    other = subjects.session.create_table("other", columns, primary_key=["k"], properties=options)
    try:
        if name in FORMS:
            exec(
                FORMS[name],
                {"session": subjects.session, "table": subjects.table, "other": other, "rows": ROW, "trinity": trinity},
            )
        else:
            _call(name, fmt, subjects, other)
    except TrinityError as error:
        return error.code, error.message
    return None, ""


def _call(name: str, fmt: str, subjects: Subjects, other: Table) -> None:
    """Make a call found by introspection, with the arguments that it requires."""
    from tests.hostile.calls import PROPER, ROW, calls

    call = next(call for call in calls() if call.name == name)
    given = {"messages": ROW, "changes": ROW, "frame": ROW, "session": subjects.session, "target": other, "keys": ["k"]}
    given |= {"key": ["k"], "sequence_by": "v", "start": 0, "checkpoint": "c", "rows": other, "catalog": fmt}
    given |= {"definition": subjects.table.definition, "before": subjects.table.definition, "tables": {}}
    wanted = [p for p in call.parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    values = {p.name: given.get(p.name, PROPER.get(p.name, (None,))[0]) for p in wanted}
    values |= {p.name: subjects.table for p in wanted if (p.name, p.annotation) == ("source", "Table")}
    places = [values.pop(p.name) for p in wanted if p.kind is p.VAR_POSITIONAL]
    owner = [] if call.owner is None else [subjects.of(call.owner)]
    call.target(*owner, *places, **values)

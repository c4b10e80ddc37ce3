"""A history as a program that needs only Trinity's public API and pyarrow, with the rows that the rules require.

It is for a bug report: its reader needs neither this suite nor its model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from trinity_conformance.model.engine_model import model_of
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.model.sketches import SKETCH_FORMS
from trinity_conformance.model.values import Json, Value, decode
from trinity_conformance.playing.names import Names
from trinity_conformance.playing.traces import (
    Alter,
    Compact,
    Delete,
    History,
    Query,
    ReadPast,
    Reopen,
    Resolve,
    RowChangeStep,
    Step,
    Upsert,
    Vacuum,
)
from trinity_conformance.playing.words import in_words

_HEAD: Final = '''"""{title}

It plays history {id} of trinity-conformance by Trinity's public API, and says where the rows are not those that
docs/semantics.md asks for.
"""

import datetime
import tempfile
from collections import Counter
from decimal import Decimal

import pyarrow as pa

import trinity
from trinity.spi import arrow_type
{imports}
nan, inf = float("nan"), float("inf")


def connect(warehouse):
    settings = {{"connector": {connector}, "warehouse": warehouse{options}}}
    return trinity.connect(catalogs={{"c": settings}}, catalog="c", engine={engine!r})


def rows(types, *values):
    columns = [pa.array([row[i] for row in values], arrow_type(kind)) for i, kind in enumerate(types.values())]
    return pa.Table.from_arrays(columns, schema=pa.schema([(n, arrow_type(kind)) for n, kind in types.items()]))

{frame}
def form(value):
    """Return a value as it is compared: all NaNs are equal, -0.0 is 0.0, CHAR is compared without its padding."""
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    if isinstance(value, dict):
        return tuple(map(form, value.values()))
    if isinstance(value, (list, tuple)):
        return tuple(map(form, value))
    return value{padding}


def expect(when, found, *wanted):
    read, asked = (Counter(map(form, table)) for table in (zip(*found.to_pydict().values()), wanted))
    if read != asked:
        missing, unexpected = list((asked - read).elements()), list((read - asked).elements())
        raise AssertionError(f"{{when}}\\n  missing:    {{missing}}\\n  unexpected: {{unexpected}}")


def refused(session, statement, dialect, codes):
    try:
        session.sql(statement, dialect=dialect)
    except trinity.TrinityError as error:
        if error.code not in codes:
            raise
    else:
        raise AssertionError(f"{{statement}} is to be refused by {{' or '.join(codes)}}")


def play(warehouse):
    session, versions = connect(warehouse), []
'''
_FRAME: Final = '''
def frame(session, *chunks):
    """Return a DataFrame with a partition for each table, in order."""
    session.spark.conf.set("spark.sql.unionOutputPartitioning", "false")  # Spark 4.1 makes one partition of all
    whole, *others = [session.spark.createDataFrame(chunk).coalesce(1) for chunk in chunks]
    for other in others:
        whole = whole.union(other)
    return whole

'''
TAIL: Final = """

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        play(folder)
    print("no difference")
"""
"""The end of a program, which calls its ``play``."""
_TEST: Final = """

def test_history_{id}(tmp_path):
    play(str(tmp_path))
"""


def script(history: History, connector: str, title: str, options: Mapping[str, str] | None = None) -> str:
    """Return a program that ends with an AssertionError where the rows differ.

    Args:
        history: the history.
        connector: the adapter's name, or ``module:Class``.
        title: one line about the difference.
        options: further settings of the catalog.
    """
    return _program(history, connector, title, options or {}) + TAIL


def python_test(history: History, connector: str, title: str, options: Mapping[str, str] | None = None) -> str:
    """Return the program of :func:`script` as a pytest test."""
    return _program(history, connector, title, options or {}) + _TEST.format(id=history.id)


def titled(text: str) -> str:
    """Return a text without the characters that a docstring cannot contain."""
    return text.replace("\\", "/").replace('"', "'")


def catalog_of(connector: str, options: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """Return the import that names an adapter, and its catalog's settings as source text."""
    module, _, name = connector.partition(":")
    further = "".join(f", {key!r}: {value!r}" for key, value in options.items())
    return f"from {module} import {name}" if name else "", {"connector": name or repr(module), "options": further}


def _program(history: History, connector: str, title: str, options: Mapping[str, str]) -> str:
    origin, settings = catalog_of(connector, options)
    by_frame = any(isinstance(s, Upsert) and s.path == "spark" for s in history.steps)
    executors = {step.executor for step in history.steps}
    head = _HEAD.format(
        title=titled(title),
        id=history.id,
        imports=f"{origin}\n" if origin else "",
        engine="local" if executors == {"local"} else "auto",
        frame=_FRAME if by_frame else "",
        padding='.rstrip(" ") if isinstance(value, str) else value' if _pads(history.shape) else "",
        **settings,
    )
    return head + "".join(f"    {line}\n" for line in _Body(history).lines())


def _pads(shape: Shape) -> bool:
    return any(column.type.startswith("char") for column in shape.columns)


class _Body:
    """The lines of one history, step by step, with a model that gives the rows of each read."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.shape = history.shape
        self.model = model_of(history.shape)
        self.names = Names(history.shape)
        self.versions: list[int] = []
        """The number of the model's commits for each version that the program keeps."""
        self.turns = len({step.executor for step in history.steps}) > 1

    def lines(self) -> Iterator[str]:
        yield f"session.sql({self.shape.ddl('t')!r})"
        for number, step in enumerate(self.history.steps):
            words = in_words(step, self.shape).replace("\n", " ")
            yield f"# {number}: {words}"
            if self.turns:
                yield f"session.engine = {('local' if step.executor == 'local' else 'auto')!r}"
            yield from _LINES.get(type(step), _no_lines)(self, step)
            if not isinstance(step, (Query, ReadPast)):
                yield from self.expect(f"after step {number}", self.model.merged(), "", self.columns())
        if not self.history.steps:
            yield from self.expect("at the beginning", {}, "", self.columns())

    def columns(self) -> tuple[str, ...]:
        """Return the columns whose values a program can compare: no sketches, and none out of range."""
        bad = {name for names in self.model.overflows().values() for name in names}
        return tuple(
            n for n in self.shape.names if n not in bad and (self.shape.function_of(n) or "") not in SKETCH_FORMS
        )

    def expect(
        self, when: str, wanted: Mapping[Any, Mapping[str, Value]], how: str, columns: Sequence[str], at: Any = None
    ) -> Iterator[str]:
        read = f"session.table('t').to_arrow({self.names.names_at(columns, at)!r}{how})"
        yield f"expect({when!r}, {read},"
        yield from (f"       {tuple(row[n] for n in columns)!r}," for row in wanted.values())
        yield ")"

    def upsert(self, step: Upsert) -> Iterator[str]:
        columns = [c for c in self.shape.columns if step.names is None or c.name in step.names]
        chunks = [self.rows(columns, split) for split in step.splits]
        if step.path == "spark":
            data = f"frame(session, {', '.join(chunks)})"
        else:
            data = chunks[0] if len(chunks) == 1 else f"pa.concat_tables([{', '.join(chunks)}])"
        verb = "upsert" if self.shape.key else "append"
        done = self.model.upsert(step.rows, step.txn, step.names)
        yield f"done = session.table('t').{verb}({data}, txn={step.txn!r})"
        yield f"assert done.skipped is {not done}, done"
        yield from self.keep_version(done)

    def rows(self, columns: Sequence[Column], values: Sequence[tuple[Json, ...]]) -> str:
        types = {self.names.now[c.name]: c.type for c in columns}
        decoded = [tuple(decode(c.type, value) for c, value in zip(columns, row, strict=True)) for row in values]
        return f"rows({', '.join([repr(types), *map(repr, decoded)])})"

    def keep_version(self, done: object) -> Iterator[str]:
        if done:
            self.versions.append(len(self.model.commits))
            yield "versions.append(done.version)"

    def delete(self, step: Delete) -> Iterator[str]:
        if step.condition is not None:
            yield f"done = session.table('t').delete({self.names.sql(step.condition)!r})"
            yield from self.keep_version(self.model.delete_where(step.condition))
            return
        columns = [c for c in self.shape.columns if c.name in self.shape.key]
        yield f"done = session.table('t').delete({self.rows(columns, step.keys or ())})"
        yield from self.keep_version(self.model.delete_keys([self.model.key_form(k) for k in step.keys or ()]))

    def change(self, step: RowChangeStep) -> Iterator[str]:
        effect = self.model.effect(step.statement)
        text = self.names.statement(step.statement).sql("t", self.names.shape)
        dialect = step.statement.dialect
        if effect.refused:
            yield f"refused(session, {text!r}, {dialect!r}, {sorted(effect.codes)!r})"
            return
        counts = effect.counts
        wanted = (counts.affected, counts.updated, counts.deleted, counts.inserted)
        yield f"found = session.sql({text!r}, dialect={dialect!r}).to_arrow()"
        names = [f"num_{kind}_rows" for kind in ("affected", "updated", "deleted", "inserted")]
        yield f"expect('counts', found.select({names!r}), {wanted!r})"
        self.model.apply(effect)

    def alter(self, step: Alter) -> Iterator[str]:
        yield from (f"session.sql({f'ALTER TABLE t {text}'!r})" for text in self.names.alter(step.kind, step.columns))
        before = len(self.model.commits)
        self.names.happened(before)
        self.model.alter(step.kind, step.columns)
        if len(self.model.commits) > before:  # the stored rows have got a DEFAULT
            self.versions.append(len(self.model.commits))
            yield "versions.append(session.table('t').version)"

    def compact(self, step: Compact) -> Iterator[str]:
        yield f"session.table('t').compact(full={step.full})"
        self.model.compact(step.full)

    def resolve(self, step: Resolve) -> Iterator[str]:
        yield "session.table('t').compact('resolve')"
        self.model.resolve()

    def vacuum(self, step: Vacuum) -> Iterator[str]:
        yield "session.table('t').vacuum(retain='0 seconds')"

    def reopen(self, step: Reopen) -> Iterator[str]:
        yield "session.close()"
        yield "session = connect(warehouse)"

    def query(self, step: Query) -> Iterator[str]:
        where = self.names.sql(step.condition)
        yield from self.expect(f"WHERE {where}", self.model.query(step.condition), f", {where!r}", step.columns)

    def read_past(self, step: ReadPast) -> Iterator[str]:
        if not self.versions:
            return
        place = max(0, len(self.versions) - 1 - step.back)
        commits, how = self.versions[place], f", version=versions[{place}]"
        if step.by == "timestamp":
            yield "listed = session.table('t').history().to_arrow().to_pylist()"
            yield f"[time] = [row['timestamp'] for row in listed if row['version'] == versions[{place}]]"
            how = ", timestamp=time"
        at = commits if commits < len(self.model.commits) else None
        yield from self.expect(f"version {place}", self.model.merged(commits), how, self.shape.names, at)


def _no_lines(body: _Body, step: Step) -> Iterator[str]:
    """Yield nothing: a read follows each step anyway."""
    return iter(())


_LINES: Final[Mapping[type[Step], Callable[[_Body, Any], Iterator[str]]]] = {
    Upsert: _Body.upsert,
    Delete: _Body.delete,
    RowChangeStep: _Body.change,
    Alter: _Body.alter,
    Compact: _Body.compact,
    Resolve: _Body.resolve,
    Vacuum: _Body.vacuum,
    Reopen: _Body.reopen,
    Query: _Body.query,
    ReadPast: _Body.read_past,
}

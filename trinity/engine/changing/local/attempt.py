"""The execution of row changes as Arrow data in this process: no Spark, no JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain

import pyarrow as pa

from trinity.engine.changing.attempt import Attempt
from trinity.engine.changing.change_tasks import ChangeTask, SinkTask, Written, change_schema, collect_results, nullable
from trinity.engine.changing.local.changes import LocalChanges
from trinity.engine.changing.local.compiled import CompiledStatement, target_field
from trinity.engine.changing.local.joined import Joined
from trinity.engine.changing.local.live_keys import check_keys
from trinity.engine.changing.local.source import LocalSource, local_source
from trinity.engine.changing.local.target import keyed_rows, located_rows, target_schema
from trinity.engine.changing.plan import StatementPlan
from trinity.engine.executes import NotLocal
from trinity.engine.program import When
from trinity.engine.reading.local.selection import in_threads
from trinity.engine.reading.predicate import Predicate
from trinity.spi import Column as TableColumn
from trinity.spi import DataFile, Operation
from trinity.target import Target


@dataclass(frozen=True)
class LocalAttempt(Attempt):
    """An attempt at a statement whose expressions are compiled for this process."""

    source: LocalSource
    compiled: CompiledStatement

    @classmethod
    def of(cls, table: Target, plan: StatementPlan) -> LocalAttempt | NotLocal:
        """Collect the facts about the source of a statement, and compile its expressions.

        Returns:
            the attempt, or why only Spark can execute the statement.

        Raises:
            TrinityError: the errors of the analysis.
        """

        def timezone() -> str:
            return table.session.timezone

        source = LocalSource() if plan.program.source is None else local_source(plan, timezone)
        if isinstance(source, NotLocal):
            return source
        plan = plan.of_source(source, source.equalities)
        compiled = CompiledStatement.of(plan, source.columns, timezone)
        return compiled if isinstance(compiled, NotLocal) else cls(table, plan, source, compiled)

    @cached_property
    def changes(self) -> LocalChanges:
        """The changes of the target's rows."""
        return LocalChanges(self.plan, self.compiled, self.source.fields, self._kept)

    @cached_property
    def _kept(self) -> frozenset[str]:
        """The columns whose stored values sinks keep in rows that are updated in place."""
        plan, sinks = self.plan, self.table.connector.sinks
        inserts = any(case.operation is Operation.INSERT for case in plan.program.cases)
        if inserts or self.compiled.checks is not None or not sinks.updates_in_place(plan.merge):
            return frozenset()  # a CHECK needs all columns of a row
        return frozenset(c.name for c in plan.definition.visible) - plan.merge.updated_columns

    def _write_rows(self) -> Written | NotLocal:
        parts = self._parts()
        if isinstance(parts, NotLocal):
            return parts
        if self.plan.may_collide:
            collected = [list(part()) for part in parts]
            why = check_keys(self.changes, [page for pages in collected for page in pages])
            if why is not None:
                return why
            parts = [partial(iter, pages) for pages in collected]
        data, row_id = self.conformers(self.changes.data_schema, self.changes.row_id_type)
        data = data if not self._kept else replace(data, kept=self._kept)
        storage = self.plan.merge.insert.target.storage
        kind = pa.struct(nullable(row_id.storage)) if row_id else self.changes.row_id_type
        field = pa.field(self.plan.row_id, kind)
        task = ChangeTask(self.processor, data, row_id, change_schema(nullable(storage), field))
        merge = replace(self.plan.merge, in_place=bool(self._kept))
        sink = SinkTask(self.table.connector.sinks, merge, len(storage), field, self.guard)
        return _write_changes(parts[:-1], parts[-1], task, sink)

    def _parts(self) -> list[_Part] | NotLocal:
        """Return independent parts of the changes. The last one must run after all others."""
        if self.plan.definition.keyed:  # all changes of a key go to one sink
            keys = self._keys()
            rows = keyed_rows(self.plan.splits, self.plan.files, self.changes.fields, keys, self._predicate(keys))
            return rows if isinstance(rows, NotLocal) else [lambda: chain(self._changes(rows), self._unmatched())]
        count = min(len(self.plan.files), pa.cpu_count())
        return [*(partial(self._changes_in, self.plan.files[n::count]) for n in range(count)), self._unmatched]

    def _changes_in(self, files: Sequence[DataFile]) -> Iterator[pa.RecordBatch]:
        """Yield the changes of files of a plain table; the files are read in parallel."""
        parts = located_rows(self.plan.splits, files, self.changes.fields, self._predicate(None))
        return in_threads(partial(self._changes_of, part) for part in parts)

    def _changes_of(self, part: Callable[[], Iterator[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        return list(self._changes(part()))

    def _keys(self) -> pa.Table | None:
        """Return the keys that ON allows; None unless it compares every key column by equality."""
        key, equalities = self.plan.definition.primary_key, self.source.equalities
        if self.source.values is None or not all(k in equalities and equalities[k].same for k in key):
            return None
        return self.source.values.select(key)

    def _predicate(self, keys: pa.Table | None) -> Predicate | None:
        """Return a predicate that every affected row satisfies; None when this process cannot evaluate one."""
        if self.plan.needs_all_rows:
            return None
        definition = self.plan.splits.definition
        text = self.plan.facts.where([c.name for c in definition.visible])
        listed = None if keys is None else Predicate.of_keys(definition, keys)
        found = listed or Predicate.of(definition, text, lambda: self.table.session.timezone)
        return None if found is None or isinstance(found, NotLocal) or isinstance(found.compiled, NotLocal) else found

    def _changes(self, pages: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for page in pages:
            for joined in self._joined(page):
                yield from self.changes.of(joined)

    def _joined(self, page: pa.RecordBatch) -> Iterator[Joined]:
        if self.source.join is None:
            yield When.MATCHED, page
        else:
            yield from self.source.join.joined(page)

    def _unmatched(self) -> Iterator[pa.RecordBatch]:
        if self.source.join is not None:
            for joined in self.source.join.unmatched(target_schema(self.plan.splits, self.changes.fields)):
                yield from self.changes.of(joined)

    def selected(self, condition: str, columns: Sequence[TableColumn]) -> list[DataFile]:
        files = self.plan.files
        holds = self.compiled.cases[0].condition
        assert holds is not None
        values = [pa.array([f.partition[c.name] for f in files], c.to_arrow().type) for c in columns]
        rows = pa.RecordBatch.from_arrays(values, names=[target_field(self.plan.definition, c.name) for c in columns])
        return [file for file, wanted in zip(files, holds.evaluate(rows).to_pylist(), strict=True) if wanted]

    def described(self) -> str:
        return f"{self.plan.described()}\n\nexecuted in this process"


_Part = Callable[[], Iterable[pa.RecordBatch]]
"""A function that yields rows of the plan: layout columns, row id, merge row, refusal. One part has all of a row id."""


def _write_changes(parts: Sequence[_Part], last: _Part, task: ChangeTask, sink: SinkTask) -> Written:
    """Write the changes, each part by a sink of its own, and commit nothing. The last part runs after the others.

    Raises:
        TrinityError: the errors of conforming, guard and sink, and of the statement's expressions.
    """

    def run(order: int, part: _Part) -> list[bytes]:
        return sink(order, task(part()))

    if len(parts) > 1:
        with ThreadPoolExecutor(min(len(parts), pa.cpu_count())) as pool:
            found = list(pool.map(run, range(len(parts)), parts))
    else:
        found = [run(order, part) for order, part in enumerate(parts)]
    return collect_results([fragment for fragments in [*found, run(len(parts), last)] for fragment in fragments])

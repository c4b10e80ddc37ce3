"""Histories: a table's shape and its steps, as canonical JSON with an id from its content; traces, in their files.

A trace does not depend on Hypothesis or on how it was found: attach it to a bug report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias

from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.statements import Statement
from trinity_conformance.model.values import Json
from trinity_conformance.playing.cases import Case
from trinity_conformance.playing.content import Content, read_content
from trinity_conformance.playing.races import Race

TRACES: Final = Path(".trinity-conformance")
"""The folder in which failing histories are kept, unless another one is named."""

Executor: TypeAlias = Literal["spark", "local"]
"""The executor of a step: Spark, or this process where it can."""


FAULTS: Final = {
    "crash before": "the process ends before it",
    "crash after": "the process ends after it",
    "torn": "the process ends amid it",
    "twice": "it is done twice",
    "error": "it fails, and has not taken effect",
    "error after": "it fails, and has taken effect",
    "unknown": "nobody can say whether it took effect; it has not",
}
"""Kind of fault -> its effect on an operation of storage, a call of the adapter, or a task."""


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong while a step runs.

    Attributes:
        kind: one of :data:`FAULTS`.
        at: the number of the operation that fails, from 0, counting the step's operations to which this kind applies.
    """

    kind: str
    at: int = 0


@dataclass(frozen=True)
class Step:
    """A step of a history.

    Attributes:
        executor: its executor.
        fault: the fault that is injected; None for none.
    """

    op: ClassVar[str]
    executor: Executor = field(default="spark", kw_only=True)
    fault: Fault | None = field(default=None, kw_only=True)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready form, with its kind as ``op``."""
        by = {} if self.executor == "spark" else {"executor": self.executor}
        meets = {} if self.fault is None else {"fault": asdict(self.fault)}
        return {"op": self.op, **by, **meets, **self.content()}

    def content(self) -> dict[str, Any]:
        """Return the fields of the step's kind, in a JSON-ready form."""
        return {k: v for k, v in asdict(self).items() if k not in ("executor", "fault")}


@dataclass(frozen=True)
class Upsert(Step):
    """A step that appends one commit.

    Attributes:
        splits: the rows of each input partition, in order; a row has its values in table order. Empty splits are legal.
        path: ``arrow`` (in the process, one chunk per split) or ``spark`` (one partition per split).
        txn: (application, number) or None (L4).
        names: the columns that the rows have, in table order; None for all.
    """

    op: ClassVar[str] = "upsert"
    splits: tuple[tuple[tuple[Json, ...], ...], ...]
    path: str = "arrow"
    txn: tuple[str, int] | None = None
    names: tuple[str, ...] | None = None

    @property
    def rows(self) -> tuple[tuple[Json, ...], ...]:
        """All rows in arrival order."""
        return tuple(row for split in self.splits for row in split)


@dataclass(frozen=True)
class Delete(Step):
    """A writer's delete (U5), by keys or by condition."""

    op: ClassVar[str] = "delete"
    keys: tuple[tuple[Json, ...], ...] | None = None
    condition: Condition | None = None


@dataclass(frozen=True)
class Compact(Step):
    """``table.compact(full=...)``."""

    op: ClassVar[str] = "compact"
    full: bool = True


@dataclass(frozen=True)
class Resolve(Step):
    """``table.compact("resolve")``; no effect if the adapter does not support it."""

    op: ClassVar[str] = "resolve"


@dataclass(frozen=True)
class Vacuum(Step):
    """``table.vacuum(retain="0 seconds")``."""

    op: ClassVar[str] = "vacuum"


@dataclass(frozen=True)
class Reopen(Step):
    """A step that closes the session and opens a new one; no effect if tables do not survive that."""

    op: ClassVar[str] = "reopen"


@dataclass(frozen=True)
class Read(Step):
    """A step that compares the merged read with the model (L1)."""

    op: ClassVar[str] = "read"


@dataclass(frozen=True)
class Query(Step):
    """A step that compares a merged read under a predicate and a projection (L9)."""

    op: ClassVar[str] = "query"
    condition: Condition
    columns: tuple[str, ...]


@dataclass(frozen=True)
class ReadPast(Step):
    """A step that compares the read of an earlier version (L10).

    Attributes:
        back: how many versions before the newest; the first version if there are not so many.
        by: ``version`` or ``timestamp``.
    """

    op: ClassVar[str] = "read-past"
    back: int = 1
    by: str = "version"


@dataclass(frozen=True)
class Log(Step):
    """A step that compares ``table.log()`` with all arrivals; only before the first compaction."""

    op: ClassVar[str] = "log"


@dataclass(frozen=True)
class RowChangeStep(Step):
    """A MERGE, UPDATE or DELETE as SQL text; rows, counts and error code are compared, in a new session (M1-M9)."""

    op: ClassVar[str] = "change"
    statement: Statement

    def content(self) -> dict[str, Any]:
        return {"statement": self.statement.to_json()}


@dataclass(frozen=True)
class Alter(Step):
    """ALTER TABLE. All but ``blank`` and ``default`` change no value that the history reads (L3).

    Attributes:
        kind: ``swap``: two columns exchange names, and the player keeps using their old ones; ``move``: a column comes
            first; ``widen``: a column gets a wider type; ``extra``: a column without values is added, or dropped if it
            exists; ``blank``: a column is dropped, and another one added under its name; ``default``: a column with a
            DEFAULT, which existing rows get, comes in the place of another one.
        columns: the columns that are changed.
    """

    op: ClassVar[str] = "alter"
    kind: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Other(Step):
    """A step of another engine, on the table as its format stores it.

    Attributes:
        step: an :class:`Upsert` appends rows without regard to keys, a :class:`RowChangeStep` changes the stored rows,
            a :class:`Compact` rewrites files, a :class:`Vacuum` removes what old versions need, an :class:`Alter`
            changes columns.
        how: a number that chooses among the engine's ways to do it.
    """

    op: ClassVar[str] = "other"
    step: Step
    how: int = 0

    def content(self) -> dict[str, Any]:
        return {"how": self.how, "step": self.step.to_json()}


_STEPS: Final[dict[str, type[Step]]] = {
    c.op: c
    for c in (Upsert, Delete, Compact, Resolve, Vacuum, Reopen, Read, Query, ReadPast, Log, RowChangeStep, Alter, Other)
}


@dataclass(frozen=True)
class History(Content):
    """The history of a table.

    Attributes:
        shape: the table.
        steps: the steps, in order. The runner reads once more after the last.
    """

    shape: Shape
    steps: tuple[Step, ...]

    @property
    def rows(self) -> int:
        """The number of row versions in upserts."""
        return sum(len(s.rows) for s in self.steps if isinstance(s, Upsert))

    @property
    def has_faults(self) -> bool:
        """True when something goes wrong at a step: this process has to play it, without Spark."""
        return any(step.fault is not None for step in self.steps)

    def _fields(self) -> Mapping[str, Any]:
        """Return the fields of the JSON, without the format."""
        return {"shape": self.shape.to_json(), "steps": [step.to_json() for step in self.steps]}

    @classmethod
    def from_json(cls, text: str) -> History:
        """Return the history that :meth:`to_json` wrote.

        Raises:
            ValueError: not a trace, or one of another format.
        """
        return read_content(text, lambda data: cls(Shape.from_json(data["shape"]), tuple(map(_step, data["steps"]))))


def _step(data: Mapping[str, Any]) -> Step:
    fields = {k: _tuples(v) for k, v in data.items() if k != "op"}
    if data["op"] == Other.op:
        fields["step"] = _step(data["step"])
    elif data["op"] == RowChangeStep.op:
        fields["statement"] = Statement.from_json(data["statement"])
    if fields.get("fault") is not None:
        fields["fault"] = Fault(**data["fault"])
    if fields.get("condition") is not None:
        fields["condition"] = Condition(**data["condition"])
    return _STEPS[data["op"]](**fields)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


Trace: TypeAlias = History | Case | Race
"""The form in which a finding is saved and replayed."""


_KINDS: Final[Mapping[str, type[Trace]]] = {'{"case":': Case, '"race":': Race}
"""Beginning of a trace file without a history -> the class of its content."""
_HEAD: Final = 30


def save(trace: Trace, folder: Path) -> Path:
    """Write ``<folder>/<id>.json`` and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{trace.id}.json"
    path.write_text(trace.to_json() + "\n", encoding="utf-8")
    return path


def load(file_or_id: str, folder: Path) -> Trace:
    """Return the trace of a file, or of an id saved in a folder.

    Raises:
        ValueError: no such file or id, or not a trace.
    """
    candidates = [Path(file_or_id), folder / f"{file_or_id}.json"]
    for path in candidates:
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            kind = next((kind for start, kind in _KINDS.items() if start in text[:_HEAD]), History)
            return kind.from_json(text)
    raise ValueError(f"no trace {file_or_id!r}: neither a file, nor {candidates[1]}")

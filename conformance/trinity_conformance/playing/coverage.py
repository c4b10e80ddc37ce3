"""Situations that the played histories contained. A check that lacks its situations is inconclusive, not passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from trinity.spi import Capability
from trinity_conformance.model.engine_fold import FUNCTIONS
from trinity_conformance.model.shapes import DEDUPLICATE
from trinity_conformance.model.tables import Key, Model, Row, Version
from trinity_conformance.model.values import order_form
from trinity_conformance.playing.traces import FAULTS, Executor

RETRACTING: Final = ("sum", "product", "last_value", "last_non_null_value", "collect", "merge_map", "nested_update")
"""Aggregate functions that support retracts."""

BY_TURNS: Final = frozenset({"local after spark", "spark after local"})
"""Situations that need both executors."""

SITUATIONS: Final[dict[str, str]] = {
    "local": "a step that changed the table, which this process executed",
    "local change": "a MERGE, UPDATE or DELETE of these",
    "local compact": "a compaction of these",
    "local after spark": "a step that this process executed after one that Spark did",
    "spark after local": "the reverse",
    "late-row": "a row with a smaller watermark than the winner of its key",
    "tie": "a row with the same watermark as the winner of its key",
    "null-watermark": "a row whose first watermark column is NULL",
    "nan-watermark": "a row whose first watermark column is NaN",
    "composite": "two versions that a later watermark column decides",
    "tombstone-wins": "a tombstone or retract that deletes a visible row",
    "tombstone-late": "a tombstone or retract that comes too late",
    "beaten-by-tombstone": "a row that a tombstone keeps deleted",
    "revival": "a row that brings a deleted key back",
    "late-after-compaction": "a late row whose winner has been compacted",
    "held-by-compacted-tombstone": "a row kept deleted by a tombstone that has been compacted",
    "tie-after-compaction": "a tie with a winner that has been compacted",
    "same-key-in-commit": "two versions of a key in one commit",
    "equal-key-other-bits": "equal keys with different bits: -0.0 and 0.0, padding of CHAR",
    "several-files": "a commit that added two or more files to a table without partitions",
    "arrow": "a commit of Arrow data in the process",
    "spark": "a commit of a Spark DataFrame",
    "alter swap": "two columns that change names with each other",
    "alter blank": "a column that is dropped, and another one of that name added",
    "alter default": "a column with a DEFAULT, which existing rows get, in the place of another one",
    "alter widen": "a column of a wider type",
    "alter move": "a column at another place",
    "alter extra": "a column that is added, or dropped again",
    "retry": "a transaction number that had been recorded",
    "retry-after-compaction": "the same, after a compaction",
    "delete-by-key": "a delete by keys that hit rows",
    "delete-by-condition": "a delete by condition that hit rows",
    "compaction": "a compaction",
    "resolve": "a compaction that deletes rows by position",
    "vacuum": "a vacuum",
    "reopen": "a reopened session",
    "query": "a read under a predicate and a projection",
    "past-version": "a read of an earlier version",
    "past-timestamp": "a read as of an earlier time",
    "past-before-compaction": "a read of a version before a compaction",
    "changes": "a change feed that was applied to the read of its first version",
    "changes-over-compaction": "one that goes over a compaction",
    "changes of input": "a feed of rows as they came",
    "changes of lookup": "a feed that was written after each commit",
    "changes of full-compaction": "a feed from one full compaction to the next",
    "log": "a comparison of log() with all arrivals",
    "history": "a comparison of history() with the commits",
    "other upsert": "a commit of another engine",
    "other compact": "files that another engine rewrote",
    "other vacuum": "old versions whose files another engine removed",
    "other alter": "columns that another engine changed",
    "other change": "stored rows that another engine changed",
    "fault": "an operation of the storage, a call of the adapter or a task that went wrong",
    **{f"fault {kind}": f"one of these: {meaning}" for kind, meaning in FAULTS.items()},
    "fault at the commit": "an operation by which a commit may take effect, which went wrong",
    "read by a fresh process": "a table that a process which had just begun read after the end of another one",
    "action within another process's": "an action of a process, from its beginning to its end amid one of another",
    "refusal": "a bad input",
    "refusal of a DataFrame": "one of Spark's",
    "merge-statement": "a MERGE",
    "update-statement": "an UPDATE",
    "delete-statement": "a DELETE",
    "several-cases": "a statement of which two or more cases select rows",
    "by-source": "a MERGE that selects rows that no source row matches",
    "unselected": "a statement with a row of the join that no case selects",
    "nothing-selected": "a statement that selects nothing",
    "several-matches": "a target row that several source rows match, whether or not they select it",
    "key-move": "an UPDATE of a key",
    "vacated-and-filled": "a key that one statement both vacates and fills",
    "late-under-vacated": "a late row that a statement puts under a key that it vacates",
    "late-by-merge": "a row of a MERGE that loses to the stored winner",
    "multiple-matches": "a target row that several source rows select",
    "key-taken": "a key that is inserted or moved to, though it is live or comes twice",
    "refused-late": "an UPDATE that would lose to the stored winner",
    "wrong-value": "a NULL or a number that a column does not take",
    "engine-refusal": "a table, row or statement that a merge engine does not take",
    "refused-update": "an UPDATE or DELETE that a merge engine does not take",
    "engine partial-update": "a partial-update table",
    "engine aggregation": "an aggregation table",
    "engine first-row": "a first-row table",
    "partial-update UPDATE": "an UPDATE of rows of a partial-update table",
    "partial-update DELETE": "a DELETE of rows of a partial-update table",
    "aggregation UPDATE": "an UPDATE of rows of an aggregation table",
    "aggregation DELETE": "a DELETE of rows of an aggregation table",
    "hard delete": "a key with a row that table.delete or SQL DELETE deleted",
    "delete mode ignore-delete": "a key with a retract that ignore-delete dropped",
    "delete mode remove-record-on-delete": "a key with a -D under remove-record-on-delete",
    "delete mode sequence-group": "a key with a retract that a sequence group took",
    "delete mode remove-record-on-sequence-group": "a key that a -D deleted by its sequence group",
    "delete mode aggregation": "a key with a retract in an aggregation table",
    "cut of a visible row": "a key of which a visible row was deleted",
    "row below a threshold": "a key with a row dropped because it came before the delete by a sequence group",
    "raised threshold": "a key with a later retract after the delete by a sequence group",
    "retract of nothing": "a key with a retract before any add",
    "ignored retract": "a key with a retract that ignore-retract kept from a function",
    "row out of a group": "a key with a row whose sequence in a group is all NULL",
    "sequence with a NULL part": "a key with a row whose composite sequence has a NULL part",
    "late row in a group": "a key with a row of a smaller sequence than its group had",
    "late retract in a group": "a key with a retract of a smaller sequence than its group had",
    "tie in a group": "a key with a row of the same sequence as its group had",
    "omitted column in a group": "a key with a row that takes part in a group and omits one of its columns",
    "row after the first": "a key of a first-row table with more rows",
    "fold-after-compaction": "a commit to a table of a merge engine after a compaction",
    "out-of-range": "a total that does not fit its column",
    **{f"function {name}": f"a key with two or more rows for {name}" for name in FUNCTIONS},
    **{f"retract {name}": f"a key with a retract for {name}" for name in RETRACTING},
}

_ENGINES: Final = frozenset((Capability.PARTIAL_UPDATE, Capability.AGGREGATION))
_NEEDS: Final[Mapping[str, frozenset[Capability]]] = {
    "resolve": frozenset((Capability.RESOLVE,)),
    "alter swap": frozenset((Capability.RENAME_COLUMN,)),
    "alter blank": frozenset((Capability.ADD_COLUMN, Capability.DROP_COLUMN)),
    "alter default": frozenset((Capability.ADD_COLUMN, Capability.DROP_COLUMN, Capability.ROW_CHANGES)),
    **dict.fromkeys(
        ("local change", "hard delete", "delete-by-key", "delete-by-condition"), frozenset((Capability.ROW_CHANGES,))
    ),
    "changes of lookup": frozenset((Capability.TIME_TRAVEL, Capability.ROW_CHANGES)),
    **dict.fromkeys(
        ("past-version", "past-timestamp", "history", "changes", "changes-over-compaction",
         "changes of input", "changes of full-compaction"),
        frozenset((Capability.TIME_TRAVEL,)),
    ),
    **dict.fromkeys(("fault unknown", "fault at the commit"), frozenset((Capability.COMMITS_IN_STORAGE,))),
    "engine partial-update": frozenset((Capability.PARTIAL_UPDATE,)),
    **dict.fromkeys(
        ("late row in a group", "tie in a group", "row out of a group", "sequence with a NULL part",
         "omitted column in a group", "late retract in a group", "delete mode sequence-group",
         "delete mode remove-record-on-sequence-group", "ignored retract"),
        frozenset((Capability.PARTIAL_UPDATE,)),
    ),
    **dict.fromkeys(("engine aggregation", "delete mode aggregation"), frozenset((Capability.AGGREGATION,))),
    **dict.fromkeys(("engine first-row", "row after the first"), frozenset((Capability.FIRST_ROW,))),
    **dict.fromkeys(
        ("delete mode ignore-delete", "delete mode remove-record-on-delete", "cut of a visible row",
         *(name for name in SITUATIONS if name.startswith(("function ", "retract ")))),
        _ENGINES | {c for c in Capability if c.value.startswith("type ")},
    ),
}  # fmt: skip
"""Situation -> capabilities with which it is sure to occur."""


def uncertain(capabilities: Collection[Capability]) -> frozenset[str]:
    """Return the situations that histories of an adapter with only these capabilities may lack."""
    return frozenset(name for name, needs in _NEEDS.items() if not needs <= set(capabilities))


@dataclass
class Coverage:
    """A counter of the situations in one or many histories.

    Attributes:
        counts: how often each of :data:`SITUATIONS` occurred.
    """

    counts: Counter[str] = field(default_factory=Counter)
    _compacted: dict[Key, Version] = field(default_factory=dict)
    _executors: list[Executor] = field(default_factory=list)

    def start(self) -> None:
        """Begin another history."""
        self._compacted = {}
        self._executors = []

    @property
    def took_turns(self) -> bool:
        """True when both executors have changed the table of the present history."""
        return len(set(self._executors)) > 1

    def executed(self, executor: Executor, op: str) -> None:
        """Count a step by who executed it, and whether the executor changed."""
        if executor == "local":
            self.saw("local", *([f"local {op}"] if op in ("change", "compact") else []))
        if self._executors and self._executors[-1] != executor:
            self.saw(f"{executor} after {self._executors[-1]}")
        self._executors.append(executor)

    def saw(self, *situations: str) -> None:
        """Count situations once each."""
        self.counts.update(situations)

    def compacted(self, model: Model) -> None:
        """Remember the winners at a compaction."""
        self.saw("compaction")
        if model.shape.engine == DEDUPLICATE:
            self._compacted = model.winners()

    def folded(self, model: Model) -> None:
        """Count the situations in the folds of a finished history."""
        if model.shape.engine != DEDUPLICATE:
            self.saw(f"engine {model.shape.engine}")
            self.counts.update(model.situations())

    def arriving(self, model: Model, rows: Iterable[Row], compacted: bool = False) -> None:
        """Count the situations of rows that are about to be appended to the model.

        Args:
            model: the table before them.
            rows: the rows.
            compacted: True when there was a compaction.
        """
        if model.shape.engine != DEDUPLICATE:
            self.saw(*(["fold-after-compaction"] if compacted else []))
            return
        winners, fresh = model.winners(), set[Key]()
        for row in rows:
            version, key = Version(row), model.key_of(row)
            if model.is_dropped(version):
                continue
            self._watermark(model, row)
            if key in fresh:
                self.saw("same-key-in-commit")
            fresh.add(key)
            if key in winners:
                self._compare_with(model, version, winners[key], winners[key] is self._compacted.get(key))
            if key not in winners or model.takes_over(version, winners[key]):
                winners[key] = version

    def _watermark(self, model: Model, row: Row) -> None:
        if not model.shape.watermark:
            return
        first = model.shape.watermark[0]
        if row[first] is None:
            self.saw("null-watermark")
        elif order_form(model.shape.type_of(first), row[first]) == (2,):
            self.saw("nan-watermark")

    def _compare_with(self, model: Model, new: Version, old: Version, compacted: bool) -> None:
        order = model.compare(new.row, old.row)
        gone, was_gone = model.is_deleted(new), model.is_deleted(old)
        if any(str(new.row[n]) != str(old.row[n]) for n in model.shape.key):
            self.saw("equal-key-other-bits")
        if order and model.compare_part(*self._first(model, new, old)) == 0:
            self.saw("composite")
        if order == 0:
            self.saw("tie", *(["tie-after-compaction"] if compacted else []))
        if order < 0:
            self.saw("late-row", *(["late-after-compaction"] if compacted else []))
            self.saw(*(["tombstone-late"] if gone else []))
            if was_gone and not gone:
                self.saw("beaten-by-tombstone", *(["held-by-compacted-tombstone"] if compacted else []))
        elif gone and not was_gone:
            self.saw("tombstone-wins")
        elif was_gone and not gone:
            self.saw("revival")

    @staticmethod
    def _first(model: Model, new: Version, old: Version) -> tuple[str, object, object]:
        name = model.shape.watermark[0]
        return model.shape.type_of(name), new.row[name], old.row[name]

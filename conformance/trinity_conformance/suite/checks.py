"""The named checks: the rules that each one tests, and the situations that it must see before it counts as passed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from trinity import __version__
from trinity.spi import EVERYTHING, Capability
from trinity_conformance.generate.histories import GENERAL
from trinity_conformance.model.engine_fold import FUNCTIONS
from trinity_conformance.playing.engine_refusals import ENGINE_REFUSALS


@dataclass(frozen=True)
class Check:
    """One check. Ids are never reused.

    Attributes:
        id: its name on the command line and in reports.
        rules: ids of the rules of the semantics.
        title: what holds when it passes.
        quotas: situations of :data:`~trinity_conformance.playing.coverage.SITUATIONS`, and how often each must occur.
        emphasis: weights of the steps of its own histories, when it is run alone.
        programs: True when it is about programs of statements, and not about histories.
        engines: True when it is about histories of merge engines other than deduplicate.
        faults: True when it is about histories in which something goes wrong.
        races: True when it is about writers in several processes.
        needs: capabilities that an adapter has to declare for it.
        needs_one_of: capabilities of which it has to declare one.
        since: the first version of the suite that has it; ``run --as-of`` skips newer checks.
    """

    id: str
    rules: tuple[str, ...]
    title: str
    quotas: Mapping[str, int]
    emphasis: Mapping[str, int] = field(default_factory=lambda: GENERAL)
    programs: bool = False
    engines: bool = False
    faults: bool = False
    races: bool = False
    needs: frozenset[Capability] = frozenset()
    needs_one_of: frozenset[Capability] = EVERYTHING
    since: str = "0.1.0"

    @property
    def is_drawn(self) -> bool:
        """Whether it plays histories drawn from a seed, and not only cases written by hand."""
        return bool(self.emphasis) or self.programs or self.faults or self.races

    def possible(self, capabilities: Collection[Capability]) -> bool:
        """Return whether an adapter with these capabilities can pass it."""
        return self.needs <= set(capabilities) and not self.needs_one_of.isdisjoint(capabilities)


_ROW_CHANGES: Final = frozenset((Capability.ROW_CHANGES,))
_ENGINES: Final = frozenset((Capability.PARTIAL_UPDATE, Capability.AGGREGATION, Capability.FIRST_ROW))
_TIME_TRAVEL: Final = frozenset((Capability.TIME_TRAVEL,))
_ALTERATIONS: Final = frozenset((
    Capability.RENAME_COLUMN, Capability.ADD_COLUMN, Capability.DROP_COLUMN, Capability.MOVE_COLUMN,
    Capability.WIDEN_COLUMN,
))  # fmt: skip

CHECKS: Final[tuple[Check, ...]] = (
    Check(
        "first-steps",
        ("L1",),
        "a keyed table can be made, written to and read; all other checks build on that",
        {},
        {},
    ),
    Check(
        "capabilities",
        ("L8",),
        "what the adapter declares works, and all else is refused and changes nothing",
        {},
        {},
    ),
    Check(
        "read-equality",
        ("L1", "K1", "K2", "K3", "K4", "U1", "U2", "U3", "U4", "U8", "D1"),
        "the merged read equals the model, row for row",
        {"late-row": 10, "tie": 10, "null-watermark": 5, "tombstone-wins": 5, "beaten-by-tombstone": 3, "revival": 3},
        {"upsert": 6, "delete": 1, "read": 2, "compact": 1},
    ),
    Check(
        "split",
        ("L2", "K4"),
        "rows read the same however a commit is split",
        {"several-files": 3, "same-key-in-commit": 10, "arrow": 2, "spark": 2},
        {"upsert": 6, "read": 3},
    ),
    Check(
        "arrival-order",
        ("K4", "L2"),
        "log() shows every row version, in arrival order",
        {"log": 1},
        {"upsert": 6, "log": 2, "delete": 1, "reopen": 1},
    ),
    Check(
        "maintenance-invisible",
        ("L3", "K6", "U4", "E3", "R1"),
        "compaction, vacuum and reopening change no read and no later fold",
        {"compaction": 3, "vacuum": 1, "reopen": 1, "late-after-compaction": 3, "tie-after-compaction": 2,
         "held-by-compacted-tombstone": 1},
        {"upsert": 4, "compact": 3, "resolve": 3, "vacuum": 2, "reopen": 1, "delete": 1, "read": 2},
    ),
    Check(
        "idempotence",
        ("L4",),
        "a transaction that has been recorded is a no-op",
        {"retry": 2},
        {"upsert": 6, "compact": 2, "vacuum": 2, "reopen": 1, "read": 1},
    ),
    Check(
        "delete",
        ("U5", "U6", "K4"),
        "a writer's delete hides its rows, and goes on beating older ones",
        {"delete-by-key": 1, "delete-by-condition": 1},
        {"upsert": 4, "delete": 5, "compact": 1, "resolve": 1, "read": 2},
        needs=_ROW_CHANGES,
    ),
    Check(
        "pushdown",
        ("L9",),
        "a predicate and a projection change no value",
        {"query": 2},
        {"upsert": 4, "query": 4, "compact": 1},
    ),
    Check(
        "time-travel",
        ("L10",),
        "earlier versions read as they did, by number and by time",
        {"past-version": 2, "past-timestamp": 1, "history": 2},
        {"upsert": 4, "read-past": 4, "compact": 1, "reopen": 1},
        needs=_TIME_TRAVEL,
    ),
    Check(
        "changes",
        ("C1", "C2", "C3", "C4", "C6"),
        "the change feed leads from the read of one version to that of another, or shows what its producer says",
        {"changes": 3, "changes-over-compaction": 1, "changes of lookup": 1, "changes of input": 1,
         "changes of full-compaction": 1},
        {"upsert": 6, "delete": 2, "compact": 2, "resolve": 1, "vacuum": 1, "read-past": 1},
        needs=_TIME_TRAVEL,
    ),
    Check(
        "schema-change",
        ("L3", "L10"),
        "columns that are renamed, moved, widened, added or dropped leave every other value as it was",
        {"alter swap": 1, "alter blank": 1, "alter default": 1},
        {"upsert": 4, "alter": 5, "compact": 1, "query": 1, "read-past": 2, "read": 2},
        needs_one_of=_ALTERATIONS,
    ),
    Check(
        "executors",
        ("L1",),
        "this process and Spark take turns within a history, and read and write the same rows",
        {"local": 20, "local change": 5, "local compact": 2, "local after spark": 10, "spark after local": 10},
        {"upsert": 4, "delete": 3, "compact": 2, "resolve": 1, "alter": 1, "query": 1, "read": 2},
        programs=True,
    ),
    Check(
        "bad-input",
        ("L8",),
        "bad input is refused by name, and the table reads as before",
        {"refusal": 33, "refusal of a DataFrame": 4},
        {},
        needs=frozenset((Capability.BOOLEAN, Capability.DECIMAL, Capability.VARCHAR)),
    ),
    Check(
        "merge-engines",
        ("L1", "L2", "P1", "G1", "G2", "G3", "G4", "G5", "G6", "G7", "A1", "A2", "A3", "E1", "E2", "E3", "R1"),
        "partial-update, aggregation and first-row tables read as the model, row for row",
        {"engine partial-update": 3, "engine aggregation": 2, "engine first-row": 1,
         **{f"function {name}": 1 for name in FUNCTIONS},
         "late row in a group": 5, "tie in a group": 5, "row out of a group": 5, "sequence with a NULL part": 2,
         "omitted column in a group": 2, "row after the first": 2, "fold-after-compaction": 2, "resolve": 1},
        {"upsert": 6, "delete": 1, "read": 2, "compact": 1, "resolve": 1},
        engines=True,
        needs_one_of=_ENGINES,
    ),
    Check(
        "retracts",
        ("D1", "D2", "D3", "D4", "D5", "D6", "A3"),
        "retracts are taken back, dropped, or delete the row, as the options say",
        {"delete mode ignore-delete": 1, "delete mode remove-record-on-delete": 2, "delete mode sequence-group": 2,
         "delete mode remove-record-on-sequence-group": 1, "delete mode aggregation": 2, "cut of a visible row": 2,
         "late retract in a group": 1, "ignored retract": 1},
        {"upsert": 6, "read": 3, "compact": 1, "resolve": 1},
        engines=True,
        needs_one_of=_ENGINES,
    ),
    Check(
        "engine-change",
        ("M5", "M9", "M11", "P1", "D3"),
        "UPDATE, DELETE and a writer's delete change the rows of merge engines as the model does, or are refused",
        {"hard delete": 1},
        {"upsert": 5, "change": 6, "delete": 2, "compact": 1, "resolve": 1},
        engines=True,
        needs=_ROW_CHANGES,
        needs_one_of=_ENGINES - {Capability.FIRST_ROW},
    ),
    Check(
        "out-of-range",
        ("A4",),
        "a total that does not fit its column fails the read of that column, by key and name, and no other",
        {"out-of-range": 1},
        {"upsert": 6, "read": 3, "compact": 1, "resolve": 1},
        engines=True,
        needs_one_of=_ENGINES - {Capability.FIRST_ROW},
    ),
    Check(
        "engine-options",
        ("V1", "A5", "P1", "D2", "D4", "E2", "M11", "L8"),
        "tables, rows and statements that a merge engine does not take are refused by name, and nothing is changed",
        {"engine-refusal": len(ENGINE_REFUSALS)},
        {},
        needs=_ENGINES | {Capability.BINARY, Capability.ARRAY, Capability.STRUCT},
    ),
    Check(
        "row-change",
        ("M1", "M3", "M5", "M6", "M7", "L5"),
        "MERGE, UPDATE and DELETE leave the rows that the model has, and report its counts",
        {"merge-statement": 4, "update-statement": 1, "delete-statement": 1, "several-cases": 2, "by-source": 1,
         "nothing-selected": 1, "late-under-vacated": 1},
        {},
        programs=True,
        needs=_ROW_CHANGES,
    ),
    Check(
        "refused-change",
        ("M2", "M4", "M6", "M9"),
        "a statement that breaks a rule fails with its code, and the table reads as before",
        {"multiple-matches": 1},
        {},
        programs=True,
        needs=_ROW_CHANGES,
    ),
    Check(
        "merge-sinks",
        ("S1", "S2", "S3", "S4", "S5", "S6"),
        "merge sinks take the pages that they should, refuse others, and may be run twice",
        {},
        {},
        needs=_ROW_CHANGES,
    ),
    Check(
        "commits",
        ("K4", "L3", "L4", "L6", "L9", "L10", "L11", "M12", "N1", "R1"),
        "a commit keeps the order of its files, tells what it wrote, and loses nothing that is needed later",
        {},
        {},
    ),
    Check(
        "faults",
        ("L4", "L6"),
        "after a crash, an error or a lost answer the table is as before the step or after it, and a retry counts once",
        {**{f"fault {kind}": wanted for kind, wanted in (
            ("crash before", 2), ("crash after", 2), ("torn", 2), ("twice", 2), ("error", 4), ("error after", 2),
            ("unknown", 1),
        )}, "fault at the commit": 2, "read by a fresh process": 3},
        {},
        faults=True,
    ),
    Check(
        "writers",
        ("L7",),
        "a serial order explains the results of writers in several processes, and what they leave",
        {"action within another process's": 6},
        {},
        races=True,
    ),
    Check(
        "concurrency",
        ("K4", "K6", "L3", "L4", "L7"),
        "a commit that comes between the beginning and the end of another one is kept, and has its place in the order",
        {},
        {},
    ),
)  # fmt: skip
"""All checks, in the order in which a run reports them."""


def check_of(check_id: str) -> Check:
    """Return the check with an id.

    Raises:
        KeyError: there is none.
    """
    return {check.id: check for check in CHECKS}[check_id]


def checks_as_of(version: str) -> list[Check]:
    """Return the checks that a version of the suite had; of ``0.1`` those that any version 0.1.x had.

    Raises:
        ValueError: the text is not a version such as ``0.1.0``, or a version after this one or before the first.
    """
    wanted, newest = _numbers(version), max(_numbers(check.since) for check in CHECKS)
    if wanted[: len(newest)] > max(newest, _numbers(__version__)):
        raise ValueError(f"'{version}' is to come: this is the suite of {__version__}")
    if found := [check for check in CHECKS if _numbers(check.since)[: len(wanted)] <= wanted]:
        return found
    raise ValueError(f"'{version}' is before the first version of the suite, {min(check.since for check in CHECKS)}")


def _numbers(version: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, version.split(".")))
    except ValueError:
        raise ValueError(f"'{version}' is no version: give numbers with points, as 0.1.0") from None

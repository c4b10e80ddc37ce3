"""Test a system for a law: play its histories, and shrink the first one that fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from tests.world.laws import Law, narrowed
from trinity_conformance.model.statements import Statement
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.runner import failure_of, play
from trinity_conformance.playing.subject import Subject, Unsupported
from trinity_conformance.playing.traces import History
from trinity_conformance.playing.words import in_words
from trinity_conformance.shrink.histories import ShrinkBudget, shrink

_SHRINK: Final = ShrinkBudget(600, 60)  # the tries are the limit, however slow the system


@dataclass(frozen=True)
class Answer:
    """The answer of a system about a law.

    Attributes:
        rules: the rules of the law.
        kept: the number of histories whose rows equal the model's.
        refused: the missing feature because of which it cannot be asked.
        message: the difference of the shortest history that breaks the law, and its ``steps``.
        trace: that history in the form of trace files.
    """

    rules: tuple[str, ...]
    kept: int = 0
    refused: str = ""
    message: str = ""
    steps: str = ""
    trace: Any = None

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON."""
        return asdict(self)


def ask(subject: Subject, law: Law, histories: int, takes: Callable[[Statement], bool] = lambda _: True) -> Answer:
    """Play the first histories of a law on a system, with the statements that it knows, and compare after each step.

    Histories that need a feature that the system lacks are skipped; if it can play none, the answer says so.
    """
    kept, refused, about = 0, "", _about(law, takes)
    for seed in range(histories):
        try:
            play(subject, about(law.draw(seed)), every_step=True)
            kept += 1
        except Unsupported as reason:
            refused = str(reason)
        except NonConformance as failure:
            small = shrink(failure, _trial(subject, about), _SHRINK)
            assert small.history is not None
            trace = json.loads(small.history.to_json())
            return Answer(law.rules, kept, "", small.message, _steps_in_words(small.history), trace)
    return Answer(law.rules, kept, "" if kept else refused)


def _about(law: Law, takes: Callable[[Statement], bool]) -> Callable[[History], History]:
    """Return a function that removes the statements that are not about the law, or that the system does not know."""
    question = law.asked
    if question is None:
        return lambda history: history
    return lambda history: narrowed(history, lambda statement, effect: takes(statement) and question(statement, effect))


def _trial(subject: Subject, about: Callable[[History], History]) -> Callable[[History], NonConformance | None]:
    def trial(history: History) -> NonConformance | None:
        return failure_of(subject, history) if about(history) == history else None

    return trial


def _steps_in_words(history: History) -> str:
    """Return the steps in words. They do not say what executes them, as that is not Trinity."""
    lines = [f"{number:>3}  {in_words(step, history.shape)}" for number, step in enumerate(history.steps)]
    return "\n".join([history.shape.ddl("t"), *lines]).replace(" of Arrow data", "")

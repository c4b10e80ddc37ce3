"""Histories in which the suite once found a defect, on every adapter: findings/<id>.json, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from trinity_conformance import History, connectors
from trinity_conformance.command.environment import adapter
from trinity_conformance.generate.executors import without_spark
from trinity_conformance.playing.runner import play
from trinity_conformance.playing.subject import TrinitySubject
from trinity_conformance.playing.traces import load

FINDINGS: Final = Path(__file__).parent / "findings"
FOUND: Final = {
    "49fa1c7cee66": "a call without a transaction was played again as a fault, and found its own commit",
    "3df81775486e": "a feed of input called a writer's delete of a row whose kind is +U an update",
}
"""Id of a history -> what was wrong."""


def test_every_file_is_a_finding_with_its_reason() -> None:
    assert {path.stem for path in FINDINGS.iterdir()} == FOUND.keys()


@pytest.mark.parametrize("trace", FOUND)
@pytest.mark.parametrize("connector", connectors())
def test_a_finding_stays_mended(connector: str, trace: str, tmp_path: Path) -> None:
    history = load(trace, FINDINGS)
    assert isinstance(history, History)
    assert history.id == trace
    subject = TrinitySubject(adapter(connector), None, tmp_path, {})
    try:
        play(subject, without_spark(history), every_step=True)
    finally:
        subject.close()

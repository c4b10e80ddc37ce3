"""Generated change messages against exact fractions: a value is exactly the message's, or the message is refused."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from tests.support.cdc_generator import TOOLS, message
from tests.support.cdc_model import COLUMNS, Refusal, rows_of
from trinity import Column, Session, TrinityError, cdc
from trinity.calls import spark_errors

_READ: Final = {"debezium": cdc.debezium, "maxwell": cdc.maxwell, "canal": cdc.canal}
_SHOWN: Final = {
    "da": "CAST(da AS STRING)", "ts": "unix_micros(ts)", "by": "hex(by)", "f": "CAST(f AS DOUBLE)",
    "tn": "timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01 00:00:00', tn)",
}  # fmt: skip


def found(session: Session, tool: str, texts: list[str], invalid: str = "refuse") -> list[tuple[Any, ...]]:
    """Return the rows that Trinity reads from messages."""
    frame: DataFrame = session.spark.createDataFrame(pa.table({"value": pa.array(texts, pa.string())})).coalesce(1)
    columns = [Column(name, kind) for name, kind in COLUMNS.items()]
    rows = _READ[tool](frame, columns, ["k"], invalid=invalid)  # type: ignore[operator]
    with spark_errors():
        shown = rows.selectExpr(*(f"{_SHOWN.get(n, n)} AS {n}" for n in COLUMNS), "_watermark")  # it must fail, too
        return [tuple(row)[:-1] for row in shown.collect()]


def equal(one: Any, other: Any) -> bool:
    """Return whether values are the same: NaN equals NaN, 0.0 differs from -0.0, and numbers equal fractions."""
    if isinstance(other, float):
        return isinstance(one, float) and repr(one) == repr(other)
    if isinstance(other, Fraction):
        return one is not None and Fraction(one) == other
    if isinstance(other, list | tuple):
        return one is not None and len(one) == len(other) and all(map(equal, one, other))
    if isinstance(other, dict):
        return isinstance(one, dict) and one.keys() == other.keys() and all(equal(one[n], v) for n, v in other.items())
    return type(one) is type(other) and bool(one == other)


def outcome(session: Session, tool: str, text: str, invalid: str) -> str | list[tuple[Any, ...]]:
    """Return the rows of one message, or the code of its refusal."""
    try:
        return found(session, tool, [text], invalid)
    except TrinityError as error:
        return error.code


def model(tool: str, text: str) -> tuple[str | list[tuple[Any, ...]], bool]:
    """Return the model's rows of a message, or the code of its refusal, and whether the message can be skipped."""
    try:
        return rows_of(tool, text), False
    except Refusal as refusal:
        return refusal.code, refusal.dropped


def check_one(session: Session, tool: str, text: str) -> None:
    """Check one message with both options for messages that are no change."""
    reported, dropped = model(tool, text)
    for invalid, wanted in (("refuse", reported), ("drop", [] if dropped else reported)):
        rows = outcome(session, tool, text, invalid)
        assert equal(rows, wanted), f"{replay(tool, text)}: {rows} instead of {wanted}"


def replay(tool: str, text: str) -> str:
    """Return the call that checks a message again."""
    return f"\n    check_one(session, {tool!r}, {text!r})\n{json.dumps(text)}"


def check(session: Session, tool: str, texts: list[str], singly: int) -> None:
    """Check valid messages in one frame with those to skip, and some of the refused ones one by one."""
    outcomes = [(text, *model(tool, text)) for text in texts]
    good = [(text, reported) for text, reported, _ in outcomes if not isinstance(reported, str)]
    dropped = [text for text, _, drop in outcomes if drop]
    refused = [text for text, reported, drop in outcomes if isinstance(reported, str) and not drop]
    try:
        rows = found(session, tool, [text for text, _ in good] + dropped, "drop")
    except TrinityError:
        rows = []
    reported = [(row, text) for text, own in good for row in own]
    wrong = [text for row, (mine, text) in zip(rows, reported, strict=False) if not equal(row, mine)]
    if len(rows) != len(reported) or wrong:
        if wrong and len(rows) == len(reported):
            check_one(session, tool, wrong[0])
        if len(texts) > 1:
            half = len(texts) // 2
            check(session, tool, texts[:half], 0)
            check(session, tool, texts[half:], 0)
        for text in texts[:1]:
            check_one(session, tool, text)
        raise AssertionError("the messages are right one by one, and wrong together")
    for text in (refused + dropped[:singly])[:singly]:
        check_one(session, tool, text)


@pytest.mark.parametrize("tool", [TOOLS[0], *(pytest.param(tool, marks=pytest.mark.full) for tool in TOOLS[1:])])
def test_generated_messages(session: Session, tool: str) -> None:
    draw = random.Random(f"{tool} 0")
    check(session, tool, [message(draw, tool) for _ in range(50)], 1)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("tool", TOOLS)
def test_many_generated_messages(session: Session, tool: str, seed: int) -> None:
    draw = random.Random(f"{tool} {seed}")
    check(session, tool, [message(draw, tool) for _ in range(4000)], 25)


FOUND: Final = [
    ("debezium", '{"before": null, "after": {"k": 2}, "source": {"l#sn": "18"}, "op": "r"}'),
    ("canal", '{"type": "INSERT", "es": 1, "data": [{"k": 4, "s": {"#k": "\U0001d538", "n": "\\ud835\\udd38"}}]}'),
]
"""Messages that showed faults of the test itself: a position that was not asked for, an escaped character."""


@pytest.mark.full
@pytest.mark.parametrize(("tool", "text"), FOUND)
def test_found_messages(session: Session, tool: str, text: str) -> None:
    check_one(session, tool, text)


def test_the_model_itself_tells_messages_apart() -> None:
    draw = random.Random("model")
    outcomes = [model(tool, message(draw, tool))[0] for tool in TOOLS for _ in range(500)]
    reported = [given if isinstance(given, str) else "rows" for given in outcomes]
    assert all(reported.count(code) > 100 for code in ("rows", "BAD_DATA", "TYPE_MISMATCH"))

"""Calls of every public callable with hostile values: success, or a TrinityError and nothing changed.

The callables are found by introspection, so that a new one is covered at once. Most values are refused before Spark is
used; in the short tier there is no Spark, so that all other calls fail when they need it.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.hostile.calls import EXTREME, PROPER, Call, Subjects, calls
from trinity import Column, TrinityError

pytestmark = pytest.mark.inner

CALLS: Final = tuple(calls())
LONGEST: Final = 3000
"""The most characters of a message."""
ENDING: Final = ("Session.close", "Session.use", "Connection.close", "Connection.execute", "Cursor.execute")
"""Calls that change the subject itself, or may."""


class Nothing:
    """A replacement of Spark's objects where there is no Spark."""

    sparkContext = None  # noqa: N815 - pyspark's name; of no Spark, so of none that was stopped

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise TrinityError("CONFIGURATION_INVALID", "There is no Spark here.")


class DataFrame(Nothing):
    """A replacement of a DataFrame."""

    __module__ = "pyspark.sql"
    sparkSession = Nothing()  # noqa: N815 - pyspark's name


class Play:
    """A sequence of calls on subjects, which are made anew after each change."""

    def __init__(self, folder: Path, rows: Any) -> None:
        self.folder, self.rows, self.made = folder, rows, 0
        self.renew()

    def renew(self) -> None:
        """Make new subjects, over a warehouse of their own."""
        self.made += 1
        self.subjects = Subjects(self.folder / f"w{self.made}", self.rows)
        self.before = self.subjects.state()

    def make(self, call: Call, places: list[Any], names: dict[str, Any]) -> None:
        """Make one call. Raise AssertionError for a result that no call may have, and any error as it is raised."""
        failed: TrinityError | None = None
        owner = [] if call.owner is None else [self.subjects.of(call.owner)]
        try:
            call.target(*owner, *places, **names)
        except TrinityError as error:
            failed = error
        after = self.subjects.state()
        changed, before = after != self.before, self.before
        if changed or call.name in ENDING:
            self.renew()
        if failed is None:
            return
        assert not changed, f"{call} failed, and changed {before} to {after}: {failed}"
        assert failed.code != "GENERIC_INTERNAL_ERROR", f"{call}: {failed}"
        assert len(failed.message) <= LONGEST, f"{call}: {len(failed.message)} characters"
        assert "Traceback" not in failed.message


def arguments(draw: st.DrawFn, call: Call) -> tuple[list[Any], dict[str, Any]]:
    """Draw arguments for a call: valid values, except for one or several hostile ones."""
    places: list[Any] = []
    names: dict[str, Any] = {}
    for parameter in call.parameters:
        proper = PROPER.get(parameter.name, ())
        value = draw(st.sampled_from(proper) | st.sampled_from(EXTREME) if proper else st.sampled_from(EXTREME))
        if parameter.kind is parameter.VAR_POSITIONAL:
            places = [value]
        elif parameter.kind is parameter.VAR_KEYWORD:
            names["option"] = value
        elif parameter.default is parameter.empty or draw(st.booleans()):
            names[parameter.name] = value
    if places:  # positional arguments follow all others
        places = [*names.values(), *places]
        names = {}
    return places, names


@st.composite
def hostile(draw: st.DrawFn) -> tuple[Call, list[Any], dict[str, Any]]:
    """Draw a callable and its arguments."""
    call = draw(st.sampled_from(CALLS))
    return (call, *arguments(draw, call))


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Return a player without Spark: asking for a Spark session raises an error."""
    from trinity import session
    from trinity.spark import launch as spark

    def none(*_: object) -> SparkSession:
        raise TrinityError("CONFIGURATION_INVALID", "There is no Spark here.")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(spark, "local_spark", none)
    monkeypatch.setattr(session, "running_session", lambda: None)
    return Play(tmp_path, DataFrame())


@pytest.fixture
def spark_play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> Play:
    """Return a player with the Spark of the run."""
    monkeypatch.chdir(tmp_path)
    return Play(tmp_path, spark.range(1).selectExpr("CAST(id AS INT) AS k"))


SETTINGS: Final = settings(
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@settings(SETTINGS, max_examples=200)
@given(call=hostile())
def test_calls(play: Play, call: tuple[Call, list[Any], dict[str, Any]]) -> None:
    play.make(*call)


@pytest.mark.full
@settings(SETTINGS, max_examples=10_000)
@given(call=hostile())
def test_many_calls(play: Play, call: tuple[Call, list[Any], dict[str, Any]]) -> None:
    play.make(*call)


@pytest.mark.full
@settings(SETTINGS, max_examples=1_000)
@given(call=hostile())
def test_calls_with_spark(spark_play: Play, call: tuple[Call, list[Any], dict[str, Any]]) -> None:
    spark_play.make(*call)


def test_every_public_callable_is_guarded() -> None:
    """A callable without the guard would raise internal errors."""
    bare = [call.name for call in CALLS if not guarded(call.target)]
    assert bare == []


def guarded(target: Any) -> bool:
    made = vars(target)["__init__"] if isinstance(target, type) else target
    return hasattr(getattr(made, "__func__", made), "__wrapped__")


def test_annotations_are_understood() -> None:
    """Each annotation becomes a check; one that cannot would be an error of the first call."""
    for call in CALLS:
        for parameter in call.parameters:
            assert parameter.annotation is not inspect.Parameter.empty, f"{call}: {parameter}"


CASES: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("Session.table", {"name": None}, "INVALID_ARGUMENTS"),
    ("Session.table", {"name": "t\ud800"}, "INVALID_ARGUMENTS"),
    ("Session.sql", {"text": None}, "INVALID_ARGUMENTS"),
    ("Session.sql", {"text": "SELECT 1", "params": 5}, "INVALID_ARGUMENTS"),
    ("Session.use", {"catalog": None, "schema": 5}, "INVALID_ARGUMENTS"),
    ("Session.create_table", {"name": "n", "columns": [Column("a", "int")], "primary_key": "a"}, "INVALID_ARGUMENTS"),
    ("Session.create_table", {"name": "n", "columns": [None]}, "INVALID_ARGUMENTS"),
    ("Session.checked_properties", {"catalog": "nosuch", "properties": {}}, "CATALOG_NOT_FOUND"),
    ("ExternalTables.names", {"catalog": "nosuch", "schema": "default"}, "CATALOG_NOT_FOUND"),
    ("Table.rename_column", {"old": "v", "new": None}, "INVALID_ARGUMENTS"),
    ("Table.widen_column", {"name": "k", "type": 5}, "INVALID_ARGUMENTS"),
    ("Table.widen_column", {"name": "k", "type": "bigint(("}, "TYPE_MISMATCH"),
    ("Table.widen_column", {"name": "k", "type": "bigint;"}, "TYPE_MISMATCH"),
    ("Table.alter", {"changes": len}, "INVALID_ARGUMENTS"),
    ("Table.add_check", {"name": "c", "condition": None}, "INVALID_ARGUMENTS"),
    ("Table.merge", {"source": None, "on": "t.k = s.k"}, "INVALID_ARGUMENTS"),
    ("Table.delete", {"condition_or_keys": "\ud800"}, "INVALID_ARGUMENTS"),
    ("Table.upsert", {"data": pa.table({"k": [1]}).to_pandas()["k"]}, "INVALID_ARGUMENTS"),
    ("Table.upsert", {"data": pa.table({"k": [1]}), "txn": ("a\ud800", 1)}, "INVALID_ARGUMENTS"),
    ("Table.upsert", {"data": pa.table({"k": [1]}), "txn": ("a", float("inf"))}, "INVALID_ARGUMENTS"),
    ("Table.splits", {"version": 2**63}, "INVALID_ARGUMENTS"),
    ("trinity.Column", {"name": "c", "type": "int", "default": 0}, "INVALID_ARGUMENTS"),
    ("trinity.connect", {"warehouse": 5}, "INVALID_ARGUMENTS"),
    ("trinity.connect", {"warehouse": "a\0b"}, "CONFIGURATION_INVALID"),
    ("trinity.connect", {"warehouse": "w", "schema": None}, "INVALID_ARGUMENTS"),
    ("trinity.dbapi.connect", {"model": 5}, "INVALID_ARGUMENTS"),
    ("trinity.dbapi.Binary", {"value": [None]}, "INVALID_ARGUMENTS"),
    ("trinity.dbapi.DateFromTicks", {"ticks": float("nan")}, "NUMERIC_VALUE_OUT_OF_RANGE"),
    ("trinity.dbapi.TimestampFromTicks", {"ticks": float("inf")}, "NUMERIC_VALUE_OUT_OF_RANGE"),
    ("Cursor.execute", {"operation": None}, "INVALID_ARGUMENTS"),
    ("Cursor.execute", {"operation": "SELECT ?", "parameters": [10**38]}, "NUMERIC_VALUE_OUT_OF_RANGE"),
    ("Connection.archive", {"table": "../../x"}, "INVALID_ARGUMENTS"),
]
"""Calls that once raised an internal error, each shrunk."""


@pytest.mark.parametrize(("name", "arguments", "code"), CASES)
def test_cases(play: Play, name: str, arguments: dict[str, Any], code: str) -> None:
    arguments = dict(arguments)
    call = next(call for call in CALLS if call.name == name)
    owner = [] if call.owner is None else [play.subjects.of(call.owner)]
    places = [arguments.pop(p.name) for p in call.parameters if p.kind is p.VAR_POSITIONAL]
    with pytest.raises(TrinityError) as caught:
        call.target(*owner, *places, **arguments)
    assert caught.value.code == code, caught.value
    assert play.subjects.state() == play.before

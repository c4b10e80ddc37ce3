"""Declared capabilities are verified both ways, and histories use no others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.budgets import QUICK
from trinity.errors import TrinityError
from trinity.memory import MemoryConnector, MemoryFormat, MemoryMetadata
from trinity.spi import (
    EVERYTHING,
    TRANSFORMS,
    Capability,
    CommitResult,
    Connector,
    ConnectorContext,
    ConnectorMetadata,
    TableDefinition,
    TableHandle,
    parse_type,
)
from trinity.storage import ObjectStore, commit_point
from trinity_conformance import CHECKS, History, Report, Tally, play, run_check
from trinity_conformance.mutants.tables import ModelSubject
from trinity_conformance.playing.needs import of_shape, of_step
from trinity_conformance.suite.budgets import BUDGETS
from trinity_conformance.suite.checks import Check
from trinity_conformance.suite.parts import generated_of
from trinity_conformance.suite.results import results_of

OF_MEMORY = EVERYTHING - TRANSFORMS - {Capability.EXTERNAL_TABLES, Capability.COMMITS_IN_STORAGE}
ENGINES = frozenset((Capability.PARTIAL_UPDATE, Capability.AGGREGATION, Capability.FIRST_ROW))
POOR = (
    OF_MEMORY - ENGINES - {Capability.RESOLVE, Capability.ROW_CHANGES, Capability.PARTITION_BY_VALUE, Capability.CHAR}
)


def declares(monkeypatch: pytest.MonkeyPatch, capabilities: Collection[Capability]) -> None:
    """Let the in-memory format declare other capabilities than it has."""
    monkeypatch.setattr(MemoryFormat, "capabilities", property(lambda _: frozenset(capabilities)))


def refused(table: str, what: str) -> TrinityError:
    return TrinityError("NOT_SUPPORTED", f"Table '{table}': no {what} here.")


def lacks_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the in-memory format refuse the features that ``POOR`` lacks."""
    create = MemoryMetadata.create_table

    def create_table(self: MemoryMetadata, definition: TableDefinition) -> TableHandle:
        if definition.properties.get("merge-engine", "deduplicate") != "deduplicate" or definition.partition_by:
            raise refused(definition.full_name, "merge engines and partitions")
        if any(parse_type(c.type).name == "char" for c in definition.columns):
            raise refused(definition.full_name, "CHAR")
        return create(self, definition)

    monkeypatch.setattr(MemoryMetadata, "create_table", create_table)
    monkeypatch.setattr(MemoryMetadata, "keeps_deletes", False)
    monkeypatch.setattr(MemoryMetadata, "begin_merge", ConnectorMetadata.begin_merge)
    declares(monkeypatch, POOR)


def failing(report: Report) -> list[str]:
    return [f"{f.check}: {f.message}" for f in report.failures]


def test_an_adapter_passes_what_it_declares_and_is_told_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks_much(monkeypatch)
    report = run_check("memory", None, budget=QUICK)
    assert failing(report) == []
    assert {r.check.id for r in report.results if r.status == "not supported"} == {
        "merge-engines", "retracts", "engine-change", "out-of-range", "engine-options", "row-change", "refused-change",
        "merge-sinks", "delete",
    }  # fmt: skip
    assert {"row changes", "resolve", "first-row", "type char"} <= set(report.lacks)
    assert (report.undeclared, report.tally.unsupported) == ([], {})


def test_what_is_declared_and_refused_is_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks_much(monkeypatch)
    declares(monkeypatch, POOR | {Capability.RESOLVE})
    report = run_check("memory", None, budget=QUICK)
    [failure] = failing(report)
    assert failure.startswith("capabilities: resolve: declared, and refused: The connector of 'c.default.capability")


def test_what_works_undeclared_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    declares(monkeypatch, OF_MEMORY - {Capability.TRUNCATE, Capability.BINARY})
    report = run_check("memory", None, "capabilities")
    assert (failing(report), report.undeclared) == ([], ["truncate", "type binary"])
    assert [r.status for r in report.results] == ["passed"]


def test_what_a_commit_elsewhere_puts_is_no_commit_in_storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finish = MemoryMetadata.finish_insert

    def finish_insert(self: MemoryMetadata, *arguments: Any, **options: Any) -> CommitResult:
        ObjectStore(str(tmp_path)).put("metadata.json", b"{}")
        return commit_point("the catalog's pointer", lambda: finish(self, *arguments, **options))

    monkeypatch.setattr(MemoryMetadata, "finish_insert", finish_insert)
    report = run_check("memory", None, "capabilities")
    assert (failing(report), report.undeclared) == ([], [])


def refuses_late(self: Any, table: TableHandle, txn: object = None) -> CommitResult:
    truncate(self, table)
    raise refused(table.full_name, "TRUNCATE")


def refuses_otherwise(self: Any, table: TableHandle, txn: object = None) -> CommitResult:
    raise TrinityError("INVALID_ARGUMENTS", "not today")


truncate = MemoryMetadata.truncate


@pytest.mark.parametrize(
    ("way", "message"),
    [(refuses_late, "truncate: was refused, and left"), (refuses_otherwise, "truncate: neither works nor is refused")],
)
def test_a_refusal_is_by_name_and_changes_nothing(
    way: Callable[..., CommitResult], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    declares(monkeypatch, OF_MEMORY - {Capability.TRUNCATE})
    monkeypatch.setattr(MemoryMetadata, "truncate", way)
    [failure] = failing(run_check("memory", None, "capabilities"))
    assert message in failure


class Unlisted(MemoryMetadata):
    def list_tables(self, schema: str) -> list[str]:
        if super().list_tables(schema):
            raise RuntimeError("no names today")
        return []


class UnlistedConnector(MemoryConnector):
    def __init__(self, catalog: str) -> None:
        super().__init__(catalog)
        self.metadata = Unlisted(catalog, self._folder)


class UnlistedFormat(MemoryFormat):
    def create(self, catalog: str, options: Mapping[str, Any], context: ConnectorContext) -> Connector:
        return UnlistedConnector(catalog)


def test_an_adapter_that_raises_beside_the_cases_is_a_finding() -> None:
    report = run_check(UnlistedFormat, None, "capabilities")
    assert failing(report) == ["capabilities: a call of the adapter raised RuntimeError: no names today"]


def generated(checks: list[Check], capabilities: frozenset[Capability], tally: Tally) -> Iterator[History]:
    for part in generated_of(checks, BUDGETS["smoke"], 0, capabilities, tally):
        yield from part.histories


FULL = pytest.mark.full


@pytest.mark.parametrize(
    "lacking",
    [
        pytest.param(EVERYTHING - POOR, id="much"),
        pytest.param({Capability.RESOLVE}, marks=FULL, id="resolve"),
        pytest.param({Capability.TIME_TRAVEL}, marks=FULL, id="time travel"),
        pytest.param({Capability.RENAME_COLUMN, Capability.ADD_COLUMN}, marks=FULL, id="alterations"),
        *(
            pytest.param({*lacking}, marks=FULL, id=" and ".join(c.value for c in lacking))
            for lacking in (
                (Capability.AGGREGATION,),
                (Capability.ROW_CHANGES,),
                (Capability.ARRAY,),
                (Capability.DATE, Capability.DECIMAL),
                (Capability.DOUBLE, Capability.PARTIAL_UPDATE),
                (Capability.ARRAY, Capability.MAP, Capability.STRUCT),
            )
        ),
    ],
)
def test_smoke_is_conclusive_without_what_an_adapter_lacks(lacking: Collection[Capability]) -> None:
    can = EVERYTHING - frozenset(lacking)
    tally, checks = Tally(), [c for c in CHECKS if c.emphasis or c.programs]
    for history in generated(checks, can, tally):
        assert {*of_shape(history.shape), *(c for step in history.steps for c in of_step(step))} <= can
        play(ModelSubject(), history, tally)
    results = results_of(checks, tally, [], capabilities=can)
    assert {r.check.id: r.missing for r in results if r.status not in ("passed", "not supported")} == {}

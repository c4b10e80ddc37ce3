"""Rows that other engines moved out of compacted files, and that are folded from kept row versions (E3); no JVM."""

from __future__ import annotations

from typing import Any

import pytest

from trinity.errors import TrinityError
from trinity.spi import Column, DataFile, Origin, TableDefinition, TableHandle, Tier
from trinity.storage import ObjectStore
from trinity_delta.actions import add, new_metadata, remove, sidecar_list
from trinity_delta.restored import Since, domain_version_at, since_trinity, with_domains_of
from trinity_delta.schema import configuration
from trinity_delta.state import State, apply

HANDLE = TableHandle("lake", "s", "t", "/lake/s/t")
FOLDED = {"merge-engine": "partial-update", "sequence.field": "w"}
Action = dict[str, Any]


def table(properties: dict[str, str]) -> TableDefinition:
    hidden = (Column("_trinity_row_kind", "int"), Column("_trinity_carried", "string"))
    return TableDefinition("s", "t", (Column("k", "int", False), Column("w", "int"), *hidden), ("k",), (), properties)


class Log:
    """The log of a table whose compaction wrote ``base``, and whose later commit wrote ``log``."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.definition = table(properties).numbered()
        protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata"]}}
        self.commits: list[list[Action]] = [
            [protocol, {"metaData": new_metadata(self.definition, configuration(self.definition))}]
        ]
        self.base, self.log = (self.added(tier, tier.value) for tier in (Tier.BASE, Tier.LOG))
        sidecar = DataFile("/lake/s/t/_trinity/aside.parquet", 1, 1, Tier.SIDECAR)
        self.commits += [[self.base, sidecar_list([sidecar], ObjectStore(HANDLE.location))], [self.log]]

    def added(self, tier: Tier, name: str) -> Action:
        file = DataFile(f"/lake/s/t/{name}.parquet", 1, 1, tier, commit=1 if tier is Tier.BASE else None)
        return add(file, ObjectStore(HANDLE.location), self.definition, order=2 if tier is Tier.LOG else None)

    def gone(self, added: Action, *, changes: bool = True) -> Action:
        """Return a remove action as another engine writes it, with the file's tags."""
        path, tags = added["add"]["path"], added["add"].get("tags")
        return {"remove": {"path": path, "tags": tags, "dataChange": changes, "deletionTimestamp": 1}}

    def by_others(self, *actions: Action, operation: str = "UPDATE", **parameters: int) -> None:
        info = {"operation": operation, "operationParameters": parameters, "timestamp": 1}
        self.commits.append([{"commitInfo": info}, *actions])

    def state(self) -> State:
        found: list[State] = []
        for version, actions in enumerate(self.commits):
            found.append(apply(HANDLE, found[-1] if found else None, version, actions))
            at = domain_version_at(ObjectStore(HANDLE.location), "t", version, actions)
            if at is not None:
                found[-1] = with_domains_of(found[-1], found[at], actions)
        return found[-1]

    def since_trinity(self) -> Since:
        return since_trinity(reversed([*enumerate(self.commits)]))

    def refused(self) -> bool:
        try:
            self.state().check_readable(HANDLE)
        except TrinityError as error:
            return error.code == "NOT_SUPPORTED" and "RESTORE TABLE" in error.message
        return False


def others(name: str, *, changes: bool = True) -> Action:
    """Return an add action as another engine writes it."""
    return {"add": {"path": f"{name}.parquet", "size": 1, "partitionValues": {}, "dataChange": changes}}


@pytest.mark.parametrize("properties", [FOLDED, {"watermark-key": "w"}])
def test_a_change_of_compacted_rows(properties: dict[str, str]) -> None:
    log = Log(properties)
    log.by_others(log.gone(log.log), others("changed-log"))
    assert not log.refused()
    log.by_others(log.gone(log.base), others("changed"))
    assert log.refused() == (properties == FOLDED)
    assert log.since_trinity() == Since(frozenset({"base.parquet"}))
    log.by_others(log.gone(others("changed")), log.base, operation="RESTORE", version=3)
    assert not log.refused()
    assert log.since_trinity() == Since(turn=5)


def test_a_rewrite_is_no_change_and_a_change_of_what_it_wrote_is_one() -> None:
    log = Log(FOLDED)
    log.by_others(log.gone(log.base, changes=False), others("rewritten", changes=False), operation="OPTIMIZE")
    assert not log.refused()
    log.by_others(log.gone(others("rewritten")), operation="DELETE")
    assert log.refused()


def test_a_new_sidecar_knows_of_all() -> None:
    log = Log(FOLDED)
    log.by_others(log.gone(log.base), operation="DELETE")
    gone = remove("log.parquet", log.state().files["log.parquet"], log.definition, changes=True)
    log.commits.append([gone, sidecar_list((), ObjectStore(HANDLE.location))])  # TRUNCATE
    assert not log.refused()


def test_files_that_a_restore_brings_back_are_as_old_as_they_were() -> None:
    log = Log(FOLDED)
    log.by_others(log.gone(log.log), others("changed"))
    log.by_others(others("more"), operation="WRITE")
    ages = {"base.parquet": 1, "log.parquet": 2, "more.parquet": 4}
    log.by_others(log.gone(others("changed")), log.log, operation="RESTORE", version=2)
    assert {name: file.commit for name, file in log.state().files.items()} == ages
    log.by_others(*(log.gone(added) for added in (log.base, log.log, others("more"))), operation="DELETE")
    log.by_others(log.base, log.log, others("more"), operation="RESTORE", version=5)
    assert {name: file.commit for name, file in log.state().files.items()} == ages
    assert log.state().files["more.parquet"].origin is Origin.ADDED

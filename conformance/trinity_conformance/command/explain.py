"""Explain a check: its rules as the semantics states them, the histories generated for it, and how faults look."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from trinity.spi import EVERYTHING, Capability
from trinity_conformance.mutants.adapters import ADAPTER_MUTANTS
from trinity_conformance.mutants.effects import DML_MUTANTS
from trinity_conformance.mutants.engines import ENGINE_MUTANTS
from trinity_conformance.mutants.feeds import FEED_MUTANTS
from trinity_conformance.mutants.functions import FUNCTION_MUTANTS
from trinity_conformance.mutants.maintenance import MAINTENANCE_MUTANTS
from trinity_conformance.mutants.tables import MUTANTS
from trinity_conformance.playing.coverage import SITUATIONS
from trinity_conformance.playing.race_actions import RACE_ACTIONS
from trinity_conformance.playing.traces import FAULTS
from trinity_conformance.suite.checks import Check

_RULE: Final = re.compile(r'^- <a id="\w+"></a>\*\*(\w+)\*\* (.*?)\s*\*\([^)]*\)\*$', re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")

PLANTED: Final[Mapping[str, str]] = {
    name: (mutant.__doc__ or "").strip()
    for mutants in (MUTANTS, MAINTENANCE_MUTANTS, FEED_MUTANTS, DML_MUTANTS, ENGINE_MUTANTS, FUNCTION_MUTANTS)
    for name, mutant in mutants.items()
}
"""Name of a planted fault of the model -> its description, with the rule that it breaks."""
_OF_ADAPTERS: Final = {name: mutant.fault for name, mutant in ADAPTER_MUTANTS.items()}
"""Name of a planted fault of an adapter -> its description, with the rule that it breaks."""


@cache
def rules() -> Mapping[str, str]:
    """Return rule id -> its text, read from the page in the wheel, or in a checkout from docs/."""
    packed = Path(__file__).parents[1] / "semantics.md"
    page = packed if packed.is_file() else Path(__file__).parents[3] / "docs/semantics.md"
    found = _RULE.findall(page.read_text(encoding="utf-8"))
    return {rule: " ".join(_LINK.sub(r"\1", text).split()) for rule, text in found}


def explain(check: Check) -> str:
    """Return the explanation of a check as text."""
    parts = [
        f"{check.id}: {check.title}",
        "\n".join(["Rules", *(f"  {rule}  {rules()[rule]}" for rule in check.rules)]),
        "\n".join(["What is played", *(f"  {line}" for line in _played(check))]),
        "\n".join(["Planted faults of adapters that are against these rules", *_faults(_OF_ADAPTERS, check)]),
        "\n".join(["Planted faults of the model that are against these rules", *_faults(PLANTED, check)]),
    ]
    return "\n\n".join(parts)


def _faults(planted: Mapping[str, str], check: Check) -> list[str]:
    return [f"  {name}: {fault}" for name, fault in planted.items() if _is_against(fault, check)] or ["  none"]


def _is_against(fault: str, check: Check) -> bool:
    return bool(set(check.rules) & set(re.findall(r"\b[A-Z]\d{1,2}\b", fault)))


def _listed(capabilities: Iterable[Capability]) -> str:
    *others, last = sorted(c.value for c in capabilities)
    return f"{', '.join(others)} and {last}" if others else last


def _played(check: Check) -> Iterator[str]:
    if check.programs:
        yield "Programs of three to six statements (MERGE, UPDATE, DELETE) over a table; each is read after."
    if check.faults:
        yield "Histories of tables that one process plays, at each write of which something goes wrong:"
        yield from (f"  {kind}: {meaning}" for kind, meaning in FAULTS.items())
    if check.races:
        yield "Two or three processes write and read a table. One goes on, the others stand still amid an action."
        yield "Each action is one of: " + ", ".join(RACE_ACTIONS) + "."
    if check.engines:
        yield "Histories of tables of the merge engines partial-update, aggregation and first-row."
    elif check.emphasis:
        yield "Histories of tables: writes, and what the check is about."
    if check.emphasis:
        drawn = sorted(check.emphasis.items(), key=lambda item: -item[1])
        yield "Run alone, its steps are drawn by these weights: " + ", ".join(f"{op} {n}" for op, n in drawn) + "."
    if not (check.emphasis or check.programs or check.faults or check.races):
        yield "Cases written by hand, which are the same in each run."
    if check.needs:
        yield f"An adapter without {_listed(check.needs)} is not tested by it."
    if check.needs_one_of != EVERYTHING:
        yield f"One without all of {_listed(check.needs_one_of)} is not tested by it."
    if check.quotas:
        yield "It has passed only where these occurred:"
        yield from (f"  {SITUATIONS[name]} (at least {wanted} times)" for name, wanted in check.quotas.items())

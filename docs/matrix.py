"""``python -m docs.matrix`` writes docs/conformance.md out of the runs in docs/runs/.

The runs keep what was played, and when.
``trinity-conformance run ADAPTER --no-spark --report docs/runs/ADAPTER.json`` makes that of an adapter, and
``python -m tests.world`` that of other systems, ``systems.json``;
``trinity-conformance self-test --whole --report docs/runs/faults.json`` says which check finds which planted fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from trinity_conformance.report.results import Results, load
from trinity_conformance.suite.checks import CHECKS

ROOT: Final = Path(__file__).parent.parent
RUNS: Final = ROOT / "docs/runs"
PAGE: Final = ROOT / "docs/conformance.md"
_ADAPTERS: Final = ("parquet", "delta", "iceberg", "memory", "acme", "ledger", "ducklake")
_HEAD: Final = """# Who keeps which rule

This page shows which [rules](semantics.md) each adapter of Trinity keeps, and which of them other systems keep when
they upsert and merge. You need it when you choose a format, or when you compare Trinity's merge with that of another
system. Programs played the histories and wrote this page: `python -m docs.matrix`, out of the runs in `docs/runs/`.
"""
_OF_ADAPTERS: Final = """
## Adapters

Every adapter plays the same histories: the budget `smoke` of the [conformance suite](../conformance/README.md), without
Spark. *Kept* means that each check of the rule passed. *Partly* means that all that was played passed, but that a part
was not: it needs Spark, and a run with Spark plays it, or tables that several processes open. Rules that the suite has
no check for are not listed; Trinity's own tests prove them.
"""
_OF_FAULTS: Final = """
## Faults that the suite finds

A suite proves nothing unless it finds faults. So the suite has {count} adapters with one planted fault each, and plays
on each of them what `smoke` plays without Spark. The table shows which checks found the fault, and in how many steps: a
history was made small first. `trinity-conformance self-test --whole` plays this again.
"""
_OF_SYSTEMS: Final = """
## Other systems

Each system upserts in the way that its documentation shows: by key. Where the table has a watermark, a matched row is
updated under the condition `source.w >= target.w OR target.w IS NULL`. Where it has tombstones, a WHEN deletes. In the
histories of a row of this table nothing else can go wrong. A merge of delta-rs is a plain one, without
`app_transactions`. Apache Paimon, in Spark and as pypaimon, appends to a table with a primary key: there the watermark
is its `sequence.field`, and a tombstone a row of the kind `-D` (`rowkind.field`). The table is read after each step.
*Kept* says how many of {histories} histories, of {of_spark} in Spark, read as the
rules ask; those with a type that the system lacks are left out. *None* means that the system has no such thing, and
*not asked* that it is a library without SQL of its own. A rule that is not kept is no defect of that system: it
promises something else.
"""
_RANKS: Final = ("failed", "known gap", "blocked", "inconclusive", "not supported", "not played", "left out", "passed")
_WORDS: Final = {
    "passed": "kept",
    "failed": "not kept",
    "known gap": "not kept",
    "blocked": "not kept",
    "not played": "partly",
    "left out": "partly",
}


def page() -> str:
    """Return the page."""
    runs = [load(RUNS / f"{name}.json") for name in _ADAPTERS]
    systems = json.loads((RUNS / "systems.json").read_text(encoding="utf-8"))
    faults = json.loads((RUNS / "faults.json").read_text(encoding="utf-8"))
    parts = [
        _HEAD,
        _OF_ADAPTERS,
        *_adapters(runs),
        _OF_FAULTS.format(count=len(faults["faults"])),
        *_faults(faults),
        _OF_SYSTEMS.format(histories=systems["histories"], of_spark=systems["of_spark"]),
        *_systems(systems),
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _adapters(runs: Sequence[Results]) -> Iterator[str]:
    statuses = [_by_rule(run) for run in runs]
    rules = sorted({rule for found in statuses for rule in found}, key=_place)
    words = {rule: [_word(found.get(rule, "left out")) for found in statuses] for rule in rules}
    yield f"{_summary(words)}\n"
    yield f"<details markdown>\n<summary>All {len(rules)} rules</summary>\n"
    yield _table(("rule", *_ADAPTERS), ([_link(rule), *of] for rule, of in words.items()))
    yield "</details>\n"
    yield from _not_seen(runs[0], rules)
    lacking = ((name, ", ".join(run.lacks)) for name, run in zip(_ADAPTERS, runs, strict=True) if run.lacks)
    yield (
        "What an adapter does not declare it refuses, and the suite tries that it does. Only *commits in storage* is "
        "no refusal: a commit of an adapter without it is a step of a database or a catalog.\n"
    )
    yield _table(("adapter", "does not have"), lacking)
    told = ", ".join(f"{name} {number}" for name, number in runs[0].versions.items() if name != "pyspark")
    days = sorted({run.date for run in runs})
    histories = ", ".join(f"{name} {run.histories}" for name, run in zip(_ADAPTERS, runs, strict=True))
    yield f"Played on {' and '.join(days)} with {told}. Histories: {histories}."


def _summary(words: Mapping[str, Sequence[str]]) -> str:
    """Return how many rules all adapters keep, and the others by name."""
    others = {rule: set(of) for rule, of in words.items() if set(of) != {"kept"}}
    told = f"All {len(_ADAPTERS)} adapters keep {len(words) - len(others)} rules."
    for word in sorted({word for of in others.values() for word in of} - {"kept"}):
        told += f" *{word.capitalize()}*: {', '.join(_link(rule) for rule, of in others.items() if word in of)}."
    return told


def _faults(found: Mapping[str, Any]) -> Iterator[str]:
    """Return the table of faults and checks, and a line that sums it up."""
    faults: Sequence[Mapping[str, Any]] = found["faults"]
    checks = [check.id for check in CHECKS if any(check.id in fault["found"] for fault in faults)]
    unfound = [fault["fault"] for fault in faults if not fault["found"]]
    fewest = [min(one["steps"] for one in fault["found"].values()) for fault in faults if fault["found"]]
    missing = f"Not found: {', '.join(unfound)}." if unfound else "Each fault is found."
    yield f"{missing} The shortest history or case of each has {max(fewest)} steps at most.\n"
    yield f"<details markdown>\n<summary>All {len(faults)} faults</summary>\n"
    rows = ([_cited(fault["what"].rstrip(".")), *(_steps(fault, check) for check in checks)] for fault in faults)
    yield _table(("what is wrong", *checks), rows)
    yield "</details>\n"
    yield f"Played on {found['date']}."


def _steps(fault: Mapping[str, Any], check: str) -> str:
    one = fault["found"].get(check)
    return "" if one is None else str(one["steps"])


def _not_seen(run: Results, rules: Collection[str]) -> Iterator[str]:
    """Say which checks need Spark, and which are newer than the runs."""
    if left := [outcome for outcome in run.checks if outcome.status == "left out"]:
        yield "These checks saw too little without Spark:\n"
        yield _table(("check", "what holds"), ((outcome.id, outcome.title) for outcome in left))
    played = {outcome.id for outcome in run.checks}
    if newer := [check for check in CHECKS if check.id not in played]:
        lacking = sorted({rule for check in newer for rule in check.rules} - set(rules), key=_place)
        names = ", ".join(f"`{check.id}`" for check in newer)
        yield f"Newer than these runs: {names}.\n"
        if lacking:
            yield f"Not in the table yet: {', '.join(map(_link, lacking))}.\n"


def _by_rule(run: Results) -> Mapping[str, str]:
    """Return the worst status of the checks of each rule."""
    found: dict[str, str] = {}
    for outcome in run.checks:
        for rule in outcome.rules:
            found[rule] = min(found.get(rule, "passed"), outcome.status, key=_RANKS.index)
    return found


def _word(status: str) -> str:
    return _WORDS.get(status, status)


def _place(rule: str) -> tuple[str, int]:
    return rule[0], int(rule[1:])


def _systems(found: Mapping[str, Any]) -> Iterator[str]:
    answers: Mapping[str, Mapping[str, Any]] = found["answers"]
    laws = dict.fromkeys(law for of in answers.values() for law in of)
    rules = {law: " ".join(map(_link, of[law]["rules"])) for of in answers.values() for law in of}
    rows = ([law, rules[law], *(_cell(of.get(law), system) for system, of in answers.items())] for law in laws)
    yield _table(("what holds", "rules", *answers), rows)
    yield f"Played on {' and '.join(sorted(set(found['dates'].values())))}."
    yield "### The shortest history that each does not keep\n"
    for system, of in answers.items():
        for law, answer in of.items():
            if answer["message"]:
                told = f"{answer['steps']}\n\n{answer['message']}"
                anchor = _anchor(system, answer)
                yield f'<a id="{anchor}"></a>\n\n#### {system}: {law}\n\n```text\n{told}\n```\n'


def _cell(answer: Mapping[str, Any] | None, system: str) -> str:
    if answer is None:
        return "not asked"
    if answer["message"]:
        return f"[not kept](#{_anchor(system, answer)})"
    return "none" if answer["refused"] else f"kept ({answer['kept']})"


def _anchor(system: str, answer: Mapping[str, Any]) -> str:
    """Return the anchor of a history, which does not depend on how a renderer makes anchors of headings."""
    return "-".join(re.findall(r"[a-z]+", system.lower()) + [rule.lower() for rule in answer["rules"]])


def _cited(text: str) -> str:
    """Return a text with the rules at its end, in brackets, as links."""
    said, against, rules = text.partition(" (against ")
    return said + against + re.sub(r"[A-Z]\d+", lambda found: _link(found[0]), rules)


def _link(rule: str) -> str:
    return f"[{rule}](semantics.md#{rule.lower()})"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return (
        "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("| --- ", "|---").replace("--- |", "---|") + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

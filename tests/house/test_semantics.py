"""The rules of docs/semantics.md: each has a proof, and no file cites a rule that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from tests.support.paths import ROOT
from trinity_conformance.suite.checks import CHECKS

PAGE: Final = ROOT / "docs/semantics.md"
RULE: Final = re.compile(r'^- <a id="(\w+)"></a>\*\*(\w+)\*\* (.*?)\*\(([^)]*)\)\*$', re.MULTILINE | re.DOTALL)
FAMILIES: Final = "ACDEGHJKLMNPRSUV"
CITED: Final = re.compile(rf"(?<![\w.$'=])([{FAMILIES}]\d{{1,2}})(?![\w'])")
FOLDERS: Final = ("trinity", "formats", "conformance", "tests", "docs", "benchmarks")
DATA: Final = frozenset({"docs/performance.md", "tests/house/test_semantics.py"})
"""Files with letters and numbers that are no rule ids."""


def rules() -> Mapping[str, tuple[str, ...]]:
    """Return rule id -> the checks that prove it."""
    return {found[2]: tuple(re.split(r",\s+", found[4])) for found in RULE.finditer(PAGE.read_text())}


def cited() -> Iterator[tuple[str, str]]:
    """Yield (file, rule id) of every rule that a comment, a docstring, a test's name or a page cites."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix == ".py" and name not in DATA:
                text = "\n".join(re.findall(r'#.*|"""(?:.|\n)*?"""|(?<=def )test_[a-z]\d+_', path.read_text()))
            elif path.suffix == ".md" and name not in DATA:
                text = re.sub(r"^(>>>|\.\.\.).*|^```(?:.|\n)*?^```", "", path.read_text(), flags=re.MULTILINE)
            else:
                continue
            yield from ((name, rule) for rule in CITED.findall(text))
            yield from ((name, rule.upper()) for rule in re.findall(r"test_([a-z]\d+)_", text))


def test_every_rule_is_an_anchor() -> None:
    text = PAGE.read_text()
    anchors = re.findall(r'<a id="(\w+)">', text)
    assert [a.upper() for a in anchors] == list(rules()), "a rule without its anchor or without a proof"
    assert set(re.findall(r"\]\(#(\w+)\)", text)) <= set(anchors)


def test_no_rule_is_cited_that_is_not_there() -> None:
    unknown = {(name, rule) for name, rule in cited() if rule not in rules()}
    assert not unknown


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.id)
def test_checks_and_rules_name_each_other(check: object) -> None:
    assert set(check.rules) == {rule for rule, proofs in rules().items() if check.id in proofs}  # type: ignore[attr-defined]


def test_every_other_proof_is_a_module_that_cites_its_rule() -> None:
    citations = set(cited())
    known = {check.id for check in CHECKS}
    for rule, proofs in rules().items():
        for proof in proofs:
            assert proof in known or (proof, rule) in citations, f"{rule}: {proof}"

"""The list of differences, checked without Paimon; ``make test-paimon`` shows that it is true."""

from __future__ import annotations

from tests.paimon.cases import CASES
from tests.paimon.differences import DIFFERENCES
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "paimon.md"


def test_the_page_has_the_table_of_the_code() -> None:
    lines = [f"| {d.paimon} | {', '.join(map(_link, d.rules.split()))} |" for d in DIFFERENCES]
    assert "\n".join(lines) in PAGE.read_text()


def _link(rule: str) -> str:
    return f"[{rule}](semantics.md#{rule.lower()})"


def test_what_no_history_has_is_shown_by_hand() -> None:
    assert sorted(case.difference for case in CASES) == sorted(d.name for d in DIFFERENCES if d.by_hand)
    assert len({d.name for d in DIFFERENCES}) == len(DIFFERENCES)

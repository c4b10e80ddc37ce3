"""``python -m docs.checks`` writes the table of checks into conformance/README.md, as the program has them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from trinity_conformance.suite.checks import CHECKS

README: Final = Path(__file__).parent.parent / "conformance/README.md"
_HEAD: Final = "| check | rules | what holds |\n|---|---|---|\n"


def with_checks(text: str) -> str:
    """Return the README with the table of the checks that there are."""
    rows = "".join(f"| {check.id} | {' '.join(map(_linked, check.rules))} | {check.title} |\n" for check in CHECKS)
    return re.sub(re.escape(_HEAD) + r"(?:\|.*\n)*", lambda _: _HEAD + rows, text)


def _linked(rule: str) -> str:
    return f"[{rule}](../docs/semantics.md#{rule.lower()})"


if __name__ == "__main__":
    README.write_text(with_checks(README.read_text(encoding="utf-8")), encoding="utf-8")

"""The README's first example on a machine without Java: it runs as printed, and prints what is printed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.paths import ROOT
from tests.support.without_spark import run_without_spark


def test_the_first_example_needs_no_java(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    example = re.search(r"## Eight lines.*?```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert example is not None
    printed = run_without_spark(f"import os\nos.chdir({str(tmp_path)!r})\n{example[1]}")
    assert printed.strip() == example[2].strip()

"""The notebooks that need no Spark run without it, and their outputs are those in their files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.notebook import NOTEBOOKS, Notebook, as_page, differences, read, report, write
from tests.support.page_needs import without_spark


@pytest.mark.parametrize("notebook", [n for n in map(read, NOTEBOOKS) if not n.needs], ids=lambda n: n.path.stem)
def test_notebook(notebook: Notebook) -> None:
    with without_spark():
        different = differences(notebook)
    assert different == [], report(notebook, different)


@pytest.fixture
def notebook(tmp_path: Path) -> Notebook:
    """Write a notebook of three cells without outputs, and return it."""
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["kept = [1]\n", "print(len(kept))\n", "kept"], "outputs": []},
        {"cell_type": "code", "source": ["kept.append(2)"], "outputs": []},
    ]
    path = tmp_path / "small.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}}))
    return read(path)


def test_what_a_cell_puts_out_is_compared_and_written(notebook: Notebook) -> None:
    assert [cell["source"][0] for cell, _ in differences(notebook)] == ["kept = [1]\n"]
    assert "kept = [1]" in report(notebook, differences(notebook))
    write(notebook)
    assert differences(read(notebook.path)) == []
    assert as_page(read(notebook.path)) == (
        "# Title\n\n```python\nkept = [1]\nprint(len(kept))\nkept\n```\n\n```text\n1\n\n[1]\n```\n\n"
        "```python\nkept.append(2)\n```\n"
    )

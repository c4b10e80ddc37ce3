"""The forms of a report, by the extension of the file that it is written to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from trinity_conformance.report.badge import badge
from trinity_conformance.report.junit import junit
from trinity_conformance.report.markdown import markdown
from trinity_conformance.report.page import page
from trinity_conformance.report.results import Results
from trinity_conformance.report.text import text

FORMS: Final[Mapping[str, Callable[[Results], str]]] = {
    ".json": lambda results: results.to_json() + "\n",
    ".xml": junit,
    ".md": markdown,
    ".html": page,
    ".svg": badge,
    ".txt": text,
}
"""Extension of a file -> the function that returns results in this form."""
_GITHUB: Final = "GITHUB_STEP_SUMMARY"
"""The environment variable with which GitHub names the file of a step's summary."""


def write(results: Results, path: Path) -> None:
    """Write results to a file, in the form of its extension, which is one of :data:`FORMS`."""
    path.write_text(FORMS[path.suffix](results), encoding="utf-8")


def summarise_on_github(results: Results) -> None:
    """Append results to the summary of the step if GitHub Actions runs this process."""
    if place := os.environ.get(_GITHUB):
        with open(place, "a", encoding="utf-8") as file:
            file.write(markdown(results))

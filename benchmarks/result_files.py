"""Result files: a run replaces the cases that it measured, and leaves the others as they are.

A file has ``runs``, each with its date, the machine's shape, rows and rounds, and ``results``, each with the ``run``
that measured it. Files that were written before runs had a date have one run, ``undated``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.results import Result

RESULTS: Final = Path(__file__).parent / "results"


def load_results(path: Path) -> dict[str, Any]:
    """Return the runs and results of a file; none where there is no file."""
    if not path.exists():
        return {"runs": {}, "results": []}
    found: dict[str, Any] = json.loads(path.read_text())
    if "runs" not in found or not isinstance(found["runs"], dict):
        facts = {name: value for name, value in found.items() if name != "results"}
        return {"runs": {"undated": facts}, "results": [{**r, "run": "undated"} for r in found["results"]]}
    return found


def save_results(results: Sequence[Result], name: str, facts: Mapping[str, Any], folder: Path = RESULTS) -> None:
    """Write results of a run into ``<name>.json``, replacing earlier ones of the same case and table."""
    path, run = folder / f"{name}.json", str(facts["date"])
    folder.mkdir(parents=True, exist_ok=True)
    before = load_results(path)
    measured = {(r.case, r.catalog): {**r.to_dict(), "run": run} for r in results}
    entries = {(r["case"], r["catalog"]): r for r in before["results"]} | measured
    used = {entry["run"] for entry in entries.values()}
    runs = {key: value for key, value in {**before["runs"], run: dict(facts)}.items() if key in used}
    path.write_text(json.dumps({"runs": runs, "results": list(entries.values())}, indent=2) + "\n")

"""The table of the driver's memory, and the line that says of any run when and where it was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_MIB = 2**20


def memory_table(path: Path) -> str:
    """Return a table of each step's heap and peak, and the heap that a file of the log adds."""
    if not path.exists():
        return "Not measured yet."
    found = json.loads(path.read_text())
    tables = [table(found[part]) for part, table in (("rows", _by_rows), ("files", _by_files)) if part in found]
    return "\n\n".join(map("\n".join, tables))


def _by_rows(found: Mapping[str, Any]) -> list[str]:
    counts = list(dict.fromkeys(step["rows"] for step in found["steps"]))
    head = ["step", *(f"heap, {count:,} rows" for count in counts), *(f"peak, {count:,} rows" for count in counts)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    places = range(len(found["steps"]) // len(counts))
    for place in places:
        steps = [found["steps"][place + number * len(places)] for number in range(len(counts))]
        sizes = [f"{step[size] / _MIB:.0f} MiB" for size in ("heap", "peak") for step in steps]
        lines.append("| " + " | ".join([steps[0]["step"], *sizes]) + " |")
    return [*lines, "", run_line(found["run"])]


def _by_files(found: Mapping[str, Any]) -> list[str]:
    lines = ["| read of a log, held | heap, few files | heap, many files | a file |", "|" + "---|" * 4]
    for log in found["logs"]:
        sizes = [f"{log[part]['heap'] / _MIB:.1f} MiB of {log[part]['files']:,}" for part in ("few", "many")]
        lines.append("| " + " | ".join([log["step"], *sizes, f"{log['bytes_per_file']:,} bytes"]) + " |")
    return [*lines, "", run_line(found["run"])]


def run_line(run: Mapping[str, Any]) -> str:
    """Describe a run: its date, its work, and its machine."""
    rounds = "one round" if run["runs"] == 1 else f"medians of at most {run['runs']} rounds"
    what = f"{run['rows']:,} rows, {rounds}"
    if "date" not in run:
        return f"{what}; {run['cores']} cores, Python {run['python']}; the run has no date."
    machine = f"{run['cores']} cores, {run['memory_gib']} GiB, {run['cpu']}"
    return f"{run['date'][:10]}: {what}; {machine}; Python {run['python']}, Spark {run['spark']}."

"""``python -m benchmarks.page``: the tables and the plots of docs/performance.md, out of the result files.

A table stands between ``<!-- bench: FILE: CASES -->`` and ``<!-- bench end -->``: ``FILE`` is a file of
``benchmarks/results`` without its ``.json``, ``CASES`` the beginnings of the names of the cases, with semicolons; all
of the file's without them. ``plot: FILE: CASES`` is a plot of the same, and ``seconds: FILE: CASES`` has the medians
of ours and of all that took turns with it; ``figures: FILE: CASES`` has ours beside the reference, in their units;
``memory: FILE`` is the table of ``benchmarks.memory``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import typer

from benchmarks.memory_table import memory_table, run_line
from benchmarks.result_files import RESULTS, load_results

PAGE: Final = Path(__file__).parents[1] / "docs" / "performance.md"
_NONE: Final = "\N{EN DASH}"
_FORMATS: Final = ("parquet", "delta", "iceberg")
_PART: Final = re.compile(
    r"<!-- bench: (?:(?P<kind>plot|seconds|figures|memory): )?(?P<file>\w+)(?:: (?P<cases>.*?))? -->\n"
    r".*?<!-- bench end -->",
    re.DOTALL,
)


def page_of(text: str, results: Path = RESULTS) -> str:
    """Return the page with the tables that the result files make, and links to its plots."""

    def written(found: re.Match[str]) -> str:
        head = found[0].partition("\n")[0]
        entries, runs = ([], {}) if found["kind"] == "memory" else _selected(found, results)
        match found["kind"]:
            case "memory":
                body = memory_table(results / f"{found['file']}.json")
            case "plot":
                body = f"![Ratios of each case, and its budget]({_name(found['file'])})"
            case "seconds":
                body = _seconds(entries)
            case "figures":
                body = _figures(entries)
            case _:
                body = _ratios(entries, runs)
        return f"{head}\n{body}\n<!-- bench end -->"

    return _PART.sub(written, text)


def plots_of(text: str, results: Path = RESULTS) -> dict[str, str]:
    """Return the plots of the page, file name -> SVG."""
    from benchmarks.plot import plot

    parts = [found for found in _PART.finditer(text) if found["kind"] == "plot"]
    return {_name(found["file"]): plot(_selected(found, results)[0]) for found in parts}


def _selected(found: re.Match[str], results: Path) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """Return the entries that a part shows, in the order of its list of cases, and the runs of the file."""
    stored = load_results(results / f"{found['file']}.json")
    starts = [start.strip() for start in found["cases"].split(";")] if found["cases"] else [""]
    chosen = [e for start in starts for e in stored["results"] if e["case"].startswith(start)]
    return list({(e["case"], e["catalog"]): e for e in chosen}.values()), stored["runs"]


def _name(file: str) -> str:
    return f"performance-{file}.svg"


def _ratios(entries: Sequence[Mapping[str, Any]], runs: Mapping[str, Any]) -> str:
    """Return a table of ratios, and a line for each run that measured some of them."""
    if not entries:
        return "Not measured yet."
    catalogs = [c for c in _FORMATS if any(e["catalog"] == c for e in entries)]
    used = list(dict.fromkeys(e["run"] for e in entries))
    head = ["case", *(c.capitalize() for c in catalogs), "budget", *(["run"] if len(used) > 1 else [])]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for case in dict.fromkeys(e["case"] for e in entries):
        own = {e["catalog"]: e for e in entries if e["case"] == case}
        cells = [_cell(own[c]) if c in own else _NONE for c in catalogs]
        numbers = sorted({used.index(e["run"]) + 1 for e in own.values()})
        last = [", ".join(map(str, numbers))] if len(used) > 1 else []
        lines.append("| " + " | ".join([case, *cells, _budget(list(own.values())), *last]) + " |")
    notes = [run_line(runs[run]) for run in used]
    if len(used) > 1:
        notes = [f"{number}. {text}" for number, text in enumerate(notes, 1)]
    return "\n".join([*lines, "", *notes])


def _seconds(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of medians: a row for each case and each system in it."""
    lines = ["| case | of | median, s | from | to |", "|---|---|---|---|---|"]
    for case in dict.fromkeys(e["case"] for e in entries):
        own = [e for e in entries if e["case"] == case]
        measured = {f"Trinity, {e['catalog'].capitalize()}": (e["ours"], e.get("ours_range")) for e in own}
        for entry in own:
            measured |= {n: (p["median"], p["range"]) for n, p in entry.get("peers", {}).items()}
        for name, (middle, between) in measured.items():
            ends = [f"{end:.2f}" for end in between] if between and between[0] != between[1] else [_NONE, _NONE]
            lines.append("| " + " | ".join([case, name, f"{middle:.2f}", *ends]) + " |")
    return "\n".join(lines) if entries else "Not measured yet."


def _figures(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of ours and the reference: a row for each case."""
    catalogs = [c for c in _FORMATS if any(e["catalog"] == c for e in entries)]
    lines = ["| case | " + " | ".join(map(str.capitalize, catalogs)) + " |", "|---|" + "---|" * len(catalogs)]
    for case in dict.fromkeys(e["case"] for e in entries):
        own = {
            e["catalog"]: f"{_short(e['ours'])} by {_short(e['reference'])} {e['unit']}".strip()
            for e in entries
            if e["case"] == case
        }
        lines.append("| " + " | ".join([case, *(own.get(c, _NONE) for c in catalogs)]) + " |")
    return "\n".join(lines) if entries else "Not measured yet."


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _cell(entry: Mapping[str, Any]) -> str:
    """Return the ratio of the medians, and the least and the most of ours by the reference's median."""
    ratio = entry["ours"] / entry["reference"]
    least, most = (value / entry["reference"] for value in entry.get("ours_range", (0.0, 0.0)))
    return f"{ratio:.2f}" + (f" ({least:.2f} to {most:.2f})" if least != most else "")


def _budget(entries: Sequence[Mapping[str, Any]]) -> str:
    allowed = sorted({e["allowance"] for e in entries})
    unit = entries[0]["unit"]
    if not allowed[-1]:
        return f"{entries[0]['factor']:g}"
    least, most = f"{allowed[0]:.2f}", f"{allowed[-1]:.2f}"
    return f"{entries[0]['factor']:g} + {least if least == most else f'{least} to {most}'} {unit}"


def run(page: Path = PAGE, results: Path = RESULTS) -> None:
    """Write the tables and plots of docs/performance.md anew."""
    text = page.read_text()
    for name, svg in plots_of(text, results).items():
        (page.parent / name).write_text(svg)
    page.write_text(page_of(text, results))


def main() -> None:
    """Run the command."""
    typer.run(run)


if __name__ == "__main__":
    main()

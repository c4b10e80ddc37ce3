"""The plot of a page: each case's ratios as dots, with their budget as a line."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure

_MARKS: Final = {"parquet": ("o", "#4c72b0"), "delta": ("s", "#dd8452"), "iceberg": ("^", "#55a868")}


def plot(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return an SVG of ratios, the same for the same entries: a row for each case, its budget a stroke.

    Args:
        entries: results as they are kept.
    """
    cases = list(dict.fromkeys(entry["case"] for entry in entries))
    with mpl.rc_context({"svg.hashsalt": "trinity", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(8, 1 + 0.28 * len(cases)), layout="constrained")
        axes = figure.add_subplot()
        for catalog, (mark, colour) in _MARKS.items():
            own = [entry for entry in entries if entry["catalog"] == catalog]
            places = [cases.index(entry["case"]) for entry in own]
            ratios = [entry["ours"] / entry["reference"] for entry in own]
            axes.scatter(ratios, places, marker=mark, color=colour, label=catalog.capitalize(), zorder=3, s=26)
        budgets = {entry["case"]: entry["factor"] for entry in entries}
        axes.scatter([budgets[c] for c in cases], range(len(cases)), marker="|", s=140, color="black", label="budget")
        axes.set_yticks(range(len(cases)), cases)
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.axvline(1, color="lightgrey", zorder=1)
        axes.set_xlabel("Trinity by the reference, less is better")
        axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.12 - 0.5 / len(cases)), ncols=4, frameon=False)
        found = io.StringIO()
        figure.savefig(found, format="svg", metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in found.getvalue().splitlines()) + "\n"

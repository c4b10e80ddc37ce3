"""Results as a badge: one line of SVG."""

from __future__ import annotations

from html import escape
from typing import Final

from trinity_conformance.report.results import Results

_LABEL: Final = "trinity conformance"
_COLOURS: Final = {
    "conforms": "#2a7a2a",
    "inconclusive": "#8a6d00",
    "interrupted": "#8a6d00",
    "does not conform": "#b02020",
}
_PER_CHARACTER: Final = 6.6
"""Average width in pixels of a character with font size 11; ``textLength`` makes it exact."""


def badge(results: Results) -> str:
    """Return results as a badge with the verdict, and how many checks passed."""
    passed = len(results.with_status("passed"))
    verdict = f"{results.verdict} ({passed} of {len(results.checks)})"
    left, right = (round(len(text) * _PER_CHARACTER) + 12 for text in (_LABEL, verdict))
    title = escape(f"{_LABEL} of {results.connector}: {verdict}, {results.budget}, {results.date}")
    space = "http://www.w3.org/2000/svg"
    return f"""<svg xmlns="{space}" width="{left + right}" height="20" role="img" aria-label="{title}">
<title>{title}</title>
<rect width="{left + right}" height="20" rx="3" fill="#444"/>
<path d="M{left} 0h{right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{right - 3}z" fill="{_COLOURS[results.verdict]}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="6" y="14" textLength="{left - 12}">{_LABEL}</text>
<text x="{left + 6}" y="14" textLength="{right - 12}">{verdict}</text>
</g>
</svg>
"""

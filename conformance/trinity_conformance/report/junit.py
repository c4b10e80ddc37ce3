"""Results as JUnit XML: a test case for each check."""

from __future__ import annotations

import re
from typing import Final
from xml.etree import ElementTree

from trinity_conformance.report.results import Outcome, Results
from trinity_conformance.report.text import finding_text

_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(results: Results) -> str:
    """Return results as JUnit XML: a failed or blocked check is a failure, one that proves nothing is skipped."""
    failed, skipped = results.with_status("failed", "blocked"), results.with_status(*_SKIPPED)
    counts = {"tests": len(results.checks), "failures": len(failed), "errors": 0, "skipped": len(skipped)}
    words = {name: str(count) for name, count in counts.items()} | {"time": f"{results.seconds}"}
    suites = ElementTree.Element("testsuites", words)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": f"trinity-conformance.{results.connector}", **words})
    suite.set("timestamp", f"{results.date}T00:00:00")
    properties = ElementTree.SubElement(suite, "properties")
    known = {"budget": results.budget, "seed": str(results.seed), "spark": str(results.spark), **results.versions}
    for name, value in known.items():
        ElementTree.SubElement(properties, "property", {"name": name, "value": value})
    for outcome in results.checks:
        _case(suite, results, outcome)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


_SKIPPED: Final = ("known gap", "inconclusive", "not supported", "not played", "left out")


def _case(suite: ElementTree.Element, results: Results, outcome: Outcome) -> None:
    words = {"classname": f"trinity-conformance.{results.connector}", "name": outcome.id}
    case = ElementTree.SubElement(suite, "testcase", words)
    if outcome.status in ("failed", "blocked"):
        first = outcome.findings[0].message.splitlines()[0] if outcome.findings else outcome.note
        failure = ElementTree.SubElement(case, "failure", {"type": outcome.status, "message": _clean(first)})
        failure.text = _clean("\n\n".join(finding_text(outcome, finding) for finding in outcome.findings))
    elif outcome.status in _SKIPPED:
        ElementTree.SubElement(case, "skipped", {"message": _clean(f"{outcome.status}: {outcome.note}")})


def _clean(text: str) -> str:
    """Return a text in which U+FFFD replaces the characters that XML cannot contain."""
    return _NOT_IN_XML.sub("\ufffd", text)

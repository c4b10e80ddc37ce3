"""The conformance suite on this adapter. To run it by hand: ``trinity-conformance run acme``."""

from __future__ import annotations

from pathlib import Path

import trinity
from trinity_conformance import run_check


def test_conforms(tmp_path: Path) -> None:
    catalogs = {"lake": {"connector": "acme", "warehouse": str(tmp_path)}}
    with trinity.connect(catalogs=catalogs, catalog="lake") as session:
        report = run_check("acme", session.spark, budget="smoke")
    assert report.conforms, report.text()

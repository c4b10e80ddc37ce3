"""The conformance suite on this adapter, without Spark. To run it by hand: ``trinity-conformance run ducklake``."""

from __future__ import annotations

from pathlib import Path

from trinity_conformance import run_check


def test_conforms(tmp_path: Path) -> None:
    report = run_check("ducklake", None, budget="smoke", folder=tmp_path)
    assert report.conforms, report.text()

"""The conformance suite: generated histories of tables, a pure-Python model, and any adapter behind Trinity's API."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from trinity_conformance.generate.histories import histories, profiles, shapes
    from trinity_conformance.model.shapes import Column, Shape
    from trinity_conformance.model.tables import Model
    from trinity_conformance.playing.differences import NonConformance
    from trinity_conformance.playing.observations import Tally
    from trinity_conformance.playing.runner import play
    from trinity_conformance.playing.traces import History
    from trinity_conformance.report.results import Results
    from trinity_conformance.suite.budgets import BUDGETS, Budget, Share
    from trinity_conformance.suite.checks import CHECKS, Check
    from trinity_conformance.suite.results import CheckResult, Report
    from trinity_conformance.suite.running import connectors, run_check

__all__ = [
    "BUDGETS",
    "CHECKS",
    "Budget",
    "Check",
    "CheckResult",
    "Column",
    "History",
    "Model",
    "NonConformance",
    "Report",
    "Results",
    "Shape",
    "Share",
    "Tally",
    "connectors",
    "histories",
    "play",
    "profiles",
    "run_check",
    "shapes",
]

for _package in ("hypothesis", "datasketches", "pyroaring"):
    if find_spec(_package) is None:  # only Trinity is installed, without the extra
        raise ModuleNotFoundError(
            f"The conformance suite needs the package '{_package}', which is not installed: "
            "pip install 'trinity-merge[conformance]'.",
            name=_package,
        )

_PLACES: Final = {
    "suite.checks": ("CHECKS", "Check"),
    "suite.budgets": ("BUDGETS", "Budget", "Share"),
    "suite.results": ("CheckResult", "Report"),
    "suite.running": ("connectors", "run_check"),
    "generate.histories": ("histories", "profiles", "shapes"),
    "model.shapes": ("Column", "Shape"),
    "model.tables": ("Model",),
    "playing.differences": ("NonConformance",),
    "playing.observations": ("Tally",),
    "playing.runner": ("play",),
    "playing.traces": ("History",),
    "report.results": ("Results",),
}
"""Module -> the exported names that it defines. They are loaded late, so that the pytest plugin costs nothing."""

if not TYPE_CHECKING:  # with this function mypy would accept any name of the module

    def __getattr__(name: str) -> object:
        """Load a name when it is first used."""
        from importlib import import_module

        for module, names in _PLACES.items():
            if name in names:
                globals()[name] = found = getattr(import_module(f"trinity_conformance.{module}"), name)
                return found
        raise AttributeError(f"module 'trinity_conformance' has no attribute '{name}'")

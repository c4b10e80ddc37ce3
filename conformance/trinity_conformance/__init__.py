"""The conformance suite: generated histories of tables, a pure-Python model, and any adapter behind Trinity's API."""

from trinity_conformance.checks import CHECKS, Check
from trinity_conformance.differences import NonConformance
from trinity_conformance.histories import histories, profiles, shapes
from trinity_conformance.model import Model
from trinity_conformance.runner import Tally, play
from trinity_conformance.shapes import Column, Shape
from trinity_conformance.suite import BUDGETS, Budget, CheckResult, Report, connectors, run_check
from trinity_conformance.traces import History

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
    "Shape",
    "Tally",
    "connectors",
    "histories",
    "play",
    "profiles",
    "run_check",
    "shapes",
]

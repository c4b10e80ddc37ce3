"""The conformance suite: generated histories of tables, a pure-Python model, and any adapter behind Trinity's API."""

try:
    from trinity_conformance.command.checks import CHECKS, Check
    from trinity_conformance.command.suite import BUDGETS, Budget, CheckResult, Report, connectors, run_check
    from trinity_conformance.generate.histories import histories, profiles, shapes
    from trinity_conformance.model.shapes import Column, Shape
    from trinity_conformance.model.tables import Model
    from trinity_conformance.play.differences import NonConformance
    from trinity_conformance.play.runner import Tally, play
    from trinity_conformance.play.traces import History
except ModuleNotFoundError as error:  # only Trinity is installed, without the extra
    raise ModuleNotFoundError(
        f"The conformance suite needs a package that is not installed ({error}): "
        "pip install 'trinity-merge[conformance]'.",
        name=error.name,
    ) from None

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

"""A check of the Python of Spark's workers, which runs Trinity's tasks: one task reports which packages it has."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trinity.calls import as_trinity
from trinity.errors import TrinityError
from trinity.spark.remote import runs_in_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS: Final = ("trinity.engine.writing.spark.run_sinks", "trinity.engine.compacting.rewrite_task")
"""Modules of the functions that Trinity's tasks run."""
_able: Final[set[str]] = set()
"""The Spark applications whose workers passed the check."""


def check_workers(spark: SparkSession) -> None:
    """Refuse a local Spark whose workers run a Python without this version of Trinity.

    No task is run if that is evidently the Python of this process, or if the check passed before. A cluster's Python is
    not checked: the first task there shows what is missing.

    Raises:
        TrinityError: CONFIGURATION_INVALID naming that Python, what it lacks, and PYSPARK_PYTHON.
    """
    if not runs_in_process(spark) or _is_this(python := str(spark.sparkContext.pythonExec)):
        return
    if (application := str(spark.sparkContext.applicationId)) in _able:
        return
    try:
        lacking = lacks(ask_worker(spark, _TASKS))
    except Exception as error:
        found = as_trinity(error)
        lacking = "runs no task" if found.code == "GENERIC_INTERNAL_ERROR" else f"runs no task: {found.message}"
    if lacking is not None:
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"The Python of Spark's workers, '{python}', {lacking.rstrip('.')}. Set PYSPARK_PYTHON={sys.executable} in "
            "the environment before Spark is started, or install the same packages there.",
        )
    _able.add(application)


def _is_this(python: str) -> bool:
    """Return True when a command is this process's interpreter, in the same environment."""
    found = shutil.which(python)
    if not found or not sys.executable:
        return False
    there, here = Path(found), Path(sys.executable)
    return there == here or (there.parent.resolve() == here.parent.resolve() and os.path.samefile(there, here))


def lacks(answer: Mapping[str, Any]) -> str | None:
    """Return what a worker lacks according to its answer, as the end of a message; None if it lacks nothing."""
    here = version("trinity-merge")
    if "missing" in answer:
        return f"cannot import {answer['missing']} ({answer['error']})"
    return None if answer["version"] == here else f"has trinity-merge {answer['version']}, and here is {here}"


def ask_worker(
    spark: SparkSession, modules: Sequence[str], objects: Sequence[tuple[str, str, str]] = ()
) -> dict[str, Any]:
    """Return the answer of one task, a JSON object.

    It has the ``missing`` module and the ``error``; or else the ``version`` of Trinity, and ``unseen`` folders, each
    with the reason.

    Args:
        spark: the session.
        modules: the modules that the task imports.
        objects: (folder, name, text) of objects that the task looks for; folders of objects that it does not find, or
            not with that text, are unseen.

    Raises:
        Exception: Spark's error, if the task fails.
    """
    from trinity.spark_names import F

    wanted = [tuple(found) for found in objects]

    def missing_modules(_: int) -> str:
        # the function is self-contained: the worker may lack this module, and pyarrow
        import importlib
        import json
        from importlib.metadata import version

        for module in modules:
            try:
                importlib.import_module(module)
            except ImportError as error:
                return json.dumps({"missing": module, "error": str(error)})
        from trinity.errors import TrinityError
        from trinity.storage import ObjectStore

        unseen = []
        for folder, name, text in wanted:
            try:
                if ObjectStore(folder).get(name).decode() != text:
                    unseen.append((folder, "it finds another one of that name"))
            except (TrinityError, OSError) as error:
                unseen.append((folder, str(error).rstrip(".")))
        return json.dumps({"version": version("trinity-merge"), "unseen": unseen})

    row = spark.range(0, 1, 1, 1).select(F.udf(missing_modules, "string", useArrow=False)("id")).head()
    return json.loads(row[0]) if row is not None else {}

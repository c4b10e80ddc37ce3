"""A system that plays in a process of its own, since its dependencies conflict with Trinity's."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT


class Worker:
    """A process that reads requests as lines of JSON, and answers each with one.

    Args:
        python: the Python of its environment.
        module: the module that it runs.
        folder: the folder of its tables.
    """

    def __init__(self, python: Path, module: str, folder: Path) -> None:
        if not python.exists():
            raise FileNotFoundError(f"no environment for {module} at {python}: run `make world`")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(python)}
        environment.pop("SPARK_HOME", None)
        self.folder, self._module = folder, module
        self._log = folder / f"{module}.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [python, "-m", module, folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
            )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def ask(self, do: str, **details: Any) -> Any:
        """Send a request, and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, **details}) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                found = json.loads(line)
                if "error" in found:
                    raise RefusedByWorker(found["error"])
                return found["answer"]
        raise RuntimeError(f"{self._module} ended at {do!r}:\n{self._log.read_text()[-2000:]}")


class RefusedByWorker(Exception):
    """An error that the system raised in its process."""


def python_of(variable: str, environment: str) -> Path:
    """Return the Python that an environment variable names, or that of an environment that make has made."""
    return Path(os.environ.get(variable, ROOT / environment / "bin" / "python"))

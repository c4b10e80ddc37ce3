"""Apache Paimon 0.9 as a peer: it runs in an environment of its own, and gets its requests as lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Final

_ROOT: Final = Path(__file__).parents[1]
_WORKER: Final = Path(__file__).parent / "paimon_worker.py"


def paimon_python() -> Path | None:
    """Return the Python of PAIMON_PYTHON, or of ``make test-paimon``; None where there is none."""
    python = Path(os.environ.get("PAIMON_PYTHON", _ROOT / ".venv-paimon" / "bin" / "python"))
    return python if python.exists() else None


class Paimon:
    """A process with a Spark 3.5 and a table of Paimon's.

    Args:
        python: of the environment.
        folder: where the prepared rows are, and the table goes.
    """

    def __init__(self, python: Path, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [str(python), str(_WORKER), str(folder / "paimon")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")},
        )

    def __enter__(self) -> Paimon:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def create(self, base: Path) -> None:
        """Make the table with the rows of the base."""
        self._ask("create", base)

    def commit(self, batch: str) -> float:
        """Commit prepared rows, read all rows, and return the seconds of both."""
        return float(self._ask("commit", self._folder / batch)["seconds"])

    def count(self) -> int:
        """Return the number of merged rows."""
        return int(self._ask("count", self._folder)["rows"])

    def _ask(self, do: str, path: Path) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do, "path": str(path)}) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                assert "error" not in answer, answer["error"]
                return answer
        raise RuntimeError(f"Paimon ended at '{do}' of {path}: try {_WORKER.name} by itself to see why")

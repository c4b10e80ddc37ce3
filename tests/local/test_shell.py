"""`trinity shell` over a warehouse, without Spark: plans, history, formats, completion, a terminal."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from trinity.cli.main import app

RUNNER = CliRunner()


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    """Run the shell over a warehouse with a table; return what it prints."""

    def shell(text: str, *arguments: str, code: int = 0) -> str:
        found = RUNNER.invoke(app, ["shell", "-w", str(tmp_path / "w"), *arguments], input=text)
        assert found.exit_code == code, found.output
        return found.stdout

    shell("CREATE TABLE delta.default.orders (id INT PRIMARY KEY, state STRING);")
    shell("INSERT INTO delta.default.orders VALUES (1, 'new'), (2, 'paid');")
    return shell


def test_plans_and_history(run: Callable[..., str]) -> None:
    shown = run(
        "SELECT id\n  FROM delta.default.orders;\n!plan SELECT id FROM delta.default.orders\n!history\n!history 1\n"
    )
    assert "merged read of delta.default.orders" in shown
    assert "executor: this process" in shown
    assert shown.count("   1  SELECT id FROM delta.default.orders\n") == 2
    run("!history x\n", code=1)


def test_arrow_data(run: Callable[..., str], tmp_path: Path) -> None:
    query = "SELECT id, state FROM delta.default.orders ORDER BY id"
    arguments = ["shell", "-w", str(tmp_path / "w"), "-e", query, "-o", "arrow"]
    found = RUNNER.invoke(app, arguments)
    rows = pa.ipc.open_stream(io.BytesIO(found.stdout_bytes)).read_all()
    assert rows.to_pylist() == [{"id": 1, "state": "new"}, {"id": 2, "state": "paid"}]
    assert rows.schema.field("id").type == pa.int32()


def test_a_terminal_completes_and_remembers(run: Callable[..., str], tmp_path: Path) -> None:
    """Tabulators complete keywords, tables and commands; a statement of two lines is one in the next history."""
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "dumb", "NO_COLOR": "1"}
    code = "from trinity.cli.main import app; app()"
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-c", code, "shell", "-w", str(tmp_path / "w")]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as shell:
        os.close(theirs)
        shown = _shown(terminal, "trinity> ")  # only then it takes single keys
        os.write(terminal, b"sel\t id\nfrom delta.default.ord\t;\n!his\t\n\x04")
        shown = shown + _shown(terminal)
        assert shell.wait(timeout=60) == 0, shown
    os.close(terminal)
    assert "| 1  |" in shown
    assert "   1  select id from delta.default.orders" in shown
    kept = (tmp_path / "state/trinity/shell_history").read_text().splitlines()
    assert kept == ["select id from delta.default.orders;", "!history"]


def _shown(terminal: int, until: str | None = None) -> str:
    """What a program shows on a terminal, until a text or its end."""
    found = b""
    while until is None or until.encode() not in found:
        try:
            found += os.read(terminal, 4096)
        except OSError:  # the program has ended
            break
    return found.decode()

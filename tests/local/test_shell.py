"""`trinity shell` over a warehouse, without Spark: plans, history, formats, completion, a terminal."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from trinity.cli.main import app

RUNNER = CliRunner()


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs the shell over a warehouse with a table, and returns its output."""

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


def test_an_executor_is_named(run: Callable[..., str], tmp_path: Path) -> None:
    for_spark = ["-e", "SELECT soundex(state) AS s FROM delta.default.orders", "--engine"]
    arguments = ["shell", "-w", str(tmp_path / "w"), *for_spark]
    found = RUNNER.invoke(app, [*arguments, "local"])
    assert (found.exit_code, "engine='local'" in found.stderr) == (1, True), found.output
    assert "'none' is not one of auto, local, spark" in RUNNER.invoke(app, [*arguments, "none"]).stderr


def test_arrow_data(run: Callable[..., str], tmp_path: Path) -> None:
    query = "SELECT id, state FROM delta.default.orders ORDER BY id"
    arguments = ["shell", "-w", str(tmp_path / "w"), "-e", query, "-o", "arrow"]
    found = RUNNER.invoke(app, arguments)
    rows = pa.ipc.open_stream(io.BytesIO(found.stdout_bytes)).read_all()
    assert rows.to_pylist() == [{"id": 1, "state": "new"}, {"id": 2, "state": "paid"}]
    assert rows.schema.field("id").type == pa.int32()


def test_nested_values_as_json(run: Callable[..., str]) -> None:
    query = "SELECT map(DATE '2024-01-01', 1) AS m, s, 1.50 AS d "
    query += "FROM (SELECT named_struct('a', named_struct('b', X'ff')) AS s);"
    found = json.loads(run(query, "-o", "json", "--engine", "local"))
    assert found == [{"m": {"2024-01-01": 1}, "s": {"a": {"b": "ff"}}, "d": "1.50"}]


@pytest.mark.parametrize("option", ["-e", "-f"])
def test_only_a_line_feed_ends_a_line(run: Callable[..., str], tmp_path: Path, option: str) -> None:
    text = "a\u2028b\x85c\x0cd\x1ce"
    script = tmp_path / "script.sql"
    script.write_text(f"SELECT '{text}' AS v;\nSELECT 1 AS n", encoding="utf-8")
    given = script.read_text(encoding="utf-8") if option == "-e" else str(script)
    shown = run("", option, given, "-o", "json")
    assert [json.loads(line) for line in shown.split("\n")[:2]] == [[{"v": text}], [{"n": 1}]]


def test_a_terminal_completes_and_remembers(run: Callable[..., str], tmp_path: Path) -> None:
    """Tab completes keywords, tables and commands; the next history has a statement of two lines as one entry."""
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "dumb", "NO_COLOR": "1"}
    code = "from trinity.cli.main import app; app()"
    terminal, theirs = pty.openpty()
    command = [sys.executable, "-c", code, "shell", "-w", str(tmp_path / "w")]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as shell:
        os.close(theirs)
        shown = _shown(terminal, "trinity> ")  # only then it takes single keys
        os.write(terminal, b"sel\t id\nfrom delta.default.ord\t;\n!his\t\n!nothing\n")
        os.write(terminal, b"select 'a  -- b' as x, -- both\n1 as y;\n\x04")
        shown = shown + _shown(terminal)
        assert shell.wait(timeout=60) == 0, shown  # an error at a prompt was shown there
    os.close(terminal)
    assert "There is no command !nothing." in shown
    assert "| 1  |" in shown
    assert "   1  select id from delta.default.orders" in shown
    kept = (tmp_path / "state/trinity/shell_history").read_text().splitlines()
    assert kept == ["select id from delta.default.orders;", "!history", "!nothing", "select 'a  -- b' as x, 1 as y;"]


def _shown(terminal: int, until: str | None = None) -> str:
    """Return a program's output on a terminal, until a text appears or the program ends."""
    found = b""
    while until is None or until.encode() not in found:
        assert select.select([terminal], [], [], 60)[0], found.decode()
        try:
            found += os.read(terminal, 4096)
        except OSError:  # the program has ended
            break
    return found.decode()


def _in_foreground() -> None:
    """Give this process a terminal. Ctrl-C ends it, also where a shell ran the tests by ``&``."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """A shell over a warehouse, on a terminal of ten lines."""

    def __init__(self, folder: Path, **environment: str) -> None:
        env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "TERM": "xterm", "NO_COLOR": "1", **environment}
        self._here, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 80, 0, 0))
        command = [sys.executable, "-c", "from trinity.cli.main import app; app()", "shell", "-w", str(folder / "w")]
        self._shell = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True,
            preexec_fn=_in_foreground,
        )  # fmt: skip
        os.close(theirs)

    def until(self, text: str) -> str:
        """Return the output until a text appears."""
        return _shown(self._here, text)

    def type(self, text: str) -> None:
        r"""Type a text, which may contain Ctrl-C as ``\x03``."""
        os.write(self._here, text.encode())

    def end(self) -> str:
        """Type the line that quits, which also works before the next prompt, and return the rest of the output."""
        self.type("!quit\n")
        shown = _shown(self._here)
        self._shell.wait(timeout=60)
        os.close(self._here)
        return shown


def test_a_long_result_goes_through_the_pager(run: Callable[..., str], tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\nsed "s/^/paged /"\n')
    pager.chmod(0o755)
    shell = Terminal(tmp_path, PAGER=str(pager))
    shell.until("trinity> ")
    shell.type("select id from delta.default.orders order by id;\n")
    assert "paged" not in shell.until("2 rows selected")
    shell.type(" union all ".join(["select id from delta.default.orders"] * 4) + ";\n")
    shown = shell.until("8 rows selected")
    assert shown.count("paged | ") == 9
    shell.end()


@pytest.mark.full
def test_ctrl_c_ends_the_statement_and_not_the_shell(run: Callable[..., str], tmp_path: Path) -> None:
    """Ctrl-C also discards a statement whose first line is typed.

    DuckDB with one thread does not check for signals before a join ends.
    """
    rows = ", ".join(f"({number}, 'new')" for number in range(10, 3000))
    run(f"INSERT INTO delta.default.orders VALUES {rows};")
    shell = Terminal(tmp_path, OMP_NUM_THREADS="1")
    shell.until("trinity> ")
    shell.type("select nothing,\n")
    shell.until(". .> ")
    shell.type("\x03")
    shell.until("trinity> ")
    shell.type("select a.id from delta.default.orders a join delta.default.orders b on a.id = b.id and a.id = 1;\n")
    shell.until("1 row selected")  # all modules that a join needs are loaded, so that no import is interrupted
    joins = "".join(f" join delta.default.orders {name} on a.state = {name}.state" for name in "bcde")
    shell.type(f"select count(*) from delta.default.orders a{joins};\n")
    shell.until("0:00:02")  # the rows are read, and DuckDB joins
    shell.type("\x03")
    shell.until("interrupted")
    shell.type("select 40 + 2 as answer;\n")
    assert "| 42 " in shell.until("1 row selected")
    assert "Traceback" not in shell.end()

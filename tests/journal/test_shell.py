"""``trinity shell``: the seed's session with its printed output, commands, output formats, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from trinity.cli.main import app

SESSION = Path(__file__).parent / "session.txt"
RUNNER = CliRunner()

CREATE = """
CREATE TABLE hr.depts_journal (
  deptno SERIAL NOT NULL,
  version_number TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT CURRENT_TIMESTAMP,
  subsequent_version_number TIMESTAMP WITH TIME ZONE NULL DEFAULT NULL,
  department_name TEXT NOT NULL,
  PRIMARY KEY (deptno, version_number)
);"""


@pytest.fixture
def versions() -> str:
    return "TIMESTAMP"


@pytest.fixture
def model_file(model: dict[str, Any], postgres: psycopg.Connection[Any], tmp_path: Path) -> Path:
    """Write the seed's model to a file, and make the seed's journal."""
    postgres.execute(CREATE)
    path = tmp_path / "journalled-sql-rewriter-example/src/main/resources/myTestModel.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(model))
    return path


def shell(*arguments: str, given: str | None = None, code: int = 0) -> str:
    found = RUNNER.invoke(app, ["shell", *arguments], input=given)
    assert found.exit_code == code, found.output
    return found.stdout


def cells(text: str) -> list[str]:
    """Return the lines without seconds and without the widths of columns."""
    found = (re.sub(r"[\d.]+ seconds", "s", re.sub(r"-+", "-", re.sub(r" +", " ", line))) for line in text.splitlines())
    return [line for line in found if line]


def test_the_seeds_session(model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell prints what the seed shows for its statements, prompts included."""
    monkeypatch.chdir(tmp_path)
    typed, shown = SESSION.read_text().split("---- shown ----\n")
    found = cells(shell(given=typed))
    assert [line for line in found if line.startswith(("|", "+")) or "selected" in line] == cells(shown)
    assert [line for line in found if "affected" in line] == ["1 row affected (s)"] * 4


def test_commands(model_file: Path) -> None:
    text = """!tables
        !describe hr.depts
        !explain UPDATE hr.depts SET department_name = 'x'
        !autocommit off
        INSERT INTO hr.depts VALUES (1, 'a;b'),
          (2, 'two');
        !rollback
        INSERT INTO hr.depts VALUES (3, 'kept'); -- a comment; with a semicolon
        !commit
        !timing off
        UPDATE hr.depts SET department_name = 'new';
        !commit
        !archive hr.depts
        !help
        SELECT count(*) AS n FROM hr.depts;
        !quit
        SELECT 'never';"""
    found = "\n".join(cells(shell("-m", str(model_file), given=text)))  # other tests' tables make columns wider
    for expected in [
        "| hr | depts | JOURNALLED TABLE |", "| department_name | text |", "!archive TABLE", "| 1 |",
        "INSERT INTO hr.depts_journal", "pg_advisory_xact_lock", "2 rows affected", "1 row affected\n",
        "1 row filled, 0 rows dropped",
    ]:  # fmt: skip
        assert expected in found
    assert "never" not in found


def test_output_formats(model_file: Path) -> None:
    query = "SELECT 1 AS a, NULL AS b, 'x,\"y' AS c"
    assert shell("-m", str(model_file), "-e", query, "-o", "csv") == 'a,b,c\n1,,"x,""y"\n'
    assert json.loads(shell("-m", str(model_file), "-e", query, "-o", "json")) == [{"a": 1, "b": None, "c": 'x,"y'}]
    assert "| null |" in shell("-m", str(model_file), given="SELECT NULL AS b;")
    assert shell("-m", str(model_file), given="!outputformat csv\nSELECT 2 AS n;\n") == "n\n2\n"


def test_exit_codes(model_file: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("INSERT INTO hr.depts VALUES (1, 'x');\nSELECT nope FROM hr.depts;\nDELETE FROM hr.depts;")
    shell("-m", str(model_file), "-f", str(script), code=1)
    assert "1" in shell("-m", str(model_file), "-e", "SELECT count(*) FROM hr.depts", "-o", "csv")
    assert "| 1 " in shell("-m", str(model_file), given="SELECT nope;\n!nope\nSELECT count(*) FROM hr.depts;", code=1)
    shell("-m", str(tmp_path / "nowhere.json"), code=2)
    shell("-o", "xml", code=2)
    shell("-e", "SELECT 1", code=1)
    shell(given="!connect\n!connect jdbc:calcite:lex=JAVA\n", code=1)


def test_errors_say_what_is_wrong(model_file: Path) -> None:
    found = RUNNER.invoke(app, ["shell", "-m", str(model_file), "-e", "SELECT 1 FROM hr.emps"])
    assert found.exit_code == 1
    assert "TABLE_NOT_FOUND" in found.stderr
    assert "CREATE TABLE hr.emps" in found.stderr.replace("\n", " ")

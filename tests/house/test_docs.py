"""Every example of the README and of docs/ is executed, and prints what the page says."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from tests.support.google_server import GoogleServer
from tests.support.object_store import ObjectServer
from tests.support.paths import ROOT
from trinity.cli.main import app
from trinity.errors import CODES

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.fixture
def postgres(server: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Has libpq find the tests' server, without what a page makes."""
    for name, value in server.items():
        monkeypatch.setenv({"dbname": "PGDATABASE"}.get(name, f"PG{name.upper()}"), value)
    with psycopg.connect(autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS hr, shop CASCADE")
        connection.execute("DROP PUBLICATION IF EXISTS trinity")


@pytest.fixture
def bucket(object_server: ObjectServer, google_server: GoogleServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Makes the buckets of a page, and gives it the names that are the reader's own."""
    object_server.files.create_dir("lakehouse")
    google_server.stored.buckets["lakehouse"] = {}
    monkeypatch.setenv("GOOGLE_BASE_URL", google_server.options["endpoint"])
    monkeypatch.setenv("GOOGLE_ALLOW_HTTP", "true")
    options = object_server.options
    return {
        "endpoint": options["endpoint"],
        "key": options["access_key_id"],
        "secret": options["secret_access_key"],
        "key_file": google_server.options["service_account"],
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_examples(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    if page.name in ("journal.md", "cdc.md"):
        request.getfixturevalue("postgres")
    given = request.getfixturevalue("bucket") if page.name == "object-stores.md" else {}
    # without the fence's end, which doctest would take for output
    text = re.sub(r"^```\w*$", "", page.read_text(), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, given, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_the_first_example_runs_as_it_is_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text()
    found = re.search(r"```python\n(.*?)```\s+```text\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    exec(found[1], {})
    assert capsys.readouterr().out.strip() == found[2].strip()


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of a page print what it says, and its files have what ``cat`` shows."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    text = (ROOT / "docs/command-line.md").read_text()
    steps = [step for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL) for step in block.split("$ ")[1:]]
    assert len(steps) > 10
    for step in steps:
        line, _, printed = step.partition("\n")
        command, *given = shlex.split(line)
        if command == "cat":
            Path(*given).write_text(printed)
            continue
        done = CliRunner().invoke(app, given)
        assert doctest.OutputChecker().check_output(printed, done.output, FLAGS), (line, done.output, done.stderr)


def test_the_glossary_has_each_term_once_in_order() -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)[1:]
    terms = [term.lower().replace("-", " ") for term, _ in rows]
    assert len(terms) > 50
    assert terms == sorted(set(terms))
    rules = set(re.findall(r'<a id="(\w+)">', (ROOT / "docs/semantics.md").read_text()))
    cited = re.findall(r"semantics\.md#(\w+)", (ROOT / "docs/glossary.md").read_text())
    assert [rule for rule in cited if rule not in rules] == []


def test_every_code_has_its_row() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/errors.md").read_text(), re.MULTILINE)
    assert sorted(code for row in rows for code in re.findall(r"`(\w+)`", row)) == sorted(CODES)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"

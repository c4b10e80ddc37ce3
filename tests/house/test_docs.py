"""The pages: examples that need Spark or a server print what the page shows, and links and terms exist."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from docs.examples import FLAGS, Page, differences, pages, report
from docs.notebook import NOTEBOOKS
from docs.notebook import differences as notebook_differences
from docs.notebook import read as read_notebook
from docs.notebook import report as notebook_report
from tests.support.google_server import GoogleServer
from tests.support.object_store import ObjectServer
from tests.support.page_needs import buckets, postgres, without_spark
from tests.support.paths import ROOT
from tests.support.spark import drop_temp_views
from trinity.cli.main import app
from trinity.errors import CODES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
"""Pages; tests/local/test_pages.py runs those without Spark and servers."""


@pytest.fixture
def no_view_stays(spark: SparkSession) -> Iterator[None]:
    """Drop the views that a page has published: they would hide tables of later tests."""
    yield
    drop_temp_views(spark)


@pytest.mark.usefixtures("no_view_stays")
@pytest.mark.parametrize("page", [page for page in pages() if "spark" in page.needs], ids=lambda page: page.name)
def test_examples_with_spark(page: Page, spark: SparkSession, request: pytest.FixtureRequest) -> None:
    if "postgres" in page.needs:
        with postgres(request.getfixturevalue("server")):
            different = differences(page, {})
    else:
        different = differences(page, {})
    assert different == [], report(page, different)


@pytest.mark.usefixtures("no_view_stays", "spark")
def test_notebook_of_spark() -> None:
    (notebook,) = (found for found in map(read_notebook, NOTEBOOKS) if found.needs)
    different = notebook_differences(notebook)
    assert different == [], notebook_report(notebook, different)


@pytest.mark.full
@pytest.mark.usefixtures("no_view_stays")
@pytest.mark.parametrize("page", [page for page in pages() if page.examples_with_spark], ids=lambda page: page.name)
def test_examples_in_tabs_of_spark(page: Page, spark: SparkSession) -> None:
    different = differences(page, {}, spark=True)
    assert different == [], report(page, different)


@pytest.mark.parametrize("page", [page for page in pages() if page.needs == {"bucket"}], ids=lambda page: page.name)
def test_examples_in_buckets(page: Page, object_server: ObjectServer, google_server: GoogleServer) -> None:
    with buckets(object_server, google_server) as given, without_spark():
        different = differences(page, given)
    assert different == [], report(page, different)


def test_all_that_pages_need_is_known() -> None:
    known = [frozenset(), {"spark"}, {"spark", "postgres"}, {"bucket"}]
    assert [page.name for page in pages() if page.needs not in known] == []


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of a page print what the page shows, and its files have the contents that ``cat`` shows."""
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
    rows = re.findall(
        r'^\| (?:<a id="[\w-]+"></a>)?(.+?) \| (.+?) \|$', (ROOT / "docs/glossary.md").read_text(), re.MULTILINE
    )
    terms = [term.lower().replace("-", " ") for term, _ in rows[1:]]
    assert len(terms) > 50
    assert terms == sorted(set(terms))
    rules = set(re.findall(r'<a id="(\w+)">', (ROOT / "docs/semantics.md").read_text()))
    cited = re.findall(r"semantics\.md#(\w+)", (ROOT / "docs/glossary.md").read_text())
    assert [rule for rule in cited if rule not in rules] == []


def test_every_code_has_its_row() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/errors.md").read_text(), re.MULTILINE)
    assert sorted(code for row in rows for code in re.findall(r"`(\w+)`", row)) == sorted(CODES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"

"""The forms of a report: the same results in each."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from trinity_conformance import CheckResult, NonConformance, Report, Tally
from trinity_conformance.command import cli
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.playing.traces import Compact, History, Upsert
from trinity_conformance.playing.words import story
from trinity_conformance.report.comparison import changes, regressions
from trinity_conformance.report.forms import FORMS, summarise_on_github, write
from trinity_conformance.report.results import Results, load
from trinity_conformance.suite.checks import check_of

LONG = "x" * 40
HISTORY = History(
    Shape((Column("k", "int", nullable=False), Column("v", "string")), ("k",)),
    (Upsert((((1, "a<b"), (2, LONG)), ((3, None),)), txn=("loader", 7)), Compact()),
)


def failure() -> NonConformance:
    found = NonConformance("read-equality", "expected <a> | `b`, read \x00 & none")
    found.history, found.step = HISTORY, 1
    return found


@pytest.fixture
def results() -> Results:
    checks = [
        CheckResult(check_of("read-equality"), 4, failures=[failure()]),
        CheckResult(check_of("idempotence"), 5),
        CheckResult(check_of("split"), 1, {"several-files": (1, 3)}),
        CheckResult(check_of("row-change"), lacking=True),
    ]
    return Results.of(Report("acme", "smoke", 3, checks, Tally(histories=2, rows=3)), spark=False)


class _Page(HTMLParser):
    """A parser that collects tags, and checks that they close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen |= {tag, *(name for name, _ in attrs)}
        self.open += [] if tag == "meta" else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_json_comes_back(results: Results, tmp_path: Path) -> None:
    write(results, tmp_path / "r.json")
    assert load(tmp_path / "r.json") == results
    [found] = json.loads((tmp_path / "r.json").read_text())["checks"][0]["findings"]
    assert History.from_json(json.dumps(found["trace"])) == HISTORY


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 1}'])
def test_a_file_that_is_no_result_is_wrong_usage(content: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(content)
    done = CliRunner().invoke(cli.app, ["report", str(tmp_path / "r.json")])
    assert (done.exit_code, "is not the JSON of a run" in done.output) == (2, True), done.output


def test_junit_has_a_case_for_each_check(results: Results) -> None:
    suites = ElementTree.fromstring(FORMS[".xml"](results))
    cases = {case.attrib["name"]: [child.tag for child in case] for case in suites.iter("testcase")}
    assert cases == {
        "read-equality": ["failure"],
        "idempotence": [],
        "split": ["skipped"],
        "row-change": ["skipped"],
    }
    assert (suites.attrib["tests"], suites.attrib["failures"], suites.attrib["skipped"]) == ("4", "1", "2")
    [text] = [element.text for element in suites.iter("failure")]
    assert text is not None
    assert "expected <a>" in text
    assert f"replay {HISTORY.id}" in text


def test_the_page_is_whole_and_needs_no_script(results: Results) -> None:
    page = _Page()
    page.feed(FORMS[".html"](results))
    assert page.open == []
    assert not page.seen & {"script", "link", "img", "src", "href", "onclick"}
    assert "expected <a> | `b`" in page.text
    for outcome in results.checks:
        assert outcome.id in page.text
        assert outcome.status in page.text


def test_markdown_has_each_check_and_the_finding(results: Results) -> None:
    text = FORMS[".md"](results)
    assert "| ✗ failed | read-equality | L1 " in text
    assert "| ✓ passed | idempotence | L4 | 5 |" in text
    assert "saw several-files only 1 of 3 times" in text
    assert "expected <a> | `b`" in text


def test_the_badge_says_the_verdict(results: Results) -> None:
    badge = ElementTree.fromstring(FORMS[".svg"](results))
    assert "does not conform (1 of 4)" in "".join(badge.itertext())


def test_github_gets_a_summary(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    summarise_on_github(results)
    (tmp_path / "summary.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    summarise_on_github(results)
    assert (tmp_path / "summary.md").read_text() == "before\n" + FORMS[".md"](results)


def test_the_command_writes_and_shows_an_earlier_run(results: Results, tmp_path: Path) -> None:
    write(results, tmp_path / "r.json")
    shown = CliRunner().invoke(cli.app, ["report", str(tmp_path / "r.json")])
    assert shown.output == FORMS[".txt"](results)
    assert "acme does not conform: smoke without Spark, seed 3" in shown.output
    done = CliRunner().invoke(cli.app, ["report", str(tmp_path / "r.json"), str(tmp_path / "r.html")])
    assert (done.exit_code, done.output) == (0, "")
    assert (tmp_path / "r.html").read_text() == FORMS[".html"](results)


def test_a_comparison_names_what_got_worse(results: Results, tmp_path: Path) -> None:
    read, idempotence, split, _ = results.checks
    good = replace(results, checks=(replace(read, status="passed"), idempotence, replace(split, status="passed")))
    assert regressions(good, results) == ["read-equality: passed, now failed", "split: passed, now inconclusive"]
    assert regressions(good, replace(good, checks=good.checks[1:])) == ["read-equality: passed, now absent"]
    later = replace(results, versions={**results.versions, "pyarrow": "99"}, budget="deep")
    assert regressions(results, later) == []
    was = results.versions["pyarrow"]
    assert {"budget: smoke, now deep", f"version of pyarrow: {was}, now 99"} < set(changes(results, later))
    for name, value in (("a", good), ("b", results)):
        write(value, tmp_path / f"{name}.json")
    paths = [str(tmp_path / f"{name}.json") for name in "ab"]
    assert CliRunner().invoke(cli.app, ["compare", *paths]).exit_code == 1
    assert CliRunner().invoke(cli.app, ["compare", *reversed(paths)]).exit_code == 1  # row-change went
    assert CliRunner().invoke(cli.app, ["compare", paths[0], paths[0]]).exit_code == 0


def test_steps_are_told_in_words_and_whole_on_request() -> None:
    text = story(HISTORY)
    assert (
        "upsert 3 rows of Arrow data in 2 partitions as transaction 7 of 'loader', (k, v): "
        "(1, a<b) (2, xxxxxxxxxxxxx...) | (3, NULL)" in text
    )
    assert "  1  compact the table into its base" in text
    assert "All steps are executed by Spark." in text
    assert LONG in story(HISTORY, whole=True)

"""The documentation's site: it is built without a warning, every link has a target, and it loads nothing from other
servers.

It has a folder for each release.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import pytest

from docs.index_page import index_page
from docs.site import ALL, SITE, build, in_nav, pages
from docs.site_versions import list_versions
from tests.support.paths import ROOT
from trinity import __version__

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
"""(tag, attribute) whose target a browser loads."""
STATED = {"canonical", "alternate", "next", "prev"}
"""Values of ``rel`` of a <link> whose target it does not load."""


class Found(NamedTuple):
    """A link of a page, or the address of a file that it loads."""

    loaded: bool
    target: str


class Html(HTMLParser):
    """The references of a page of the site, and the anchors that it defines."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.found: list[Found] = []
        self.classes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self.classes |= set(given.get("class", "").split())
        for name, value in given.items():
            if name in ("href", "src", "data") and given.get("rel") not in STATED:
                self.found.append(Found((tag, name) in LOADED, value))


@pytest.fixture(scope="module")
def site() -> dict[Path, Html]:
    build()
    return {page: Html(page.read_text()) for page in SITE.rglob("*.html")}


def test_every_page_is_in_the_navigation_once() -> None:
    assert sorted(in_nav()) == sorted(place.as_posix() for place in pages().values())


def test_every_page_is_built(site: dict[Path, Html]) -> None:
    names = (place.with_name("index.md") if place.name == "README.md" else place for place in pages().values())
    assert {SITE / name.with_suffix(".html") for name in names} <= set(site)


def test_links_and_anchors_lead_somewhere(site: dict[Path, Html]) -> None:
    assert sorted(set(broken(site))) == []


def broken(site: dict[Path, Html]) -> Iterator[str]:
    for page, html in site.items():
        for _, target in html.found:
            place, _, anchor = unquote(target).partition("#")
            if page.name == "404.html" or re.match(r"\w+:", target):
                continue
            file = (page.parent / place.partition("?")[0]).resolve() if place else page
            file = file / "index.html" if file.is_dir() else file
            if not file.is_file() or (anchor and file.suffix == ".html" and anchor not in site[file].ids):
                yield f"{page.relative_to(SITE)}: {target}"


def test_the_readme_of_a_package_index_links_to_the_site(site: dict[Path, Html]) -> None:
    readme = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(https://docs\.example/([^)]*)\)", index_page(readme, "https://docs.example/"))
    assert len(links) > 20
    for link in links:
        place, _, anchor = link.partition("#")
        assert (SITE / place).is_file(), link
        assert not anchor or anchor in site[SITE / place].ids, link


def test_without_a_site_it_has_no_links() -> None:
    shown = index_page((ROOT / "README.md").read_text(), None)
    assert re.findall(r"\]\((?!\w+:)", shown) == []
    assert "Writers append row versions to a log." in shown


def test_no_page_asks_another_server(site: dict[Path, Html]) -> None:
    for page, html in site.items():
        assert [found.target for found in html.found if found.loaded and "//" in found.target] == [], page
        assert "mermaid" not in html.classes, page  # the theme would load a library to draw it
    for style in SITE.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)]*", style.read_text()) == [], style


def test_the_version_is_shown_and_others_can_be_selected(site: dict[Path, Html]) -> None:
    page = (SITE / "index.html").read_text()
    assert f"Trinity {__version__}" in page
    assert re.search(r'"version": *\{"provider": *"mike"\}', page)
    assert __version__ in [entry["version"] for entry in json.loads((ALL / "versions.json").read_text())]


def test_releases_are_listed_the_newest_first_which_the_site_leads_to(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0", "0.11.0rc1", "assets"):
        (tmp_path / name).mkdir()
    list_versions(tmp_path)
    listed = [(entry["version"], entry["aliases"]) for entry in json.loads((tmp_path / "versions.json").read_text())]
    assert listed == [("0.10.0", ["latest"]), ("0.9.0", []), ("0.11.0rc1", [])]
    assert Html((tmp_path / "index.html").read_text()).found == [Found(False, "0.10.0/index.html")]

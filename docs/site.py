"""``python -m docs.site`` builds the documentation of this release in build/site/<release>, by Zensical.

Its pages are those of docs/, its notebooks among them, and those of the rest of the repository to which they link. A
warning is an error. Folders of other releases stay, and all of them are listed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from docs.notebook import NOTEBOOKS, as_page
from docs.notebook import read as read_notebook
from docs.site_versions import list_versions
from trinity import __version__

ROOT: Final = Path(__file__).parent.parent
DOCS: Final = ROOT / "docs"
SOURCE: Final = ROOT / "build/site-source"
ALL: Final = ROOT / "build/site"
SITE: Final = ALL / __version__
_LINK: Final = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")
_FENCED: Final = re.compile(r"^( *`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)


def pages() -> dict[Path, Path]:
    """Return page of the repository -> its path in the site."""
    found = {page: page.relative_to(DOCS) for page in sorted(DOCS.rglob("*.md"))}
    found |= {notebook: notebook.relative_to(DOCS).with_suffix(".md") for notebook in NOTEBOOKS}
    waiting = list(found)
    while waiting:
        for linked in _linked(waiting.pop()):
            if linked.suffix == ".md" and linked not in found and linked.is_file():
                found[linked] = linked.relative_to(ROOT)
                waiting.append(linked)
    found.pop(ROOT / "README.md", None)  # docs/index.md is what the site has for it
    return found


def in_nav() -> list[str]:
    """Return the pages that the navigation names."""
    return re.findall(r"\S+\.md$", (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2], re.MULTILINE)


def build() -> None:
    """Make the site of this release anew, and list the releases.

    Raises:
        CalledProcessError: with Zensical's warnings.
    """
    for old in (SOURCE, SITE):
        shutil.rmtree(old, ignore_errors=True)
    places = pages()
    for page, place in places.items():
        (SOURCE / place).parent.mkdir(parents=True, exist_ok=True)
        (SOURCE / place).write_text(_with_links(page, places))
    for picture in DOCS.rglob("*.svg"):
        (SOURCE / picture.relative_to(DOCS)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, SOURCE / picture.relative_to(DOCS))
    shutil.copy(DOCS / "site.css", SOURCE)
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--strict", "--clean"]
    named = {**os.environ, "TRINITY": f"Trinity {__version__}", "TRINITY_SITE": str(SITE.relative_to(ROOT))}
    subprocess.run(command, cwd=ROOT, env=named, check=True, capture_output=True, text=True)
    list_versions(ALL)


def _linked(page: Path) -> Iterator[Path]:
    for link in _LINK.finditer(_FENCED.sub("", _text(page))):
        if "://" not in link[2]:
            yield Path(os.path.normpath(page.parent / link[2]))


def _with_links(page: Path, places: dict[Path, Path]) -> str:
    """Return a page's text with links to paths of the site, and without links to pages that are not in it."""

    def moved(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / link[2]))
        if "://" in link[2] or target.suffix == ".svg":
            return link[0]
        if target == ROOT / "README.md":
            target = DOCS / "index.md"
        if target not in places:
            return link[1]
        return f"[{link[1]}]({os.path.relpath(places[target], places[page].parent)}{link[3] or ''})"

    return _LINK.sub(moved, _text(page))


def _text(page: Path) -> str:
    return as_page(read_notebook(page)) if page in NOTEBOOKS else page.read_text()


def main() -> int:
    """Make the site, and say what Zensical warns of."""
    try:
        build()
    except subprocess.CalledProcessError as error:
        print(error.stdout, error.stderr, file=sys.stderr)
        return 1
    print(SITE / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())

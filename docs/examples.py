"""``python -m docs.examples [--write] [--spark] PAGE…`` runs the examples of pages and says where they print otherwise.

The ``python`` blocks of a page are one script, run from top to bottom in an empty folder. The ``text`` block after a
block is what it prints; ``--write`` writes it. Of a set of tabs the first is run, or with ``--spark`` the tab of that
name, where the set has one; on a page of Spark, every one.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
_FENCE: Final = re.compile(r"^( *`{3,})(\w*)")
_TAB: Final = re.compile(r'^( *)=== "(.*)"')
SPARK: Final = "Spark"
"""The tab that shows a step with Spark."""
_NEEDS: Final = re.compile(r"^<!-- examples: (.*) -->$", re.MULTILINE)
FLAGS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Example:
    """A block of Python.

    Attributes:
        line: the number of its first line in the page, from 0.
        end: the number of the line after it.
        margin: the indentation of its lines.
        code: its text.
        prints: its output, as the page shows it.
        until: the line after its output.
    """

    line: int
    end: int
    margin: str
    code: str
    prints: str
    until: int


@dataclass(frozen=True)
class Page:
    """A page of Markdown.

    Attributes:
        path: its path.
        text: its text.
        needs: the servers that its examples need: ``spark``, ``postgres``, ``bucket``.
    """

    path: Path
    text: str
    needs: frozenset[str]

    @property
    def name(self) -> str:
        """The path from the root of the repository."""
        return Path(os.path.relpath(self.path, ROOT)).as_posix()

    @property
    def examples(self) -> list[Example]:
        """The blocks that are run."""
        return list(_examples(self.text.splitlines(), self._left_out("")))

    @property
    def examples_with_spark(self) -> list[Example]:
        """The blocks that are run in place of these where there is Spark; none for a page without such tabs."""
        lines, left_out = self.text.splitlines(), self._left_out(SPARK)
        return [] if left_out == self._left_out("") else list(_examples(lines, left_out))

    def _left_out(self, title: str) -> frozenset[int]:
        if "spark" in self.needs:
            return frozenset()
        return frozenset(line for tabs in _tabs(self.text.splitlines()) for line in _others(tabs, title))


def read(path: Path) -> Page:
    """Read a page."""
    text = path.read_text()
    found = _NEEDS.search(text)
    return Page(path.absolute(), text, frozenset(found[1].split() if found else ()))


def pages() -> list[Page]:
    """Return the pages with examples: README and the pages of docs that are not generated."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    written = [read(path) for path in found if not path.is_relative_to(ROOT / "docs/api")]
    return [page for page in written if page.examples]


def run(page: Page, given: Mapping[str, Any], *, spark: bool = False) -> Iterator[tuple[Example, str]]:
    """Run the examples in an empty folder, and yield each with its output.

    Args:
        page: the page.
        given: names that readers replace by their own, with their values.
        spark: run the tabs of Spark.
    """
    names = {"__name__": "__main__", **given}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for example in page.examples_with_spark if spark else page.examples:
            printed = io.StringIO()
            # empty lines in front: a traceback shows the lines of the page
            code = compile("\n" * example.line + example.code, str(page.path), "exec", dont_inherit=True)
            with contextlib.redirect_stdout(printed):
                exec(code, names)
            yield example, printed.getvalue()


def differences(page: Page, given: Mapping[str, Any], *, spark: bool = False) -> list[tuple[Example, str]]:
    """Run a page, and return the examples whose output differs from the page, with their output."""
    same = doctest.OutputChecker().check_output
    return [
        (example, found) for example, found in run(page, given, spark=spark) if not same(example.prints, found, FLAGS)
    ]


def report(page: Page, different: list[tuple[Example, str]]) -> str:
    """Return the difference between the output and the page."""
    return "\n".join(
        f"{page.name}:{example.line + 1} prints\n{_shown(found)}\nand the page says\n{_shown(example.prints)}"
        for example, found in different
    )


def _shown(text: str) -> str:
    return indent(text.rstrip("\n"), "  ")


def write(page: Page, different: list[tuple[Example, str]]) -> None:
    """Write into a page what its examples print."""
    lines = page.text.splitlines()
    for example, found in reversed(different):
        kept = [line.rstrip() for line in found.rstrip().splitlines()]
        block = ["", "```text", *kept, "```"] if kept else []
        lines[example.end : example.until] = [f"{example.margin}{line}".rstrip() for line in block]
    page.path.write_text("\n".join(lines) + "\n")


def _examples(lines: list[str], left_out: frozenset[int]) -> Iterator[Example]:
    for at, end in _blocks(lines):
        fence = _FENCE.match(lines[at])
        if fence and fence[2] == "python" and at not in left_out:
            yield _example(lines, at, end)


def _blocks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield (first line, line after the last) of each line, and of each block of code as a whole."""
    at = 0
    while at < len(lines):
        end = _end(lines, at) if _FENCE.match(lines[at]) else at + 1
        yield at, end
        at = end


def _tabs(lines: list[str]) -> Iterator[dict[str, range]]:
    """Yield title -> lines of each set of tabs."""
    found: dict[str, range] = {}
    title, start, margin = "", 0, -1
    for at, _ in [*_blocks(lines), (len(lines), 0)]:
        line = lines[at] if at < len(lines) else "end"
        tab = _TAB.match(line)
        if margin >= 0 and line.strip() and len(line) - len(line.lstrip()) <= margin:
            found[title] = range(start, at)
            if tab is None or len(tab[1]) < margin:
                yield found
                found, margin = {}, -1
        if tab and (margin < 0 or len(tab[1]) == margin):
            title, start, margin = tab[2], at, len(tab[1])


def _others(tabs: dict[str, range], title: str) -> Iterator[int]:
    """Return the lines of all tabs but that of a title, or but the first one."""
    chosen = title if title in tabs else next(iter(tabs))
    return (line for name, lines in tabs.items() if name != chosen for line in lines)


def _end(lines: list[str], fence: int) -> int:
    """Return the line after the block that a fence opens."""
    opened = _FENCE.match(lines[fence])
    assert opened is not None
    return next(at for at in range(fence + 1, len(lines)) if lines[at].rstrip() == opened[1]) + 1


def _example(lines: list[str], fence: int, end: int) -> Example:
    margin = lines[fence][: lines[fence].index("`")]
    code = dedent("\n".join(lines[fence + 1 : end - 1])) + "\n"
    following = next((at for at in range(end, len(lines)) if lines[at].strip()), len(lines))
    if following == len(lines) or lines[following] != f"{margin}```text":
        return Example(fence + 1, end, margin, code, "", end)
    until = _end(lines, following)
    return Example(fence + 1, end, margin, code, dedent("\n".join(lines[following + 1 : until - 1])) + "\n", until)


def main(arguments: list[str]) -> int:
    """Run the pages that are named, those without Spark first.

    Returns:
        How many differ.
    """
    from tests.support.page_needs import provided  # with the servers of the tests

    named = [read(Path(name)) for name in arguments if not name.startswith("--")]
    spark = "--spark" in arguments
    different = 0
    for page in sorted(named, key=lambda page: "spark" in page.needs):
        with provided(page.needs | {"spark"} if spark else page.needs) as given:
            found = differences(page, given, spark=spark)
        different += bool(found)
        print(report(page, found) if found else f"{page.name} prints what it says")
        if "--write" in arguments:
            write(page, found)
    return different


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

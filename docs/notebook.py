"""``python -m docs.notebook [--write] FILE…`` runs notebooks and says which cells put out something else.

The cells of a notebook are one script, run in an empty folder. A cell puts out what it prints, then the value of its
last expression, as in Jupyter. ``--write`` writes that into the file. A notebook of Spark says so in its metadata.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

NOTEBOOKS: Final = sorted((Path(__file__).parent / "notebooks").glob("*.ipynb"))

Cell = dict[str, Any]


@dataclass(frozen=True)
class Notebook:
    """A Jupyter notebook.

    Attributes:
        path: its path.
        content: the content of the file.
    """

    path: Path
    content: dict[str, Any]

    @property
    def needs(self) -> frozenset[str]:
        """The servers that its cells need: ``spark``."""
        return frozenset(self.content["metadata"].get("needs", ()))

    @property
    def code(self) -> list[Cell]:
        """The cells that are run."""
        return [cell for cell in self.content["cells"] if cell["cell_type"] == "code"]


def read(path: Path) -> Notebook:
    """Read a notebook."""
    return Notebook(path, json.loads(path.read_text()))


def differences(notebook: Notebook) -> list[tuple[Cell, list[Cell]]]:
    """Run a notebook, and return the cells whose output differs from the file, with their output."""
    return [(cell, found) for cell, found in _run(notebook) if _text(found) != _text(cell["outputs"])]


def report(notebook: Notebook, different: list[tuple[Cell, list[Cell]]]) -> str:
    """Return the difference between the output and the notebook."""
    return "\n".join(
        f"{notebook.path.name}: the cell\n{''.join(cell['source'])}\nputs out\n{_text(found)}\nand the file has\n"
        f"{_text(cell['outputs'])}"
        for cell, found in different
    )


def write(notebook: Notebook) -> None:
    """Run a notebook, and write the output of its cells into its file."""
    for number, (cell, found) in enumerate(_run(notebook), 1):
        cell["outputs"] = found
        cell["execution_count"] = number
    notebook.path.write_text(json.dumps(notebook.content, indent=1, ensure_ascii=False) + "\n")


def as_page(notebook: Notebook) -> str:
    """Return a notebook as a page of Markdown."""
    return "\n".join(_paragraph(cell) for cell in notebook.content["cells"])


def _paragraph(cell: Cell) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return f"{source}\n"
    put_out = _text(cell["outputs"]).rstrip()
    return f"```python\n{source}\n```\n" + (f"\n```text\n{put_out}\n```\n" if put_out else "")


def _run(notebook: Notebook) -> Iterator[tuple[Cell, list[Cell]]]:
    """Run the cells in an empty folder, and yield each with its output."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number, cell in enumerate(notebook.code, 1):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                value = _run_cell("".join(cell["source"]), str(notebook.path), names)
            yield cell, list(_outputs(printed.getvalue(), value, number))


def _run_cell(source: str, name: str, names: dict[str, Any]) -> Any:
    """Run a cell, and return the value of its last line if that is an expression."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    return eval(compile(ast.Expression(last.value), name, "eval"), names) if isinstance(last, ast.Expr) else None


def _outputs(printed: str, value: Any, number: int) -> Iterator[Cell]:
    if printed:
        yield {"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}
    if value is not None:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        html = value._repr_html_() if hasattr(value, "_repr_html_") else None
        if html:
            data = {"text/html": html.splitlines(keepends=True), **data}
        yield {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}


def _text(outputs: list[Cell]) -> str:
    """Return the text of outputs, without their HTML, which differs between releases of libraries."""
    return "\n".join("".join(each["data"]["text/plain"] if "data" in each else each["text"]) for each in outputs)


def main(arguments: list[str]) -> int:
    """Run the notebooks that are named.

    Returns:
        How many differ.
    """
    from tests.support.page_needs import provided

    different = 0
    for notebook in (read(Path(name).absolute()) for name in arguments if not name.startswith("--")):
        with provided(notebook.needs):
            if "--write" in arguments:
                write(notebook)
                continue
            found = differences(notebook)
        different += bool(found)
        print(report(notebook, found) if found else f"{notebook.path.name} puts out what it has")
    return different


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

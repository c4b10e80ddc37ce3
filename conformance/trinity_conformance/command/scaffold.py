"""Write a new adapter from a template that conforms: a plugin of the tests under another name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from trinity.errors import TrinityError

TEMPLATES: Final[Mapping[str, str]] = {"files": "acme", "catalog": "ledger"}
"""Kind of format -> its template: each version a list of files, or a commit protocol of its own over a database."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_KINDS: Final = frozenset({".md", ".py", ".toml", ".typed"})
"""Extensions of the files of a template; a folder in which the template was run has further files."""


def _template(kind: str) -> Path:
    """Return the folder of a template: the one in the wheel, or in a checkout the one of the tests."""
    packed = Path(__file__).parent.parent / "template"
    plugins = packed if packed.is_dir() else Path(__file__).parents[3] / "tests/plugins"
    return plugins / TEMPLATES[kind]


def scaffold(name: str, folder: Path, kind: str = "files") -> list[Path]:
    """Write an adapter to a folder.

    Args:
        name: name of the format: what ``connector`` names in a catalog's settings.
        folder: the adapter's folder; made when missing.
        kind: one of :data:`TEMPLATES`.

    Returns:
        the files, sorted.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a name that is no lower-case Python name, or a folder that holds files.
    """
    if not _NAME.fullmatch(name):
        raise TrinityError(
            "INVALID_ARGUMENTS", f"'{name}' cannot name a format: use lower-case letters, digits and _, such as 'acme'."
        )
    if folder.is_dir() and any(folder.iterdir()):
        raise TrinityError("INVALID_ARGUMENTS", f"Folder '{folder}' holds files already; name another with --folder.")
    source, word = _template(kind), TEMPLATES[kind]
    found = [p for p in sorted(source.rglob("*")) if p.is_file() and p.suffix in _KINDS]
    made = [
        (folder / _renamed(str(p.relative_to(source)), word, name), _renamed(p.read_text(), word, name)) for p in found
    ]
    return sorted(_written(path, text) for path, text in made)


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _renamed(text: str, word: str, name: str) -> str:
    """Return a text with the template's word replaced: ``Acme`` in class names and prose, ``acme`` elsewhere."""
    title = "".join(part.capitalize() for part in name.split("_"))
    return text.replace(word.capitalize(), title).replace(word, name)

"""Makes a new adapter from a template that conforms as it is: the Acme plugin of the tests under another name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from trinity.errors import TrinityError

__all__ = ["scaffold", "template"]

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_KINDS: Final = frozenset({".md", ".py", ".toml", ".typed"})
"""Endings of the files of a template; a folder in which it was run holds others too."""


def template() -> Path:
    """Return the folder of the template: in the wheel that of the package, in a checkout that of the tests."""
    packed = Path(__file__).parent.parent / "template"
    return packed if packed.is_dir() else Path(__file__).parents[3] / "tests/plugins/acme"


def scaffold(name: str, folder: Path) -> list[Path]:
    """Write an adapter to a folder.

    Args:
        name: name of the format: what ``connector`` names in a catalog's settings.
        folder: the adapter's folder; made when missing.

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
    found = [p for p in sorted(template().rglob("*")) if p.is_file() and p.suffix in _KINDS]
    return sorted(_written(folder / _renamed(str(p.relative_to(template())), name), p.read_text(), name) for p in found)


def _written(path: Path, text: str, name: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_renamed(text, name), encoding="utf-8")
    return path


def _renamed(text: str, name: str) -> str:
    """Return a text with the template's name replaced: ``Acme`` in class names and prose, ``acme`` elsewhere."""
    title = "".join(part.capitalize() for part in name.split("_"))
    return text.replace("Acme", title).replace("acme", name)

"""Names as folders: one reversible spelling, by which no name leaves its parent (N1).

Letters, digits, blanks and most signs stand for themselves. What a disk, a URI, a reader of partitioned folders or a
pattern would take for something else is ``~`` and two hexadecimal digits for each of its UTF-8 bytes.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable
from typing import Final

from trinity.errors import TrinityError
from trinity.names import checked_name
from trinity.storage.errors import AlreadyExists
from trinity.storage.local_folders import folders_in
from trinity.storage.location import Location
from trinity.storage.store import ObjectStore

__all__ = ["OWN_FOLDER", "NamedFolders", "escaped", "folder_name", "name_of", "own_folder", "unescaped"]

_MOST: Final = 255
"""Bytes of a folder's name that every usual disk takes."""
_SHORTENED: Final = "~~"
_DIGITS: Final = 32
_OWN: Final = 16
OWN_FOLDER: Final = re.compile(rf"(?P<name>.+)-[0-9a-f]{{{_OWN}}}")
"""A folder as :func:`own_folder` spells it."""
_SPECIAL: Final = re.compile(
    r'^[._ ]|[. ]\Z|[\x00-\x1f"#%*+,/:;<=>?@\[\\\]^`{|}~\x7f-\xa0'
    # marks and syllable parts that some disks join with the letter before them, blanks, signs without a width
    r"\u0300-\u036f\u1100-\u11ff\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3099\u309a\ufeff\ufff0-\uffff]"
)
_ESCAPES: Final = re.compile(r"(?:~[0-9a-f]{2})+")
LONG_NAMES: Final = "_trinity/names"


def escaped(text: str, special: re.Pattern[str]) -> str:
    """The text with ``~xx`` for each byte of what is special, which has to include ``~``."""
    return special.sub(lambda found: "".join(f"~{byte:02x}" for byte in found[0].encode()), text)


def unescaped(text: str) -> str:
    """The text that :func:`escaped` was given. Raises UnicodeDecodeError for a text that it never returned."""
    return _ESCAPES.sub(lambda found: bytes.fromhex(found[0].replace("~", "")).decode(), text)


def folder_name(name: str) -> str:
    """The folder of a schema or table within its parent's, the same for every case of the name.

    A spelling of more than 255 bytes is cut, and ends in a digest of the name.

    Raises:
        TrinityError: INVALID_ARGUMENTS for what cannot name anything (N1).
    """
    lower = checked_name(name.lower(), "Schema or table")
    spelled = escaped(lower, _SPECIAL)
    if len(spelled.encode()) <= _MOST:
        return spelled
    digest = hashlib.sha256(lower.encode()).hexdigest()[:_DIGITS]
    start = spelled.encode()[: _MOST - _DIGITS - len(_SHORTENED)].decode(errors="ignore")
    return re.sub("~[0-9a-f]?$", "", start) + _SHORTENED + digest


def own_folder(name: str) -> str:
    """A folder for a schema or table that no other one had before it, nor gets after it. Raises INVALID_ARGUMENTS."""
    return f"{folder_name(name)}-{uuid.uuid4().hex[:_OWN]}"


def name_of(folder: str) -> str | None:
    """The name that a folder is spelled by; None where it ends in a digest, or where no name has this folder."""
    try:
        name = unescaped(folder)
        return name if folder_name(name) == folder else None
    except (UnicodeDecodeError, TrinityError):
        return None


class NamedFolders:
    """Folders by their names, in the folders below one root.

    Names whose spelling ends in a digest are kept in the root, one file each, by that digest: what a file says stays
    true for ever, so that it may outlive the folder.

    Args:
        root: the folder of the catalog.
    """

    def __init__(self, root: Location) -> None:
        self.root = root
        self._store = ObjectStore(root)

    def place(self, *names: str) -> Location:
        """The folder of a schema, or of a schema's table. Raises INVALID_ARGUMENTS."""
        return self.root.join(*map(folder_name, names))

    def keep(self, name: str) -> None:
        """Sees to it that the name will be listed, before its folder is made."""
        folder = folder_name(name)
        if _SHORTENED in folder:
            try:
                self._store.put_if_absent(f"{LONG_NAMES}/{folder[-_DIGITS:]}", name.lower().encode(), commits=False)
            except AlreadyExists:  # by an earlier folder of that name
                return

    def names(self, parent: Location, chosen: Callable[[Location], bool]) -> list[str]:
        """Names of the chosen folders in a parent, sorted; what no name stands for is left out."""
        found = [self._name(folder) for folder in folders_in(parent) if chosen(parent.join(folder))]
        return sorted(name for name in found if name is not None)

    def _name(self, folder: str) -> str | None:
        if _SHORTENED not in folder:
            return name_of(folder)
        try:
            kept = self._store.get(f"{LONG_NAMES}/{folder[-_DIGITS:]}").decode()
        except (FileNotFoundError, TrinityError, UnicodeDecodeError):
            return None
        return kept if folder_name(kept) == folder else None

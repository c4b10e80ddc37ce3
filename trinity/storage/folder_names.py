"""Names as folders: one reversible spelling, by which no name leaves its parent (N1); and the errors of names.

Letters, digits, blanks and most other characters stay as they are. Characters with a meaning for a disk, a URI, a
reader of partitioned folders or a pattern become ``~`` and two hexadecimal digits for each of their UTF-8 bytes.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Sequence
from typing import Final

from trinity.errors import TrinityError
from trinity.names import checked_name
from trinity.storage.errors import AlreadyExists
from trinity.storage.local_folders import folders_in
from trinity.storage.location import Location
from trinity.storage.store import ObjectStore

_MOST: Final = 255
"""Bytes that every usual disk allows in a folder's name."""
_SHORTENED: Final = "~~"
_DIGITS: Final = 32
_OWN: Final = 16
OWN_FOLDER: Final = re.compile(rf"(?P<name>.+)-[0-9a-f]{{{_OWN}}}")
"""A folder name that :func:`own_folder` made."""
_SPECIAL: Final = re.compile(
    r'^[._ ]|[. ]\Z|[\x00-\x1f"#%*+,/:;<=>?@\[\\\]^`{|}~\x7f-\xa0'
    # marks and syllable parts that some disks join with the letter before them, blanks, characters without width
    r"\u0300-\u036f\u1100-\u11ff\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3099\u309a\ufeff\ufff0-\uffff]"
)
_ESCAPES: Final = re.compile(r"(?:~[0-9a-f]{2})+")
LONG_NAMES: Final = "_trinity/names"


def escaped(text: str, special: re.Pattern[str]) -> str:
    """Return the text with ``~xx`` for each byte of special characters, which must include ``~``."""
    return special.sub(lambda found: "".join(f"~{byte:02x}" for byte in found[0].encode()), text)


def unescaped(text: str) -> str:
    """Return the text that :func:`escaped` escaped. Raises UnicodeDecodeError for bytes that are not UTF-8."""
    return _ESCAPES.sub(lambda found: bytes.fromhex(found[0].replace("~", "")).decode(), text)


def folder_name(name: str) -> str:
    """Return the folder name of a schema or table, the same for every case of the name.

    A spelling of more than 255 bytes is cut, and ends in a digest of the name.

    Raises:
        TrinityError: INVALID_ARGUMENTS for a text that is no valid name (N1).
    """
    lower = checked_name(name.lower(), "Schema or table")
    spelled = escaped(lower, _SPECIAL)
    if len(spelled.encode()) <= _MOST:
        return spelled
    digest = hashlib.sha256(lower.encode()).hexdigest()[:_DIGITS]
    start = spelled.encode()[: _MOST - _DIGITS - len(_SHORTENED)].decode(errors="ignore")
    return re.sub("~[0-9a-f]?$", "", start) + _SHORTENED + digest


def own_folder(name: str) -> str:
    """Return a unique folder name for a schema or table: its name and random digits. Raises INVALID_ARGUMENTS."""
    return f"{folder_name(name)}-{uuid.uuid4().hex[:_OWN]}"


def name_of(folder: str) -> str | None:
    """Return the name that a folder stands for; None when it ends in a digest, or stands for no name."""
    try:
        name = unescaped(folder)
        return name if folder_name(name) == folder else None
    except (UnicodeDecodeError, TrinityError):
        return None


class NamedFolders:
    """Folders of schemas and tables by name, below one root.

    A name whose spelling ends in a digest is stored in the root, in a file named by that digest. The file is never
    wrong, so it may outlive the folder.
    """

    def __init__(self, root: Location) -> None:
        self.root = root
        self._store = ObjectStore(root)

    def folder(self, *names: str) -> Location:
        """Return the folder of a schema, or of a schema's table. Raises INVALID_ARGUMENTS."""
        return self.root.join(*map(folder_name, names))

    def keep(self, name: str) -> None:
        """Store a name that its folder does not spell out, before the folder is made, so that it can be listed."""
        folder = folder_name(name)
        if _SHORTENED in folder:
            try:
                self._store.put_if_absent(f"{LONG_NAMES}/{folder[-_DIGITS:]}", name.lower().encode(), commits=False)
            except AlreadyExists:  # an earlier folder of that name stored it
                return

    def names(self, parent: Location, chosen: Callable[[Location], bool]) -> list[str]:
        """Return the names of the chosen folders in a parent, sorted; folders that stand for no name are left out."""
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


def schema_taken(catalog: str, schema: str) -> TrinityError:
    """Return the error for a schema that exists already."""
    return TrinityError("SCHEMA_ALREADY_EXISTS", f"Schema '{catalog}.{schema}' exists already.")


def no_schema(catalog: str, schema: str, known: Sequence[str]) -> TrinityError:
    """Return the error for a missing schema, with the existing ones."""
    return TrinityError("SCHEMA_NOT_FOUND", f"Catalog '{catalog}' has no schema '{schema}'; it has {', '.join(known)}.")


def schema_in_use(catalog: str, schema: str, tables: Sequence[str]) -> TrinityError:
    """Return the error for a schema that cannot be dropped while it has tables."""
    return TrinityError(
        "SCHEMA_NOT_EMPTY",
        f"Schema '{catalog}.{schema}' still holds {', '.join(tables)}; drop these tables first.",
    )


def permanent_schema_error(catalog: str, schema: str) -> TrinityError:
    """Return the error for dropping the schema that every catalog has."""
    return TrinityError("NOT_SUPPORTED", f"Schema '{catalog}.{schema}' always exists; drop its tables.")


def table_taken(full_name: str) -> TrinityError:
    """Return the error for a table that exists already."""
    return TrinityError(
        "TABLE_ALREADY_EXISTS", f"Table '{full_name}' exists already; use IF NOT EXISTS, or drop it first."
    )


def no_table(full_name: str) -> TrinityError:
    """Return the error for a missing table."""
    return TrinityError("TABLE_NOT_FOUND", f"Table '{full_name}' does not exist.")

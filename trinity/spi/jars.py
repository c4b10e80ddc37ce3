"""Lists of JARs with their hashes, which stand beside the code that needs them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

from trinity.errors import TrinityError


@dataclass(frozen=True)
class Jar:
    """A JAR of a Maven repository.

    Attributes:
        coordinates: ``group:artifact:version`` or ``group:artifact:version:classifier``.
        bytes: its size.
        sha256: its hash, in hexadecimal digits.
    """

    coordinates: str
    bytes: int
    sha256: str

    @property
    def file(self) -> str:
        """The name of the JAR's file."""
        _, *rest = self.coordinates.split(":")
        return f"{'-'.join(rest)}.jar"

    @property
    def path(self) -> str:
        """The JAR's path below the address of a repository."""
        group, artifact, version, *_ = self.coordinates.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.file}"

    @property
    def module(self) -> tuple[str, ...]:
        """The coordinates without the version."""
        group, artifact, _, *classifier = self.coordinates.split(":")
        return group, artifact, *classifier

    @property
    def release(self) -> tuple[tuple[int, str], ...]:
        """The version as a sort key, in which numbers compare as numbers."""
        parts = self.coordinates.split(":")[2].replace("-", ".").split(".")
        return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


def listed_jars(lists: Iterable[str]) -> list[Jar]:
    """Return the JARs of several lists. Of each module only the newest is returned, as Java loads one.

    Args:
        lists: files of Python packages, such as ``trinity_delta/delta.jars``.

    Raises:
        TrinityError: CONFIGURATION_INVALID naming the list and the line that cannot be read.
    """
    found: dict[tuple[str, ...], Jar] = {}
    for jar in (jar for name in lists for jar in _read(name)):
        known = found.get(jar.module)
        if known is None or known.release < jar.release:
            found[jar.module] = jar
    return list(found.values())


def _read(name: str) -> Iterable[Jar]:
    package, _, file = name.partition("/")
    for number, line in enumerate(files(package).joinpath(file).read_text(encoding="ascii").splitlines(), 1):
        words = line.split()
        if len(words) != 3 or words[0].count(":") not in (2, 3) or not words[1].isdecimal() or len(words[2]) != 64:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Line {number} of the list of JARs {name} is not 'group:artifact:version bytes sha256': '{line}'.",
            )
        yield Jar(words[0], int(words[1]), words[2])

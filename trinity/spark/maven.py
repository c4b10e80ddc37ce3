"""JARs fetched from Maven repositories; a JAR is kept only if it has the hash that its list names."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from hashlib import file_digest, sha256
from http.client import HTTPException
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from trinity.errors import TrinityError, system_code
from trinity.loggers import logger
from trinity.spi.jars import Jar

CENTRAL: Final = "https://repo1.maven.org/maven2"
"""The address of Maven Central."""
_MIRROR: Final = "TRINITY_MAVEN"
"""Environment variable with the address of a repository to use instead of Maven Central."""
FOLDER: Final = "TRINITY_JARS"
"""Environment variable with the folder of the JARs."""

_AT_ONCE: Final = 4
_TRIES: Final = 2
_SECONDS: Final = 30
"""How long a repository may be silent, seconds."""
_log: Final = logger("trinity.spark")


@dataclass(frozen=True)
class Fetched:
    """A JAR on this machine.

    Attributes:
        jar: the JAR.
        path: its file.
        fetched: False if the file was there before.
    """

    jar: Jar
    path: Path
    fetched: bool


def jars_folder() -> Path:
    """Return the folder of the JARs: that of ``TRINITY_JARS``, or one in the user's cache."""
    if given := os.environ.get(FOLDER):
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "trinity", "jars")


def repositories(settings: Mapping[str, str]) -> list[str]:
    """Return the addresses of the repositories: of ``spark.jars.repositories``, then the mirror or Maven Central."""
    given = settings.get("spark.jars.repositories", "").split(",")
    every = [*given, os.environ.get(_MIRROR) or CENTRAL]
    return [address.strip().rstrip("/") for address in every if address.strip()]


def fetch_jars(jars: Iterable[Jar], folder: Path, addresses: Sequence[str]) -> list[Fetched]:
    """Return the files of JARs, in their order; missing and damaged files are fetched into the folder.

    Raises:
        TrinityError: CONFIGURATION_INVALID if no repository gives a JAR with its hash; FILESYSTEM_ERROR or
            PERMISSION_DENIED if the folder cannot be written.
    """
    with ThreadPoolExecutor(_AT_ONCE, "trinity-jars") as pool:
        try:
            return list(pool.map(partial(_kept, folder=folder, addresses=addresses), jars))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _kept(jar: Jar, folder: Path, addresses: Sequence[str]) -> Fetched:
    path = folder / jar.file
    if _is_intact(path, jar):
        return Fetched(jar, path, fetched=False)
    failures = []
    for address in addresses:
        failure = _fetch(jar, f"{address}/{jar.path}", path)
        if failure is None:
            _log.info("fetched %s from %s", jar.coordinates, address)
            return Fetched(jar, path, fetched=True)
        failures.append(failure)
    raise TrinityError(
        "CONFIGURATION_INVALID",
        f"The JAR {jar.coordinates}, which Spark needs, is not in {folder} and cannot be fetched: "
        f"{'; '.join(failures)}. Check the network, or name a mirror of Maven Central by {_MIRROR}; or let "
        f"'trinity jars --to DIR' fetch the JARs elsewhere, bring the folder here, and name it by {FOLDER}.",
    )


def _is_intact(path: Path, jar: Jar) -> bool:
    try:
        if path.stat().st_size != jar.bytes:
            return False
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest() == jar.sha256
    except OSError:  # it is missing or cannot be read; writing it again raises the error, if there is one
        return False


def _fetch(jar: Jar, url: str, path: Path) -> str | None:
    """Fetch a JAR and put it in its place as a whole; return None, or else why an address does not give it."""
    try:
        content = _download(url, jar.bytes + 1)
    except _NoAnswer as error:
        return f"{url}: {error}"
    if (found := sha256(content).hexdigest()) != jar.sha256:
        return f"{url} gives another file, with the SHA-256 {found} instead of {jar.sha256}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as part:
            part.write(content)
        Path(part.name).chmod(0o644)  # others may not read a temporary file
        Path(part.name).replace(path)
    except OSError as error:
        raise TrinityError(
            system_code(error),
            f"The folder {path.parent} cannot take the JAR {path.name}: {error}. Make room or give permission there, "
            f"or name another folder by {FOLDER}.",
        ) from error
    return None


class _NoAnswer(Exception):
    """The error of a request to a repository; its text says why it gives no file."""


def _download(url: str, most: int) -> bytes:
    """Return the content of an address, up to a number of bytes. Raises _NoAnswer."""
    for left in reversed(range(_TRIES)):
        try:
            with urlopen(_request(url), timeout=_SECONDS) as answer:
                content: bytes = answer.read(most)
                return content
        except HTTPError as error:
            error.close()
            if error.code < 500 or not left:
                raise _NoAnswer(f"{error.code} {error.reason}") from error
        except (OSError, HTTPException, ValueError) as error:  # not reached, broken off, no address
            if not left:
                raise _NoAnswer(getattr(error, "reason", error)) from error
    raise AssertionError


def _request(url: str) -> Request:
    """Return the request for an address; a name and password in the address become its login."""
    parts = urlsplit(url)
    if parts.username is None:
        return Request(url)
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    login = b64encode(f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()).decode()
    return Request(plain, headers={"Authorization": f"Basic {login}"})

"""Writes the lists of JARs, with their hashes, of formats and stores: ``python -m formats.jars``, for new versions."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pyspark

from trinity.spark.granted import GRANTED
from trinity.spark.jars import resolve
from trinity.spark.maven import CENTRAL, FOLDER
from trinity.spi import SparkRequirements
from trinity.spi.jars import Jar
from trinity.storage.store_kinds import KINDS
from trinity_delta import DeltaFormat
from trinity_iceberg import IcebergFormat

_OF_SPARK: Final = {re.sub(r"-\d.*", "", jar.name) for jar in Path(pyspark.__file__).parent.glob("jars/*.jar")}
_BY_ANOTHER_NAME: Final = {"commons-logging", "shims"}
"""Artifacts whose classes Spark has in JARs of other names: jcl-over-slf4j and RoaringBitmap."""


def _write_list(need: SparkRequirements) -> None:
    """Write the list of the JARs that one format, store or catalog requires."""
    assert need.jars is not None
    plain = tuple(package for package in need.packages if package.count(":") == 2)
    rest = [package for package in need.packages if package not in plain]
    with tempfile.TemporaryDirectory() as ivy:
        os.environ[FOLDER] = ivy
        resolved = list(_resolved(plain, {**need.settings, "spark.jars.ivy": ivy}, Path(ivy))) if plain else []
    lines = [_line(coordinates, content) for coordinates, content in resolved]
    package, _, name = need.jars.partition("/")
    Path(str(files(package)), name).write_text(
        "".join([*lines, *(_line(package, _content(package)) for package in rest)])
    )


def _resolved(packages: tuple[str, ...], settings: dict[str, str], ivy: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the coordinates, as found in Ivy's cache, and the content of each JAR that Spark itself lacks."""
    files = [Path(file).name for file in resolve(packages, settings, [CENTRAL])]
    found = {f"{jar.parts[-4]}_{jar.name}": jar for jar in ivy.glob("cache/*/*/*/*.jar")}
    for jar in (found[file] for file in files):
        group, artifact = jar.parts[-4:-2]
        if artifact not in _OF_SPARK | _BY_ANOTHER_NAME:
            yield f"{group}:{artifact}:{jar.stem.removeprefix(f'{artifact}-')}", jar.read_bytes()


def _content(coordinates: str) -> bytes:
    with urlopen(f"{CENTRAL}/{Jar(coordinates, 0, '').path}") as answer:
        content: bytes = answer.read()
        return content


def _line(coordinates: str, content: bytes) -> str:
    return f"{coordinates} {len(content)} {sha256(content).hexdigest()}\n"


if __name__ == "__main__":
    for party in (DeltaFormat().spark, IcebergFormat().spark, *(kind.spark for kind in KINDS), GRANTED):
        _write_list(party)

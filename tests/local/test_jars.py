"""The JARs of Spark: fetched once from a mirror, checked by their hashes, used without a network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import trinity.catalogs
from tests.support.maven import Repository, listing, running_repository
from tests.support.refusals import refused
from trinity.cli.main import app
from trinity.memory import MemoryFormat
from trinity.spark.jars import find_jars
from trinity.spi import Format, SparkRequirements
from trinity.spi.jars import listed_jars
from trinity.storage.store_kinds import KINDS
from trinity_delta import DeltaFormat
from trinity_iceberg import IcebergFormat

pytestmark = pytest.mark.inner

ONE, TWO = b"the first JAR", b"the second one"
PLAIN, SHADED = "org/acme/part/1.0/part-1.0.jar", "org/acme/deep/whole/2.1/whole-2.1-shaded.jar"


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """Yield a repository with two JARs, set as the mirror."""
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with running_repository() as running:
        running.files |= {PLAIN: ONE, SHADED: TWO}
        monkeypatch.setenv("TRINITY_MAVEN", f"{running.address}/")
        yield running


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a package ``lists_of_jars``, and return its folder."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lists_of_jars").mkdir()
    return tmp_path / "lists_of_jars"


@pytest.fixture
def need(package: Path) -> SparkRequirements:
    """Return the requirements of a format that lists the two JARs."""
    lines = listing("org.acme:part:1.0", ONE) + listing("org.acme.deep:whole:2.1:shaded", TWO)
    (package / "acme.jars").write_text(lines)
    return SparkRequirements(packages=("org.acme:part:1.0",), jars="lists_of_jars/acme.jars")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the JARs, which does not exist yet."""
    monkeypatch.setenv("TRINITY_JARS", str(tmp_path / "jars"))
    return tmp_path / "jars"


@pytest.fixture
def installed(need: SparkRequirements, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the format of the two JARs be the only one installed."""

    class Acme(MemoryFormat):
        spark = need

    def formats() -> dict[str, Format]:
        return {"acme": Acme()}

    monkeypatch.setattr(trinity.catalogs, "installed_formats", formats)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["jars", *words])


@pytest.mark.usefixtures("installed")
def test_jars_are_fetched_once_and_brought_elsewhere(mirror: Repository, folder: Path, tmp_path: Path) -> None:
    done = run()
    assert done.exit_code == 0, done.stderr
    assert "2 JARs" in done.stdout
    assert "2 fetched" in done.stdout
    assert "TRINITY_JARS" not in done.stdout
    assert (folder / "part-1.0.jar").read_bytes() == ONE
    assert (folder / "whole-2.1-shaded.jar").read_bytes() == TWO
    assert len(list(folder.iterdir())) == 2
    assert "2 there already" in run().stdout
    assert len(mirror.asked) == 2
    taken = tmp_path / "taken along"
    lines = [json.loads(line) for line in run("--to", str(taken), "--json").stdout.splitlines()]
    assert lines[0] == {
        "jar": "org.acme:part:1.0",
        "file": str(taken / "part-1.0.jar"),
        "bytes": len(ONE),
        "sha256": sha256(ONE).hexdigest(),
        "fetched": True,
    }
    assert f"TRINITY_JARS={taken}" in run("--to", str(taken)).stdout


def test_a_folder_that_was_brought_needs_no_network(mirror: Repository, need: SparkRequirements, folder: Path) -> None:
    brought = find_jars([need], {})
    requests = len(mirror.asked)
    mirror.files.clear()
    assert find_jars([need], {}) == brought == [str(folder / "part-1.0.jar"), str(folder / "whole-2.1-shaded.jar")]
    assert len(mirror.asked) == requests


def test_a_damaged_jar_is_fetched_again(mirror: Repository, need: SparkRequirements, folder: Path) -> None:
    folder.mkdir()
    (folder / "part-1.0.jar").write_bytes(ONE[::-1])
    find_jars([need], {})
    assert (folder / "part-1.0.jar").read_bytes() == ONE


@pytest.mark.usefixtures("installed")
def test_another_file_is_refused_and_not_kept(mirror: Repository, folder: Path) -> None:
    mirror.files[PLAIN] = b"something else"
    done = run()
    assert done.exit_code == 2
    text = " ".join(done.stderr.split())
    for word in ("org.acme:part:1.0", sha256(b"something else").hexdigest(), sha256(ONE).hexdigest()):
        assert word in text
    assert not (folder / "part-1.0.jar").exists()
    assert not list(folder.glob(".*"))


def test_what_no_repository_gives_is_named_with_the_remedy(
    mirror: Repository, need: SparkRequirements, folder: Path
) -> None:
    del mirror.files[PLAIN]
    with refused("CONFIGURATION_INVALID", "org.acme:part:1.0", PLAIN, "404", "TRINITY_MAVEN", "trinity jars --to"):
        find_jars([need], {})


def test_a_mirror_that_does_not_answer_is_named(
    need: SparkRequirements, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRINITY_MAVEN", "http://127.0.0.1:1/maven")
    with refused("CONFIGURATION_INVALID", "http://127.0.0.1:1/maven", "Check the network"):
        find_jars([need], {})
    monkeypatch.setenv("TRINITY_MAVEN", "no address")
    with refused("CONFIGURATION_INVALID", "no address"):
        find_jars([need], {})


def test_a_folder_that_takes_no_files_is_named(mirror: Repository, need: SparkRequirements, folder: Path) -> None:
    folder.write_text("a file")
    with refused("FILESYSTEM_ERROR", str(folder), "TRINITY_JARS"):
        find_jars([need], {})


def test_repositories_of_spark_are_asked_first_with_their_login(
    mirror: Repository, need: SparkRequirements, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRINITY_MAVEN", "http://127.0.0.1:1/maven")
    with_login = mirror.address.replace("//", "//anna:open%20sesame@")
    find_jars([need], {"spark.jars.repositories": with_login})
    assert mirror.asked[0][1] == "Basic YW5uYTpvcGVuIHNlc2FtZQ=="
    mirror.files.clear()
    (folder / "part-1.0.jar").unlink()
    with refused("CONFIGURATION_INVALID", "anna:***@") as caught:
        find_jars([need], {"spark.jars.repositories": with_login})
    assert "sesame" not in caught.value.message


def test_of_two_versions_the_newer_one_is_taken(
    mirror: Repository, need: SparkRequirements, folder: Path, package: Path
) -> None:
    mirror.files["org/acme/part/0.10/part-0.10.jar"] = mirror.files["org/acme/part/1.0.1/part-1.0.1.jar"] = TWO
    other, others = package / "other.jars", SparkRequirements(jars="lists_of_jars/other.jars")
    other.write_text(listing("org.acme:part:0.10", TWO))
    assert find_jars([need, others], {})[0] == str(folder / "part-1.0.jar")
    other.write_text(listing("org.acme:part:1.0.1", TWO))
    assert find_jars([need, others], {})[0] == str(folder / "part-1.0.1.jar")
    other.write_text("org.acme:part\n")
    with refused("CONFIGURATION_INVALID", "Line 1", "other.jars", "org.acme:part"):
        find_jars([others], {})


def test_every_package_is_in_its_list() -> None:
    """A new version of a package needs a new list, made by ``python -m formats.jars``."""
    for need in (DeltaFormat().spark, IcebergFormat().spark, *(kind.spark for kind in KINDS)):
        assert need.jars is not None
        assert set(need.packages) <= {jar.coordinates for jar in listed_jars([need.jars])}


def test_an_unknown_store_is_refused() -> None:
    done = run("--store", "ftp")
    assert done.exit_code == 2
    assert "s3, gs, abfss" in done.stderr

"""JARs with a classifier: that one file is had, and what cannot be had is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bucket_lake import refusal
from trinity.engine.spark.classified import fetch_classified


@pytest.mark.full  # two JVMs
def test_the_file_of_a_classifier_is_had(tmp_path: Path) -> None:
    """From a folder instead of Maven Central."""
    repository = tmp_path / "repository/org/nowhere/part/1.0"
    repository.mkdir(parents=True)
    (repository / "part-1.0.jar").write_bytes(b"the plain one")
    (repository / "part-1.0-shaded.jar").write_bytes(b"the shaded one")
    (repository / "part-1.0.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.nowhere</groupId><artifactId>part</artifactId>"
        "<version>1.0</version></project>"
    )
    settings = tmp_path / "settings.xml"
    below = f"{tmp_path}/repository/[organisation]/[module]/[revision]/[module]-[revision]"
    settings.write_text(
        f'<ivysettings><settings defaultResolver="here"/><caches defaultCacheDir="{tmp_path}/cache"/><resolvers>'
        f'<filesystem name="here" m2compatible="true"><ivy pattern="{below}.pom"/>'
        f'<artifact pattern="{below}(-[classifier]).[ext]"/></filesystem></resolvers></ivysettings>'
    )
    [file] = fetch_classified(["org.nowhere:part:1.0:shaded"], tmp_path / "jars", str(settings))
    assert Path(file).read_bytes() == b"the shaded one"
    said = refusal(
        "CONFIGURATION_INVALID",
        lambda: fetch_classified(["org.nowhere:part:2.0:shaded"], tmp_path / "jars", str(settings)),
    )
    assert "org.nowhere:part:2.0:shaded" in said
    assert fetch_classified([], tmp_path, None) == []

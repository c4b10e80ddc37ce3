"""JARs with a classifier, fetched by the Ivy among pyspark's JARs: ``spark.jars.packages`` cannot name them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from trinity.errors import TrinityError

__all__ = ["fetch_classified"]

_IVY: Final = """<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="trinity" module="jars"/><configurations><conf name="default"/></configurations><dependencies>
{}
</dependencies></ivy-module>"""
_DEPENDENCY: Final = (
    '<dependency org="{}" name="{}" rev="{}" transitive="false" conf="default->master">'
    '<artifact name="{}" type="jar" m:classifier="{}"/></dependency>'
)


def fetch_classified(packages: Iterable[str], folder: Path, settings: str | None) -> list[str]:
    """Return the files of packages ``group:artifact:version:classifier``, without their dependencies.

    Args:
        packages: the packages.
        folder: where the files are put.
        settings: Ivy's own settings file, as for a mirror; Maven Central without one.

    Raises:
        TrinityError: CONFIGURATION_INVALID when they cannot be fetched.
    """
    wanted = [package.split(":") for package in packages]
    if not wanted:
        return []
    import pyspark

    [ivy] = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
    java = str(Path(os.environ["JAVA_HOME"], "bin", "java")) if "JAVA_HOME" in os.environ else "java"
    with tempfile.TemporaryDirectory() as place:
        module = Path(place, "ivy.xml")
        rows = (_DEPENDENCY.format(group, name, version, name, kind) for group, name, version, kind in wanted)
        module.write_text(_IVY.format("\n".join(rows)))
        command = [java, "-jar", str(ivy), "-m2compatible", "-ivy", str(module)]
        command += ["-settings", settings] if settings else []
        command += ["-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [folder / f"{name}-{version}-{kind}.jar" for _, name, version, kind in wanted]
    reason = " ".join((done.stderr or done.stdout)[-500:].split())
    if done.returncode or not all(file.exists() for file in found):
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"The JARs {', '.join(packages)} cannot be had: {reason}. They come from Maven Central once; check the "
            "network, or give them as spark.jars.",
        )
    return [str(file) for file in found]

"""The JARs with which Spark is started, on the class path of its JVM.

Packages without a list of JARs are resolved once by Ivy, which comes with Spark; the result is kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from trinity.errors import TrinityError
from trinity.spark.maven import fetch_jars, jars_folder, repositories
from trinity.spark.quiet import captured_output
from trinity.spi import SparkRequirements
from trinity.spi.jars import listed_jars


def find_jars(requirements: Sequence[SparkRequirements], settings: Mapping[str, str]) -> list[str]:
    """Return the files of the JARs that requirements list, and of packages without a list, which Ivy resolves.

    They are given to Spark as ``spark.jars``. As ``spark.jars.packages`` they would also be on the path of the Python
    workers, which search each for modules. ``settings`` are Spark's; they may exclude packages and name repositories.

    Raises:
        TrinityError: CONFIGURATION_INVALID if they cannot be fetched or resolved; FILESYSTEM_ERROR or PERMISSION_DENIED
            if they cannot be stored.
    """
    addresses = repositories(settings)
    listed = listed_jars(need.jars for need in requirements if need.jars is not None)
    unlisted = tuple(dict.fromkeys(package for need in requirements if need.jars is None for package in need.packages))
    found = [str(each.path.absolute()) for each in fetch_jars(listed, jars_folder(), addresses)]
    return found + (resolve(unlisted, settings, addresses) if unlisted else [])


def add_jars(jvm: Any, jars: Iterable[str]) -> None:
    """Put files on the class path of a running JVM, as ``spark.jars`` are at its start."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    known = {str(url.getPath()) for url in loader.getURLs()}
    for jar in jars:
        url = jvm.java.io.File(jar).toURI().toURL()
        if str(url.getPath()) not in known:
            loader.addURL(url)


def resolve(packages: tuple[str, ...], settings: Mapping[str, str], addresses: Sequence[str]) -> list[str]:
    """Return the files of packages and of their dependencies: as an earlier run resolved them, or resolved now.

    Packages are coordinates ``group:artifact:version``.

    Raises:
        TrinityError: CONFIGURATION_INVALID if they cannot be resolved.
    """
    known = jars_folder() / f"ivy-{sha256(','.join(sorted(packages)).encode()).hexdigest()[:16]}.json"
    jars = _cached_jars(known)
    if jars is None:
        jars = _resolve_packages(packages, {**settings, "spark.jars.repositories": ",".join(addresses)})
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(jars))
    return jars


def _resolve_packages(packages: tuple[str, ...], settings: Mapping[str, str]) -> list[str]:
    """Let spark-submit resolve packages in a JVM of its own, which ends here: Spark reads its JARs at its start."""
    from pyspark import java_gateway

    from trinity.spark_names import SparkConf

    launch: Callable[[SparkConf], Any] = java_gateway.launch_gateway
    wanted = {key: value for key, value in settings.items() if key.startswith("spark.jars.")}
    conf = SparkConf(loadDefaults=False).setAll([*wanted.items(), ("spark.jars.packages", ",".join(packages))])
    for attempt in (1, 2, 3):
        with captured_output() as output:
            try:
                gateway = launch(conf)
                break
            except Exception as error:  # a bare RuntimeError: the launcher's gateway dies with a failed resolution
                if attempt == 3:
                    raise TrinityError(
                        "CONFIGURATION_INVALID",
                        f"Spark did not start with the JARs {', '.join(packages)}: {output() or error}. They come from "
                        "Maven Central once and are kept in Ivy's cache; check the network, or put the JARs there.",
                    ) from error
    try:
        found = gateway.jvm.java.lang.System.getProperty("spark.jars") or ""
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
    return [jar.removeprefix("file://") for jar in found.split(",") if jar]


def _cached_jars(known: Path) -> list[str] | None:
    """Return the JAR files of an earlier resolution, if all still exist: Spark then starts without a network."""
    try:
        jars: list[str] = json.loads(known.read_text())
    except (OSError, ValueError):
        return None
    return jars if jars and all(Path(j).exists() for j in jars) else None

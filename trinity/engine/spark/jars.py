"""JARs of packages: resolved once by Ivy, then cached, and put on the class path of Spark's JVM."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from trinity.engine.spark.classified import fetch_classified
from trinity.engine.spark.quiet import without_start_lines
from trinity.errors import TrinityError

__all__ = ["add_jars", "find_jars"]


def find_jars(packages: tuple[str, ...], settings: Mapping[str, str]) -> list[str]:
    """Return the files of packages and of all that they need: cached by an earlier run, or resolved now by Ivy.

    They are given to Spark as ``spark.jars``. As ``spark.jars.packages`` they would also be on the path of the Python
    workers, which search each for modules.

    Args:
        packages: coordinates, as :class:`~trinity.spi.SparkRequirements` has them.
        settings: Spark's settings, with the excluded packages and the repositories.

    Raises:
        TrinityError: CONFIGURATION_INVALID where they cannot be resolved.
    """
    cache = _cache_file(packages)
    jars = _cached_jars(cache)
    if jars is None:
        plain = tuple(package for package in packages if package.count(":") == 2)
        jars = _resolved(plain, settings) if plain else []
        cache.parent.mkdir(parents=True, exist_ok=True)
        classified = [package for package in packages if package not in plain]
        jars += fetch_classified(classified, cache.parent, settings.get("spark.jars.ivySettings"))
        cache.write_text(json.dumps(jars))
    return jars


def _resolved(packages: tuple[str, ...], settings: Mapping[str, str]) -> list[str]:
    """Let spark-submit resolve the packages, in a JVM of its own that ends here: Spark reads its JARs at its start."""
    from pyspark import java_gateway

    from trinity.spark_names import SparkConf

    launch: Callable[[SparkConf], Any] = java_gateway.launch_gateway
    wanted = {key: value for key, value in settings.items() if key.startswith("spark.jars.")}
    conf = SparkConf(loadDefaults=False).setAll([*wanted.items(), ("spark.jars.packages", ",".join(packages))])
    for attempt in (1, 2, 3):
        try:
            with without_start_lines():
                gateway = launch(conf)
            break
        except Exception as error:  # a bare RuntimeError: the launcher's gateway dies with a failed resolution
            if attempt == 3:
                raise TrinityError(
                    "CONFIGURATION_INVALID",
                    f"Spark did not start with the JARs {', '.join(packages)}: {error}. They come from Maven Central "
                    "once and are kept in Ivy's cache; check the network, or put the JARs there.",
                ) from error
    try:
        found = gateway.jvm.java.lang.System.getProperty("spark.jars") or ""
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
    return [jar.removeprefix("file://") for jar in found.split(",") if jar]


def _cache_file(packages: tuple[str, ...]) -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return root / "trinity" / f"jars-{sha256(','.join(sorted(packages)).encode()).hexdigest()[:16]}.json"


def _cached_jars(cache: Path) -> list[str] | None:
    """Return the JAR files of an earlier resolution, if all still exist: Spark then starts without a network."""
    try:
        jars: list[str] = json.loads(cache.read_text())
    except (OSError, ValueError):
        return None
    return jars if jars and all(Path(j).exists() for j in jars) else None


def add_jars(jvm: Any, jars: Iterable[str]) -> None:
    """Put files on the class path of a running JVM, as ``spark.jars`` are at its start."""
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    known = {str(url.getPath()) for url in loader.getURLs()}
    for jar in jars:
        url = jvm.java.io.File(jar).toURI().toURL()
        if str(url.getPath()) not in known:
            loader.addURL(url)

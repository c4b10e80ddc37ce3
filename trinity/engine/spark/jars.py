"""The JARs that Spark is started with, and how they come on the class path of its JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trinity.engine.spark.ivy import resolve
from trinity.engine.spark.maven import fetch_jars, jars_folder, repositories
from trinity.spi import SparkRequirements
from trinity.spi.jars import listed_jars

__all__ = ["add_jars", "find_jars"]


def find_jars(requirements: Sequence[SparkRequirements], settings: Mapping[str, str]) -> list[str]:
    """Return the files of the JARs that requirements list, and of packages without a list, which Ivy resolves.

    They are given to Spark as ``spark.jars``. As ``spark.jars.packages`` they would also be on the path of the Python
    workers, which search each for modules.

    Args:
        requirements: the requirements of formats and stores.
        settings: Spark's settings, with excluded packages and repositories.

    Raises:
        TrinityError: CONFIGURATION_INVALID where they cannot be had; FILESYSTEM_ERROR or PERMISSION_DENIED where they
            cannot be kept.
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

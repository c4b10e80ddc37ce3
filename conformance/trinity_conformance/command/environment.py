"""The environment of a command: the adapter, a Spark for it, and errors that are not the adapter's."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import typer

from trinity.errors import TrinityError, nearest
from trinity.spi import ENTRY_POINT_GROUP, Format
from trinity_conformance.suite.running import connectors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WRONG_USAGE: Final = 2
_BROKEN: Final = 4
"""Exit code of a fault of the suite itself."""


def wrong_usage(message: str) -> typer.Exit:
    """Return the exit of a command that is used wrongly, and print the reason."""
    typer.echo(message, err=True)
    return typer.Exit(_WRONG_USAGE)


def checked_name(kind: str, name: str, names: Sequence[str]) -> str:
    """Return a name if it is one of ``names``; else exit with a message that suggests the nearest one."""
    if name not in names:
        raise wrong_usage(f"There is no {kind} '{name}'.{nearest(name, list(names))} There are: {', '.join(names)}.")
    return name


def adapter(name: str) -> str | type[Format]:
    """Return an adapter: the name of an installed one, or the class that ``module:Class`` names."""
    if ":" not in name:
        return checked_name("format", name, connectors())
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))  # Spark's workers
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise wrong_usage(f"'{name}' cannot be imported from {here}: {error}.") from error
    if not (isinstance(found, type) and issubclass(found, Format)):
        raise wrong_usage(f"'{name}' is no adapter: give a class that extends trinity.spi.Format.")
    return found


def origin(name: str) -> str:
    """Return the class of an adapter, and its distribution."""
    for point in entry_points(group=ENTRY_POINT_GROUP, name=name):
        return f"{point.value}, of {point.dist.name} {point.dist.version}" if point.dist else point.value
    return name


def catalog_options(warehouse: str | None, given: Sequence[str] | None) -> dict[str, str]:
    """Return the settings of the adapter's catalog from the command line."""
    options = {} if warehouse is None else {"warehouse": warehouse}
    for option in given or ():
        name, sign, value = option.partition("=")
        if not (name and sign):
            raise wrong_usage(f"--option '{option}' is no setting: give NAME=VALUE.")
        options[name] = value
    return options


def check_empty(connector: str | type[Format], options: Mapping[str, str]) -> None:
    """Exit if a catalog has tables: tables of an earlier run would look like faults of the adapter.

    An adapter that cannot list tables is reported by the first steps, with the reason.
    """
    import trinity

    tables: Sequence[object] = ()
    with TemporaryDirectory(prefix="trinity-conformance-") as folder, suppress(Exception):
        catalogs = {"c": {"connector": connector, "warehouse": folder, **options}}
        with trinity.connect(catalogs=catalogs, engine="local") as session:
            tables = session.list_tables("c", "default")
    if tables:
        raise wrong_usage(f"The warehouse has tables already, as '{tables[0]}': give an empty one.")


@contextmanager
def local_spark(connector: str | type[Format], options: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a local Spark session for the adapter, or a session of a Spark Connect server."""
    import trinity
    from trinity.spark.remote import is_remote

    with TemporaryDirectory(prefix="trinity-conformance-") as folder:
        catalogs = {"c": {"connector": connector, "warehouse": folder, **options}}
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(Path(folder) / "spark"),
        }
        with _usable(), trinity.connect(catalogs=catalogs, spark_settings=settings) as session:
            spark = session.spark
        if not is_remote(spark):
            spark.sparkContext.setLogLevel("OFF")
        try:
            yield spark
        finally:
            spark.stop()


@contextmanager
def _usable() -> Iterator[None]:
    """Report an environment that cannot run an adapter."""
    try:
        yield
    except TrinityError as error:
        raise wrong_usage(str(error)) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the logs of Trinity and Spark: the suite provokes refusals and failures, and reports them itself."""
    loggers = [logging.getLogger(name) for name in ("trinity", "SQLQueryContextLogger")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM interrupt as Ctrl-C does, so that the results so far are reported."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def crash_saved(folder: Path) -> Iterator[None]:
    """Exit with 4 where the suite itself breaks, and keep the traceback in a file."""
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / "crash.txt"
        place.write_text(traceback.format_exc(), encoding="utf-8")
        typer.echo(
            f"The suite or its environment broke, which says nothing of the adapter: {type(error).__name__}: "
            f"{str(error)[:300]}. The traceback is in {place}.",
            err=True,
        )
        raise typer.Exit(_BROKEN) from error

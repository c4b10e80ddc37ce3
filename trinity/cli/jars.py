"""``trinity jars``: fetches the JARs that Spark needs, before it needs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.filesize import decimal

from trinity.cli.options import AsJson, reporting_errors
from trinity.cli.output import print_line
from trinity.cli.progress import working

if TYPE_CHECKING:
    from trinity.spi import SparkRequirements


def jars(
    to: Annotated[Path | None, typer.Option(help="Folder for them; by default where Spark's start looks.")] = None,
    store: Annotated[list[str] | None, typer.Option(help="Those of buckets, too: s3, gs or abfss.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch the JARs that Spark needs for the installed formats, and check those that are there.

    Where there is no network, name a folder that was filled elsewhere by the environment variable TRINITY_JARS.
    """
    with reporting_errors():
        from trinity.spark.maven import FOLDER, fetch_jars, jars_folder, repositories
        from trinity.spi.jars import listed_jars

        listed = listed_jars(need.jars for need in _requirements(store or []) if need.jars is not None)
        folder = (to or jars_folder()).absolute()
        with working("fetching JARs"):
            done = fetch_jars(listed, folder, repositories({}))
    if as_json:
        for each in done:
            print_line(
                {
                    "jar": each.jar.coordinates,
                    "file": str(each.path),
                    "bytes": each.jar.bytes,
                    "sha256": each.jar.sha256,
                    "fetched": each.fetched,
                }
            )
        return
    fetched = sum(each.fetched for each in done)
    size = decimal(sum(each.jar.bytes for each in done))
    typer.echo(f"{folder}: {len(done)} JARs, {size}; {fetched} fetched, {len(done) - fetched} there already.")
    if folder != jars_folder().absolute():
        typer.echo(f"Spark takes them from there with {FOLDER}={folder} in the environment.")


def _requirements(stores: list[str]) -> Iterator[SparkRequirements]:
    from trinity.catalogs import installed_formats
    from trinity.spark.granted import GRANTED
    from trinity.storage.store_kinds import KINDS

    yield from (made_by.spark for made_by in installed_formats().values())
    known = {kind.scheme: kind for kind in KINDS}
    for name in stores:
        if name not in known:
            raise typer.BadParameter(f"'{name}' is not one of {', '.join(known)}", param_hint="--store")
        yield known[name].spark
        if name == "s3":
            yield GRANTED

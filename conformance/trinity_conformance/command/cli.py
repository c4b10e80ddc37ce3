"""``trinity-conformance``: run, list, replay, init, self-test.

Exit codes of ``run``: 0 the adapter conforms, 1 it does not, 2 wrong usage or an environment that cannot run it,
3 nothing differed, but a check saw too little to prove anything.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from trinity.errors import TrinityError, nearest
from trinity.spi import ENTRY_POINT_GROUP
from trinity_conformance.command.checks import CHECKS
from trinity_conformance.command.scaffold import scaffold
from trinity_conformance.command.suite import BUDGETS, Report, connectors, run_check
from trinity_conformance.generate.executors import without_spark
from trinity_conformance.mutants.selftest import self_test as run_self_test
from trinity_conformance.play import traces
from trinity_conformance.play.coverage import SITUATIONS
from trinity_conformance.play.differences import NonConformance
from trinity_conformance.play.runner import Tally, play
from trinity_conformance.play.subject import LeftToSpark, TrinitySubject, Unsupported

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # as in the command trinity
    help="Tests a table format adapter of Trinity.",
)

_TRACES = Path(".trinity-conformance")
_WIDTH = 160
"""Width of text for a file or a pipe, in characters."""
_LINE_EVERY = 5
"""Histories between two lines of progress there."""
_Traces = Annotated[Path, typer.Option("--traces", help="Folder of failing histories.")]
_Warehouse = Annotated[
    str | None, typer.Option(help="Empty place of the tables, as s3://bucket/path; a temporary folder by default.")
]
_Options = Annotated[
    list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="A setting of the adapter's catalog.")
]
_NoSpark = Annotated[bool, typer.Option("--no-spark", help="Without Spark and Java: what this process plays alone.")]
_NoColor = Annotated[bool, typer.Option("--no-color", help="Plain text; NO_COLOR does the same.")]


def _console(no_color: bool) -> Console:
    found = Console(no_color=no_color or None, highlight=False)
    return found if found.is_terminal else Console(no_color=True, highlight=False, width=_WIDTH)


def _fail(message: str) -> typer.Exit:
    typer.echo(message, err=True)
    return typer.Exit(2)


def _known(kind: str, name: str, known: list[str]) -> str:
    if name not in known:
        raise _fail(f"There is no {kind} '{name}'.{nearest(name, known)} There are: {', '.join(known)}.")
    return name


def _catalog_options(warehouse: str | None, given: Sequence[str] | None) -> dict[str, str]:
    """Return the settings of the adapter's catalog from the command line."""
    options = {} if warehouse is None else {"warehouse": warehouse}
    for option in given or ():
        name, sign, value = option.partition("=")
        if not (name and sign):
            raise _fail(f"--option '{option}' is no setting: give NAME=VALUE.")
        options[name] = value
    return options


@contextmanager
def _spark(connector: str, options: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a local Spark for the adapter, or a server's session, after a check that the catalog is empty."""
    import trinity
    from trinity.engine.spark.remote import is_remote

    with TemporaryDirectory(prefix="trinity-conformance-") as folder:
        catalogs = {"c": {"connector": connector, "warehouse": folder, **options}}
        settings = {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(Path(folder) / "spark"),
        }
        with _usable(), trinity.connect(catalogs=catalogs, spark_settings=settings) as session:
            if tables := session.list_tables("c", "default"):
                raise _fail(f"The warehouse has tables already, as '{tables[0]}': give an empty one.")
            spark = session.spark
        if not is_remote(spark):
            spark.sparkContext.setLogLevel("OFF")
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # the suite provokes refusals
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
        raise _fail(str(error)) from error


@app.command()
def run(
    connector: Annotated[str, typer.Argument(metavar="FORMAT", help="Name of an installed adapter, as in `list`.")],
    budget: Annotated[str, typer.Option(help="smoke (two minutes), standard (ten) or deep (an hour).")] = "smoke",
    check: Annotated[str | None, typer.Option(help="Only this check.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Number of the first history.")] = 0,
    json: Annotated[Path | None, typer.Option("--json", help="Write the report as JSON to this file.")] = None,
    no_spark: _NoSpark = False,
    warehouse: _Warehouse = None,
    option: _Options = None,
    folder: _Traces = _TRACES,
    no_color: _NoColor = False,
) -> None:
    """Play generated histories on an adapter and compare every read with the model.

    Exit codes: 0 it conforms, 1 it does not, 2 wrong usage or an environment that cannot run it, 3 nothing differed,
    but a check saw too little to prove anything.
    """
    _known("format", connector, connectors())
    _known("budget", budget, list(BUDGETS))
    if check is not None:
        _known("check", check, [c.id for c in CHECKS])
    options = _catalog_options(warehouse, option)
    console = _console(no_color)
    chosen = BUDGETS[budget]
    most = chosen.histories + chosen.programs + chosen.engine_histories
    console.print(f"{connector} ({_origin(connector)}): {check or f'{len(CHECKS)} checks'}, {budget}, seed {seed}")
    opened = nullcontext(None) if no_spark else _spark(connector, options)
    with opened as spark, _progress(console, connector, most) as shown:
        try:
            report = run_check(connector, spark, check, budget, seed, progress=shown, options=options)
        except TrinityError as error:
            raise _fail(f"The adapter '{connector}' could not be run: {error}") from error
    _show(console, report, folder)
    if json is not None:
        json.write_text(report.to_json() + "\n", encoding="utf-8")
    raise typer.Exit(1 if not report.conforms else 3 if report.inconclusive else 0)


def _origin(connector: str) -> str:
    """Return the class of an adapter, and its distribution."""
    [point] = [p for p in entry_points(group=ENTRY_POINT_GROUP) if p.name == connector]
    return f"{point.value}, of {point.dist.name} {point.dist.version}" if point.dist else point.value


class _Shown:
    """Progress of a run: a bar on a terminal, else a line now and then."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress = progress
        self.task = progress.add_task("starting", total=total)

    def __call__(self, tally: Tally) -> None:
        text = f"{tally.histories} histories, {tally.rows} row versions, {tally.keys} keys compared"
        self.progress.update(self.task, advance=1, description=text)
        console = self.progress.console
        if not console.is_terminal and tally.histories % _LINE_EVERY == 0:
            console.print(text)


@contextmanager
def _progress(console: Console, connector: str, total: int) -> Iterator[_Shown]:
    columns = (SpinnerColumn(), TextColumn(f"{connector}: {{task.description}}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Shown(progress, total)


def _show(console: Console, report: Report, folder: Path) -> None:
    tally = report.tally
    for failure in report.failures:
        if failure.history is not None:
            traces.save(failure.history, folder)
        console.print(failure.report(), markup=False)
        console.print()
    table = Table(title=f"{report.connector}, {report.budget}, seed {report.seed}")
    for heading in ("check", "rules", "result", "comparisons", "what"):
        table.add_column(heading, justify="right" if heading == "comparisons" else "left")
    for result in report.results:
        colour = {"passed": "green", "failed": "red"}.get(result.status, "yellow")
        missing = "; ".join(f"met {n} only {a} of {b} times" for n, (a, b) in result.missing.items())
        status = f"[{colour}]{result.status}[/]"
        rules = " ".join(result.check.rules)
        table.add_row(result.check.id, rules, status, str(result.observations), missing or result.check.title)
    console.print(table)
    console.print(
        f"{tally.histories} histories, {tally.rows} row versions, {tally.keys} keys compared, {report.seconds:.1f} s"
    )
    for reason, count in tally.left.items():
        console.print(f"left to Spark ({count} times): {reason}", markup=False)
    for reason, count in tally.unsupported.items():
        console.print(f"not supported ({count} histories left out): {reason}", markup=False)
    if report.left_out:
        console.print(f"left out without Spark: {', '.join(report.left_out)}")
    if report.conforms and report.inconclusive:
        console.print(
            f"inconclusive: {', '.join(report.inconclusive)}; give a larger --budget, or one --check at a time"
        )


@app.command("list")
def list_all(no_color: _NoColor = False) -> None:
    """List adapters, checks, budgets and situations."""
    console = _console(no_color)
    console.print(f"adapters: {', '.join(connectors())}")
    console.print("budgets:  " + ", ".join(f"{b.name} (at most {b.seconds_in_all:.0f} s)" for b in BUDGETS.values()))
    table = Table(title="checks")
    for heading in ("check", "rules", "what", "must meet"):
        table.add_column(heading)
    for check in CHECKS:
        quotas = ", ".join(f"{n} x{wanted}" for n, wanted in check.quotas.items())
        table.add_row(check.id, " ".join(check.rules), check.title, quotas)
    console.print(table)
    for name, meaning in SITUATIONS.items():
        console.print(f"  {name:<28} {meaning}", markup=False)


@app.command()
def replay(
    trace: Annotated[str, typer.Argument(metavar="FILE_OR_ID", help="A trace file, or the id of a saved one.")],
    connector: Annotated[str | None, typer.Option("--format", help="Adapter; all of them by default.")] = None,
    no_spark: _NoSpark = False,
    warehouse: _Warehouse = None,
    option: _Options = None,
    folder: _Traces = _TRACES,
    no_color: _NoColor = False,
) -> None:
    """Play one history again, and compare after every step."""
    try:
        history = traces.load(trace, folder)
    except ValueError as error:
        raise _fail(f"{error}") from error
    names = connectors() if connector is None else [_known("format", connector, connectors())]
    options = _catalog_options(warehouse, option)
    if options and connector is None:
        raise _fail("--warehouse and --option are of one adapter's catalog: name it by --format.")
    console = _console(no_color)
    console.print(history.table(), markup=False)
    played = without_spark(history) if no_spark else history
    outcomes = [_replayed(console, name, played, options, spark=not no_spark) for name in names]
    raise typer.Exit(0 if all(outcomes) else 1)


def _replayed(
    console: Console, connector: str, history: traces.History, options: Mapping[str, str], *, spark: bool
) -> bool:
    opened = _spark(connector, options) if spark else nullcontext(None)
    with opened as found, TemporaryDirectory(prefix="trinity-conformance-") as tables:
        subject = TrinitySubject(connector, found, Path(tables), options)
        try:
            play(subject, history, every_step=True)
        except NonConformance as failure:
            console.print(f"{connector}: failed at step {failure.step}: {failure}", markup=False)
            return False
        except Unsupported as reason:
            console.print(f"{connector}: not supported: {reason}", markup=False)
            return True
        except LeftToSpark as reason:
            console.print(f"{connector}: left to Spark: {reason}", markup=False)
            return True
        finally:
            subject.close()
    console.print(f"{connector}: passed", markup=False)
    return True


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="Name of the format: what `connector` names in a catalog's settings.")],
    folder: Annotated[Path | None, typer.Option(help="Where to; ./NAME-trinity by default.")] = None,
) -> None:
    """Write a new adapter, which conforms as it is. Change it step by step, and run the suite after each step."""
    if name in connectors():
        raise _fail(f"A format '{name}' is installed already; choose another name.")
    target = folder or Path(f"{name}-trinity")
    try:
        files = scaffold(name, target)
    except TrinityError as error:
        raise _fail(error.message) from error
    for file in files:
        typer.echo(file)
    typer.echo(f"\nNow: pip install -e '{target}[test]' && trinity-conformance run {name}")


@app.command("self-test")
def self_test(
    histories: Annotated[int, typer.Option(min=1, help="Histories that each mutant may survive.")] = 60,
    no_color: _NoColor = False,
) -> None:
    """Show that generated histories find every fault that is planted into the model. This needs no Spark."""
    console = _console(no_color)
    table = Table(title="mutants")
    for heading in ("mutant", "fault", "killed by history", "check", "shrunk to"):
        table.add_column(heading)
    outcomes = run_self_test(histories)
    for kill in outcomes:
        size = f"{kill.steps} steps, {kill.rows} rows" if kill.killed else ""
        number = str(kill.number) if kill.killed else "[red]survived[/]"
        table.add_row(kill.mutant, kill.fault, number, kill.check, size)
    console.print(table)
    raise typer.Exit(0 if all(k.killed for k in outcomes) else 1)


if __name__ == "__main__":
    app()

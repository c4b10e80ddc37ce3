"""``trinity-conformance``: run, explain, list, report, compare, replay, export, init, self-test.

Exit codes of ``run``: 0 the adapter conforms, 1 it does not, 2 wrong usage or an environment that cannot run it,
3 nothing differed, but a check saw too little to prove anything, 4 the suite itself broke, 130 it was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from trinity.errors import TrinityError
from trinity.spi import Format
from trinity_conformance.command.environment import (
    adapter,
    catalog_options,
    check_empty,
    checked_name,
    crash_saved,
    ended_by_sigterm,
    local_spark,
    origin,
    quiet,
    wrong_usage,
)
from trinity_conformance.command.explain import explain as explained
from trinity_conformance.command.progress import progress_of
from trinity_conformance.command.scaffold import TEMPLATES, scaffold
from trinity_conformance.generate.executors import without_spark
from trinity_conformance.mutants.hunt import hunt_adapters
from trinity_conformance.mutants.selftest import self_test as run_self_test
from trinity_conformance.playing import traces
from trinity_conformance.playing.again import play_case
from trinity_conformance.playing.cases import Case
from trinity_conformance.playing.coverage import SITUATIONS
from trinity_conformance.playing.differences import NonConformance, again
from trinity_conformance.playing.every_fault import every_fault
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.race_play import Races
from trinity_conformance.playing.races import Race
from trinity_conformance.playing.runner import play
from trinity_conformance.playing.subject import LeftToSpark, TrinitySubject, Unsupported
from trinity_conformance.playing.words import story
from trinity_conformance.report.case_script import case_script, case_test
from trinity_conformance.report.comparison import changes, regressions
from trinity_conformance.report.faults import hunt_to_json, show_hunt, show_kills
from trinity_conformance.report.forms import FORMS, summarise_on_github, write
from trinity_conformance.report.results import Results, load
from trinity_conformance.report.script import python_test, script
from trinity_conformance.report.text import show
from trinity_conformance.suite.budgets import BUDGETS, Budget
from trinity_conformance.suite.checks import CHECKS, check_of, checks_as_of
from trinity_conformance.suite.gaps import Gap, load_gaps
from trinity_conformance.suite.running import connectors, run_check

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # as in the command trinity
    help="Tests a table format adapter of Trinity.",
)

_INTERRUPTED = 130
"""Exit code of an interrupted run, like that of shells for Ctrl-C."""
_WIDTH = 160
"""Width of text for a file or a pipe, in characters."""
_Traces = Annotated[Path, typer.Option("--traces", help="Folder of failing histories.")]
_Warehouse = Annotated[
    str | None, typer.Option(help="Empty place of the tables, as s3://bucket/path; a temporary folder by default.")
]
_Options = Annotated[
    list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="A setting of the adapter's catalog.")
]
_NoSpark = Annotated[bool, typer.Option("--no-spark", help="Without Spark and Java: what this process plays alone.")]
_NoColor = Annotated[bool, typer.Option("--no-color", help="Plain text; NO_COLOR does the same.")]
_DURATIONS = ", ".join(f"{budget.name} ({budget.duration})" for budget in BUDGETS.values())
_Reports = Annotated[
    list[Path] | None,
    typer.Option("--report", metavar="FILE", help=f"Write the report to this file, by its ending: {' '.join(FORMS)}."),
]


def _console(no_color: bool) -> Console:
    found = Console(no_color=no_color or None, highlight=False)
    return found if found.is_terminal else Console(no_color=True, highlight=False, width=_WIDTH)


@app.command()
def run(
    connector: Annotated[
        str, typer.Argument(metavar="ADAPTER", help="Name of an installed adapter, as in `list`, or module:Class.")
    ],
    budget: Annotated[str, typer.Option(help=f"How much is played: {_DURATIONS}.")] = "smoke",
    minutes: Annotated[
        float | None, typer.Option(min=0, help="Of --budget soak: go on with fresh seeds for so long; 60 by default.")
    ] = None,
    check: Annotated[str | None, typer.Option(help="Only this check.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Number of the first history.")] = 0,
    report: _Reports = None,
    no_spark: _NoSpark = False,
    warehouse: _Warehouse = None,
    option: _Options = None,
    gaps: Annotated[Path | None, typer.Option(help="Known gaps, a TOML file: checks that may fail.")] = None,
    as_of: Annotated[
        str | None, typer.Option(metavar="VERSION", help="Only the checks that this version of the suite had.")
    ] = None,
    folder: _Traces = traces.TRACES,
    no_color: _NoColor = False,
) -> None:
    """Play generated histories on an adapter and compare every read with the model.

    Exit codes: 0 it conforms, 1 it does not, 2 wrong usage or an environment that cannot run it, 3 nothing differed,
    but a check saw too little to prove anything, 4 the suite itself broke, 130 it was interrupted by Ctrl-C or SIGTERM:
    what was played until then is reported.
    """
    subject = adapter(connector)
    chosen = _budget(budget, minutes)
    checks = _checks(check, as_of)
    _check_forms(report or ())
    options = catalog_options(warehouse, option)
    expected = _gaps(gaps)
    check_empty(subject, options)
    console = _console(no_color)
    console.print(f"{connector} ({origin(connector)}): {check or f'{checks} checks'}, {budget}, seed {seed}")
    opened = nullcontext(None) if no_spark else local_spark(subject, options)
    with crash_saved(folder), quiet(), ended_by_sigterm():
        with opened as spark, progress_of(console, connector, chosen) as shown:
            try:
                done = run_check(
                    subject,
                    spark,
                    check,
                    chosen,
                    seed,
                    progress=shown,
                    options=options,
                    as_of=as_of,
                    gaps=expected,
                    on_finding=partial(_save_finding, console, folder),
                )
            except TrinityError as error:
                raise wrong_usage(f"The adapter '{connector}' could not be run: {error}") from error
        results = Results.of(done, origin(connector), spark=not no_spark)
        show(console, results)
        for path in report or ():
            write(results, path)
        summarise_on_github(results)
    if results.interrupted:
        raise typer.Exit(_INTERRUPTED)
    raise typer.Exit({"conforms": 0, "does not conform": 1, "inconclusive": 3}[results.verdict])


def _budget(name: str, minutes: float | None) -> Budget:
    found = BUDGETS[checked_name("budget", name, list(BUDGETS))]
    if minutes is None:
        return found
    if not found.minutes:
        raise wrong_usage(f"--minutes is for --budget soak; '{name}' ends by itself.")
    return replace(found, minutes=minutes)


def _save_finding(console: Console, folder: Path, failure: NonConformance) -> None:
    """Save a finding at once, so that an interrupted run loses none."""
    saved = "" if failure.trace is None else f", saved as {traces.save(failure.trace, folder)}"
    console.print(f"found by {failure.check}{saved}", markup=False)


def _gaps(file: Path | None) -> tuple[Gap, ...]:
    try:
        return load_gaps(file) if file is not None else ()
    except TrinityError as error:
        raise wrong_usage(error.message) from error


def _check_forms(files: Sequence[Path]) -> None:
    """Check, before a run, that its reports can be written."""
    for path in files:
        checked_name("form of a report", path.suffix, list(FORMS))
        if not path.parent.is_dir():
            raise wrong_usage(f"There is no folder '{path.parent}' for the report '{path.name}': make it first.")


def _checks(check: str | None, as_of: str | None) -> int:
    """Return how many checks are asked for."""
    try:
        had = CHECKS if as_of is None else checks_as_of(as_of)
    except ValueError as error:
        raise wrong_usage(f"--as-of: {error}.") from error
    if check is None:
        return len(had)
    checked_name("check", check, [c.id for c in CHECKS])
    if check not in [c.id for c in had]:
        raise wrong_usage(f"--as-of: the suite of {as_of} had no check '{check}'.")
    return 1


@app.command()
def explain(check: Annotated[str, typer.Argument(help="Id of a check, as in `list`.")]) -> None:
    """Explain a check: its rules as the semantics states them, the histories it plays, the faults it must find."""
    typer.echo(explained(check_of(checked_name("check", check, [c.id for c in CHECKS]))))


@app.command()
def report(
    results: Annotated[Path, typer.Argument(metavar="RESULTS.json", help="What `run --report FILE.json` wrote.")],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help=f"Written by their ending: {' '.join(FORMS)}.")
    ] = None,
    no_color: _NoColor = False,
) -> None:
    """Show the results of an earlier run, or write them in other forms."""
    found = _loaded(results)
    _check_forms(files or ())
    for path in files or ():
        write(found, path)
    if not files:
        show(_console(no_color), found)


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(metavar="A.json", help="Results of the earlier run.")],
    after: Annotated[Path, typer.Argument(metavar="B.json", help="Results of the later run.")],
) -> None:
    """Compare two runs. Exits with 1 when a check proves less in the later one."""
    earlier, later = _loaded(before), _loaded(after)
    worse = regressions(earlier, later)
    for line in worse:
        typer.echo(f"worse    {line}")
    for line in changes(earlier, later):
        typer.echo(f"changed  {line}")
    raise typer.Exit(1 if worse else 0)


def _loaded(path: Path) -> Results:
    try:
        return load(path)
    except ValueError as error:
        raise wrong_usage(str(error)) from error


@app.command("list")
def list_all(no_color: _NoColor = False) -> None:
    """List adapters, checks, budgets and situations."""
    console = _console(no_color)
    console.print(f"adapters: {', '.join(connectors())}")
    console.print(f"budgets:  {_DURATIONS}")
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
    connector: Annotated[
        str | None, typer.Option("--format", help="Adapter, or module:Class; all adapters by default.")
    ] = None,
    no_spark: _NoSpark = False,
    whole: Annotated[bool, typer.Option("--whole", help="Show every row and every character of the steps.")] = False,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Once for each fault of each operation of storage.")
    ] = False,
    warehouse: _Warehouse = None,
    option: _Options = None,
    folder: _Traces = traces.TRACES,
    no_color: _NoColor = False,
) -> None:
    """Play a finding again: a history, with a comparison after every step, a race, or a case written by hand."""
    found = _trace(trace, folder)
    names = connectors() if connector is None else [connector]
    options = catalog_options(warehouse, option)
    if options and connector is None:
        raise wrong_usage("--warehouse and --option are of one adapter's catalog: name it by --format.")
    console = _console(no_color)
    if isinstance(found, Race):
        alone, replayed = True, partial(_race_again, console, race=found)
        if exhaustive:
            raise wrong_usage(f"{found.id} is a race: --exhaustive is for histories.")
    elif isinstance(found, Case):
        alone, replayed = no_spark or found.executor == "local", partial(_case_again, console, case=found)
        if exhaustive:
            raise wrong_usage(f"{found.id} is a case written by hand: --exhaustive is for histories.")
    else:
        alone = no_spark or exhaustive or found.has_faults
        found = without_spark(found) if alone else found
        play_again = _every_fault_again if exhaustive else _history_again
        replayed = partial(play_again, console, history=found, folder=folder)
    console.print(story(found, whole=whole), markup=False)
    with crash_saved(folder), quiet():
        outcomes = [_replayed(console, name, adapter(name), replayed, options, spark=not alone) for name in names]
    raise typer.Exit(0 if all(outcomes) else 1)


def _trace(trace: str, folder: Path) -> traces.Trace:
    try:
        return traces.load(trace, folder)
    except ValueError as error:
        raise wrong_usage(f"{error}") from error


def _case_again(console: Console, name: str, subject: TrinitySubject, *, case: Case) -> None:
    try:
        play_case(subject, case)
    except ValueError as error:
        raise wrong_usage(f"{error}.") from error
    console.print(f"{name}: passed", markup=False)


def _race_again(console: Console, name: str, subject: TrinitySubject, *, race: Race) -> None:
    if not subject.others_see:
        raise Unsupported("no other process sees its tables")
    with Races(subject) as played:
        played.play(race, Tally())
    console.print(f"{name}: passed", markup=False)


def _history_again(
    console: Console, name: str, subject: TrinitySubject, *, history: traces.History, folder: Path
) -> None:
    play(subject, history, every_step=True)
    console.print(f"{name}: passed", markup=False)


def _every_fault_again(
    console: Console, name: str, subject: TrinitySubject, *, history: traces.History, folder: Path
) -> None:
    try:
        console.print(f"{name}: {every_fault(subject, history)} faults", markup=False)
    except NonConformance as failure:
        if failure.history is not None:
            traces.save(failure.history, folder)
        console.print(failure.report(adapter=name), markup=False)
        raise


def _replayed(
    console: Console,
    name: str,
    subject_class: str | type[Format],
    again: Callable[[str, TrinitySubject], None],
    options: Mapping[str, str],
    *,
    spark: bool,
) -> bool:
    """Play a trace again on an adapter; return whether nothing differed."""
    check_empty(subject_class, options)
    opened = local_spark(subject_class, options) if spark else nullcontext(None)
    with opened as found, TemporaryDirectory(prefix="trinity-conformance-") as tables:
        subject = TrinitySubject(subject_class, found, Path(tables), options)
        try:
            again(name, subject)
        except NonConformance as failure:
            at = f" at step {failure.step}" if failure.step >= 0 else ""
            console.print(f"{name}: failed{at}: {failure}", markup=False)
            return False
        except Unsupported as reason:
            console.print(f"{name}: not supported: {reason}", markup=False)
        except LeftToSpark as reason:
            console.print(f"{name}: left to Spark: {reason}", markup=False)
        finally:
            subject.close()
    return True


@app.command()
def export(
    trace: Annotated[str, typer.Argument(metavar="FILE_OR_ID", help="A trace file, or the id of a saved one.")],
    connector: Annotated[str, typer.Option("--format", help="Adapter, or module:Class.")],
    as_test: Annotated[bool, typer.Option("--pytest", help="As a test of pytest.")] = False,
    no_spark: _NoSpark = False,
    option: _Options = None,
    folder: _Traces = traces.TRACES,
) -> None:
    """Print a finding as a program that needs Trinity and pyarrow alone, for a bug report."""
    adapter(connector)
    found, options, title = _trace(trace, folder), catalog_options(None, option), f"A finding in {connector}."
    if isinstance(found, Race):
        raise _only_replayed(found.id, connector, "a race of writers in processes that the suite starts")
    if isinstance(found, Case):
        try:
            text = (case_test if as_test else case_script)(found, connector, title, options)
        except ValueError as error:
            raise wrong_usage(f"{error}.") from error
    elif found.has_faults:
        raise _only_replayed(found.id, connector, "a history with a fault that the suite injects")
    else:
        played = without_spark(found) if no_spark else found
        text = (python_test if as_test else script)(played, connector, title, options)
    typer.echo(text, nl=False)


def _only_replayed(trace: str, adapter: str, what: str) -> Exception:
    return wrong_usage(f"{trace} is {what}: only the suite plays it, by `{again(trace, adapter)}`.")


@app.command()
def init(
    name: Annotated[str, typer.Argument(help="Name of the format: what `connector` names in a catalog's settings.")],
    folder: Annotated[Path | None, typer.Option(help="Where to; ./NAME-trinity by default.")] = None,
    template: Annotated[
        str, typer.Option(help="files: each version is a list of files; catalog: commits are those of a database.")
    ] = "files",
) -> None:
    """Write a new adapter, which conforms as it is. Change it step by step, and run the suite after each step."""
    if name in connectors():
        raise wrong_usage(f"A format '{name}' is installed already; choose another name.")
    target = folder or Path(f"{name}-trinity")
    try:
        files = scaffold(name, target, checked_name("template", template, list(TEMPLATES)))
    except TrinityError as error:
        raise wrong_usage(error.message) from error
    for file in files:
        typer.echo(file)
    typer.echo(f"\nNow: pip install -e '{target}[test]' && trinity-conformance run {name}")


@app.command("self-test")
def self_test(
    histories: Annotated[int, typer.Option(min=1, help="Histories that each mutant may survive.")] = 60,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="Have every check look for each fault, not until one finds it."),
    ] = False,
    report: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write what finds which fault.")] = None,
    folder: _Traces = traces.TRACES,
    no_color: _NoColor = False,
) -> None:
    """Show that every planted fault is found: first in an adapter, then in the model. Needs no Spark."""
    console = _console(no_color)
    with quiet():
        adapters = list(hunt_adapters(whole=whole))
    for finding in (finding for kill in adapters for finding in kill.found):
        traces.save(finding.trace, folder)
    show_hunt(console, adapters)
    if report is not None:
        report.write_text(hunt_to_json(adapters), encoding="utf-8")
    outcomes = run_self_test(histories)
    show_kills(console, outcomes)
    well = all(k.killed for k in adapters) and all(k.killed for k in outcomes)
    raise typer.Exit(0 if well else 1)


if __name__ == "__main__":
    app()

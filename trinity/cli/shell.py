"""The shell: statements and commands in the manner of sqlline, over a connection of :mod:`trinity.dbapi`."""

from __future__ import annotations

import logging
import os
import pydoc
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Final, TextIO

from rich.console import Console

from trinity import dbapi
from trinity.calls import as_trinity
from trinity.cli.line_editing import completions, edited_lines
from trinity.cli.output import FORMATS, Format, write_arrow, write_rows
from trinity.cli.progress import working
from trinity.errors import TrinityError, nearest
from trinity.journal import load_model
from trinity.journal.binding import statements_in
from trinity.target import Engine

_PROMPT: Final = re.compile(r"(sqlline|\d+: [^>]*|(\. )+)> ?")
"""Pattern of sqlline's prompt before a line, so that a session can be pasted."""

_CANCELLED: Final = "cancelled as part of cancellation of all jobs"
"""What Spark says of a job that Ctrl-C has cancelled."""

_HELP: Final = """\
!connect MODEL | WAREHOUSE | jdbc:calcite:model=MODEL   open another connection
!tables                 tables and views
!describe TABLE         columns of a table
!explain STATEMENT      the statements that would be sent
!plan STATEMENT         how a query or a row change would run
!history [N]            the last statements, all by default
!archive TABLE [RETENTION]   fill subsequent versions of old rows; drop those past the retention
!autocommit on|off, !commit, !rollback
!outputformat table|csv|json|arrow
!timing on|off
!quit
Statements end with a semicolon."""


class Shell:
    """A shell, which runs lines of input over one connection.

    Attributes:
        failed: True once a statement or command has failed.
        on_statement: called with each statement and command before it runs, and with the connection's SQL dialect.
        page: shows a text that may be long; None writes it as it is.
    """

    def __init__(self, out: TextIO, kind: Format, console: Console, engine: Engine = "auto") -> None:
        self._out = out
        self._kind: Format = kind
        self._console = console
        self._engine = engine
        self._connection: dbapi.Connection | None = None
        self._warehouse: str | None = None
        self._timing = True
        self._pending = ""
        self._ran: list[str] = []
        self.failed = False
        self.on_statement: Callable[[str, str], None] = lambda statement, dialect: None
        self.page: Callable[[str], None] | None = None
        self._commands: dict[str, Callable[[str], None]] = {
            "connect": self._connect_to,
            "tables": lambda _: self._show(["schema", "table", "kind"], self._open.backend.tables()),
            "describe": lambda rest: self._show(["column", "type"], self._open.backend.columns(rest.rstrip("; "))),
            "explain": self._explain,
            "plan": self._plan,
            "history": self._history,
            "archive": self._archive,
            "autocommit": self._autocommit,
            "commit": lambda _: self._open.commit(),
            "rollback": lambda _: self._open.rollback(),
            "outputformat": self._output_format,
            "timing": lambda rest: setattr(self, "_timing", rest != "off"),
            "help": lambda _: self._say(_HELP),
        }

    # -- connections ------------------------------------------------------------------------------------

    def connect(self, model: str | None, warehouse: str | None) -> None:
        """Replace the connection by a new one; each statement is its own transaction, as in sqlline.

        Raises:
            Error: as :func:`trinity.dbapi.connect`.
        """
        self.close()
        options: dict[str, Any] = {} if warehouse is None else {"engine": self._engine}
        self._connection = dbapi.connect(model, warehouse=warehouse, autocommit=True, **options)
        self._warehouse = warehouse or self._warehouse

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def _open(self) -> dbapi.Connection:
        if self._connection is None:
            raise TrinityError("CONFIGURATION_INVALID", "No connection: !connect a model or a warehouse first.")
        return self._connection

    def _connect_to(self, address: str) -> None:
        words = address.split()
        address = words[0] if words else ""
        if address.startswith("jdbc:calcite:"):
            options = dict(o.split("=", 1) for o in address.removeprefix("jdbc:calcite:").split(";") if "=" in o)
            if "model" not in options:
                raise TrinityError("INVALID_ARGUMENTS", "The URL names no model: write jdbc:calcite:model=model.json.")
            return self._connect_model(options["model"])
        if not address:
            raise TrinityError("INVALID_ARGUMENTS", "!connect what? A model's path, a warehouse's folder, or a URL.")
        return self.connect(None, address) if Path(address).is_dir() else self._connect_model(address)

    def _connect_model(self, model: str) -> None:
        """Connect a model; one that names no backend is for the warehouse of the last connection."""
        self.connect(model, self._warehouse if load_model(model).options is None else None)

    # -- input ------------------------------------------------------------------------------------------

    def run(self, lines: Iterable[str], stop: bool) -> None:
        """Run lines, with ``stop`` to the first failure; a statement ends with a semicolon or with the input."""
        for item in self._items(lines):
            if item in ("!quit", "!exit", "!q"):
                break
            self._try(item)
            if stop and self.failed:
                break

    def _items(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield commands, of one line each, and statements, of any number of lines."""
        for line in lines:
            text = _PROMPT.sub("", line, count=1) if _PROMPT.match(line) else line
            if not self._pending and text.lstrip().startswith("!"):
                yield text.strip()
                continue
            self._pending += text if text.endswith("\n") else text + "\n"
            found, self._pending = statements_in(self._pending, self._dialect)
            yield from found
        if self._pending.strip():
            yield self._pending.strip()

    def forget(self) -> None:
        """Forget the lines of a statement that has no end yet."""
        self._pending = ""

    @property
    def _dialect(self) -> str:
        return self._connection.backend.dialect if self._connection is not None else "postgres"

    @property
    def prompt(self) -> str:
        """The prompt before a line of input."""
        if self._pending:
            return ". . . . . .> "
        return f"0: {self._connection.backend.name}> " if self._connection is not None else "trinity> "

    def complete(self, text: str) -> Sequence[str]:
        """Return the words that complete the beginning of one: commands, schemas and tables, keywords of SQL."""
        if text.startswith("!"):
            return [f"!{name}" for name in self._commands if name.startswith(text[1:].lower())]
        try:
            tables = self._open.backend.tables()
        except Exception:  # no connection, or one that does not answer: no error interrupts the typing
            tables = []
        names = {name for schema, table, _ in tables for name in (schema, table, f"{schema}.{table}")}
        return completions(text, sorted(names))

    def _try(self, item: str) -> None:
        self.on_statement(item if item.startswith("!") else f"{item};", self._dialect)
        try:
            self._command(item) if item.startswith("!") else self._statement(item)
        except BrokenPipeError:  # the reader of the output has ended
            raise
        except Exception as error:
            known = as_trinity(error)
            self._fail("interrupted" if _CANCELLED in known.message else f"{known.code}: {known.message}")
        except KeyboardInterrupt:
            self._fail("interrupted")

    def _fail(self, why: str) -> None:
        self.failed = True
        self._console.print(why, style="red", markup=False, highlight=False)

    def _command(self, line: str) -> None:
        name, _, rest = line[1:].partition(" ")
        handler = self._commands.get(name.lower())
        if handler is None:
            known = list(self._commands)
            raise TrinityError("SYNTAX_ERROR", f"There is no command !{name}.{nearest(name, known)} See !help.")
        handler(rest.strip())

    # -- statements and commands ------------------------------------------------------------------------

    def _statement(self, text: str) -> None:
        self._ran.append(text)
        started = time.perf_counter()
        with working("running", self._console):
            cursor = self._open.execute(text)
            if self._kind == "arrow" and cursor.description is not None:
                write_arrow(self._out, cursor.fetch_arrow_table())
                return
            rows = cursor.fetchall() if cursor.description is not None else None
        took = f" ({time.perf_counter() - started:.3f} seconds)" if self._timing else ""
        if rows is not None and cursor.description is not None:
            self._show([d[0] for d in cursor.description], rows)
            self._say(f"{_rows(len(rows))} selected{took}")
        elif cursor.rowcount >= 0:
            self._say(f"{_rows(cursor.rowcount)} affected{took}")
        else:
            self._say(f"No rows affected{took}")

    def _show(self, columns: list[str], rows: Any) -> None:
        if self.page is None or self._kind == "arrow":
            write_rows(self._out, self._kind, columns, list(rows))
        else:
            text = StringIO()
            write_rows(text, self._kind, columns, list(rows))
            self.page(text.getvalue())

    def _say(self, text: str) -> None:
        """Write a remark: after a table to the output, after other formats to the console."""
        if self._kind == "table":
            self._out.write(text + "\n")
        else:
            self._console.print(text, markup=False, highlight=False)

    def _explain(self, text: str) -> None:
        for sent in self._open.explain(text):
            self._out.write(sent + ";\n")

    def _plan(self, text: str) -> None:
        for row in self._open.execute(f"EXPLAIN {text.rstrip('; ')}").fetchall():
            self._out.write(f"{row[0]}\n")

    def _history(self, rest: str) -> None:
        if rest and not rest.isdecimal():
            raise TrinityError("INVALID_ARGUMENTS", f"'{rest}' is no number of statements; write !history 10.")
        for number, text in list(enumerate(self._ran, 1))[-int(rest or len(self._ran)) :]:
            self._out.write(f"{number:>4}  {' '.join(text.split())}\n")

    def _archive(self, rest: str) -> None:
        table, _, retention = rest.partition(" ")
        filled, dropped = self._open.archive(table, retention.strip() or None)
        self._say(f"{_rows(filled)} filled, {_rows(dropped)} dropped")

    def _autocommit(self, rest: str) -> None:
        self._open.autocommit = rest != "off"

    def _output_format(self, rest: str) -> None:
        if rest not in FORMATS:
            raise TrinityError("INVALID_ARGUMENTS", f"'{rest}' is no output format; there are {', '.join(FORMATS)}.")
        self._kind = rest


def interact(shell: Shell) -> None:
    """Run what is typed: with line editing, completion and history of statements where Python has readline.

    Ctrl-C ends what runs, or forgets what was typed, and the next prompt comes.
    """
    logging.root.addFilter(_is_no_interrupt)
    with edited_lines(lambda: shell.prompt, shell.complete, shell.forget) as (lines, remember):
        shell.on_statement = remember
        shell.page = page if sys.stdout.isatty() else None
        shell.run(lines, stop=False)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Return False for what py4j logs when Ctrl-C interrupts a call of Spark's."""
    return not (record.exc_info and record.exc_info[0] is KeyboardInterrupt)


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def page(text: str) -> None:
    """Show a text on the terminal: as it is where it fits, else by the pager that ``PAGER`` names, or ``less``."""
    if text.count("\n") < Console().height:
        sys.stdout.write(text)
        return
    os.environ.setdefault("LESS", "-S")  # a row is a line, however wide
    pydoc.pager(text)

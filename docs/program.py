"""Pages of docs/reference that the program itself can write: table properties, commands, codes of errors, loggers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import typer.main

from trinity.cli.main import app
from trinity.errors import HTTP_STATUS, RETRYABLE, ErrorCode
from trinity.loggers import LOGGERS
from trinity.merge.functions import aggregate_function, function_names
from trinity.merge.properties import COLUMN_OPTIONS, TABLE_PROPERTIES, Property
from trinity.spi import Format
from trinity_delta import DeltaFormat
from trinity_delta.protocol import known_settings
from trinity_iceberg import IcebergFormat
from trinity_parquet import ParquetFormat

_FORMATS: Final[Mapping[str, Format]] = {"Parquet": ParquetFormat(), "Delta": DeltaFormat(), "Iceberg": IcebergFormat()}
_SEMANTICS: Final = Path(__file__).parent / "semantics.md"
_PROPERTIES: Final = """# Table properties

What `TBLPROPERTIES` of a CREATE or ALTER TABLE, and `properties=` of `create_table`, take. A key may be written in any
case, and with `_` for `-`. An unknown key is refused with the nearest known one. ALTER TABLE changes the properties
that *can change*; on the others the meaning of the stored rows depends.

| property | meaning | default | can change | formats | rules |
|---|---|---|---|---|---|
"""
_COLUMNS: Final = """
## Options of columns

They stand in a property `fields.<columns>.<option>`, as `'fields.amount.aggregate-function' = 'sum'`
([merge engines](../merge-engines.md)). They are the same on all formats, and none of them can change.

| option | meaning | default | functions | rules |
|---|---|---|---|---|
"""
_DELTA: Final = """
## Delta's own

These settings of Delta's Trinity follows itself. A table in a bucket takes no others; on a disk Spark's Delta follows
the rest ([formats](../formats.md)).

| setting | values |
|---|---|
"""
_COMMANDS: Final = """# Commands

Each command of `trinity` with its arguments and options, as `trinity COMMAND --help` shows them.
[The command line](../command-line.md) shows them at work.
"""
_CODES: Final = """# Codes of errors

Each code of a `TrinityError`, whether `error.retryable` is true of it, and `error.http_status`, by which a service
answers. [Errors](../errors.md) has the causes, and what to do.

| code | retryable | HTTP status |
|---|---|---|
"""
_LOGGERS: Final = """# Loggers

The loggers of Python's `logging` that Trinity writes to, and what each of them says at which level. No line shows a
password, a key or a token. [Logs and metrics](../operate/logging.md) shows how to listen to them.

| logger | what it says |
|---|---|
"""


def program_pages() -> Mapping[str, str]:
    """Return name of a file in docs/reference -> its text."""
    return {
        "properties.md": _properties(),
        "commands.md": _commands(),
        "codes.md": _CODES + "".join(_code(code, status) for code, status in sorted(HTTP_STATUS.items())),
        "loggers.md": _LOGGERS + "".join(f"| `{name}` | {text} |\n" for name, text in LOGGERS.items()),
    }


def _code(code: ErrorCode, status: int) -> str:
    return f"| `{code}` | {'yes' if code in RETRYABLE else 'no'} | {status} |\n"


def _properties() -> str:
    rules = _rules()
    return "".join((
        _PROPERTIES,
        *(_property(name, setting, _cited(name, rules)) for name, setting in TABLE_PROPERTIES.items()),
        *(_of_format(name, prefix) for name, found in _FORMATS.items() for prefix in found.property_prefixes),
        _COLUMNS,
        *(_column_option(name, setting, _cited(name, rules)) for name, setting in COLUMN_OPTIONS.items()),
        _DELTA,
        *(f"| `{name}` | {wanted} |\n" for name, wanted in known_settings().items()),
    ))  # fmt: skip


def _property(name: str, setting: Property, rules: str) -> str:
    return (
        f"| `{name}` | {setting.meaning} | {_default(setting)} | {'' if setting.fixed else 'yes'} | all | {rules} |\n"
    )


def _of_format(name: str, prefix: str) -> str:
    return f"| `{prefix}…` | the format's own, kept as it is written | the format's | yes | {name} | |\n"


def _column_option(name: str, setting: Property, rules: str) -> str:
    functions = ", ".join(f"`{known}`" for known in function_names() if name in _options_of(known))
    return f"| `{name}` | {setting.meaning} | {_default(setting)} | {functions} | {rules} |\n"


def _options_of(function: str) -> Mapping[str, str]:
    found = aggregate_function(function)
    return found.options if found else {}


def _default(setting: Property) -> str:
    return f"`{setting.default}`" if setting.default else ""


def _cited(name: str, rules: Mapping[str, str]) -> str:
    """Return links to the rules that mention a property."""
    named = re.compile(rf"`(?:fields\.[^`]*\.)?{re.escape(name)}(?:`| ?=)")
    return ", ".join(f"[{rule.upper()}](../semantics.md#{rule})" for rule, text in rules.items() if named.search(text))


def _rules() -> dict[str, str]:
    """Return id of a rule -> its text."""
    parts = re.split(r'<a id="(\w+)">', _SEMANTICS.read_text())
    return {rule: text.partition("\n#")[0] for rule, text in zip(parts[1::2], parts[2::2], strict=True)}


def _commands() -> str:
    group: Any = typer.main.get_command(app)
    return _COMMANDS + "".join(_command(name, group.commands[name]) for name in sorted(group.commands))


def _command(name: str, command: Any) -> str:
    rows = "".join(_parameters(command))
    table = f"\n| argument or option | meaning | default |\n|---|---|---|\n{rows}" if rows else ""
    return f"\n## trinity {name}\n\n{' '.join((command.help or '').split())}\n{table}"


def _parameters(command: Any) -> Iterator[str]:
    for given in command.params:
        if given.name == "help" or getattr(given, "hidden", False):
            continue
        names = ", ".join(f"`{name}`" for name in given.opts) if given.opts[0][0] == "-" else f"`{given.name.upper()}`"
        default = "" if callable(given.default) or given.default in (None, False, "", (), []) else f"`{given.default}`"
        text = " ".join((given.help or "").split()).replace("|", "\\|")
        yield f"| {names} | {text} | {default} |\n"

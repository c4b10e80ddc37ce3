"""Cases written by hand, as they were played: with an id, steps in words, and a name to replay them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa

from trinity_conformance.playing.content import Content, read_content

_WRITES: Final = frozenset(("append", "upsert", "delete", "compact", "vacuum", "truncate", "restore"))
_MANY: Final = 6
"""Maximum number of rows that are shown."""
_LONG: Final = 40
"""Maximum characters of a value that are shown."""


@dataclass(frozen=True)
class Case(Content):
    """A case of a check, as it was played.

    Attributes:
        check: id of the check.
        name: name of the case.
        executor: the executor of its steps.
        table: the statement that made its table; empty where a step made it.
        steps: the steps on the table up to the failure, in words.
    """

    check: str
    name: str
    executor: str
    table: str = ""
    steps: tuple[str, ...] = ()

    def _fields(self) -> Mapping[str, Any]:
        """Return the fields of the JSON, without the format."""
        return {"case": asdict(self)}

    @classmethod
    def from_json(cls, text: str) -> Case:
        """Return the case that :meth:`Content.to_json` wrote.

        Raises:
            ValueError: not a case, or one of another format.
        """
        return read_content(text, lambda data: cls(**{**data["case"], "steps": tuple(data["case"]["steps"])}))

    @property
    def story(self) -> str:
        """The case in words, with a numbered line for each step."""
        lines = [f"case '{self.name}'", *([self.table] if self.table else [])]
        return "\n".join([*lines, *(f"{number:>3}  {step}" for number, step in enumerate(self.steps))])


class Record:
    """The actions of a case in words; its steps are the actions on the last table that it used."""

    def __init__(self) -> None:
        self._tables: dict[str, str] = {}
        self._steps: dict[str, list[str]] = {}
        self._last = ""
        self._within = ""

    def made(self, name: str, how: str) -> None:
        """Note a table, and the statement that makes it; or makes it again under its name."""
        if name in self._tables:
            self.did(name, how)
            return
        self._tables[name], self._steps[name], self._last = self._plain(how, name), [], name

    def renamed(self, old: str, new: str) -> None:
        """Note that a table has another name now."""
        self._tables[new], self._steps[new], self._last = self._tables.pop(old), self._steps.pop(old), new

    def did(self, name: str, what: str) -> None:
        """Record the next action on a table."""
        self._last = name
        self._steps[name].append(self._within + self._plain(what, name))

    def ran(self, statement: str) -> None:
        """Note a statement on the table that it names, or else on the last one."""
        named = (name for name in self._steps if re.search(rf"{re.escape(name)}\b", statement))
        self.did(next(named, self._last), statement)

    @contextmanager
    def within(self, when: str) -> Iterator[None]:
        """Record that the actions of the block happen during the previous step."""
        outer, self._within = self._within, f"{self._within}  {when}: "
        try:
            yield
        finally:
            self._within = outer

    def case(self, check: str, name: str, executor: str) -> Case:
        """Return the steps so far as a case."""
        return Case(check, name, executor, self._tables.get(self._last, ""), tuple(self._steps.get(self._last, ())))

    @staticmethod
    def _plain(text: str, name: str) -> str:
        return re.sub(rf"{re.escape(name)}\b", "t", text)


class Recorded:
    """A table of Trinity whose writes are noted."""

    def __init__(self, table: Any, record: Record) -> None:
        self._table, self._record = table, record

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._table, name)
        if name not in _WRITES:
            return found

        def noted(*arguments: Any, **options: Any) -> Any:
            given = [*map(in_words, arguments), *(f"{option}={value!r}" for option, value in options.items())]
            self._record.did(str(self._table.name), " ".join([name, *given]))
            return found(*arguments, **options)

        return noted


def in_words(value: Any) -> str:
    """Return an argument of a call in words: rows as far as they are few, and the start of long values."""
    if not isinstance(value, pa.Table):
        return repr(value)
    return f"({', '.join(value.column_names)}): {_rows_in_words([row.values() for row in value.to_pylist()])}"


def _rows_in_words(rows: Sequence[Any]) -> str:
    """Return the first of some rows, and how many there are."""
    shown = " ".join(f"({', '.join(map(_value, row))})" for row in rows[:_MANY])
    return shown if len(rows) <= _MANY else f"{shown} ... {len(rows)} rows"


def _value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."

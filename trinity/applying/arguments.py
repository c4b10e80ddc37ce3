"""The arguments of ``apply_changes``, checked against the columns of the source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trinity.engine.program import Expression, text_of
from trinity.errors import TrinityError, nearest
from trinity.messages import value_text

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

START_AT: Final = "__START_AT"
"""The column of SCD type 2 with the sequence from which a version of a row is valid."""

END_AT: Final = "__END_AT"
"""The column of SCD type 2 with the sequence at which a version of a row ends; NULL for the current version."""


@dataclass(frozen=True)
class ApplyArguments:
    """The checked arguments, with columns in the source's spelling.

    Attributes:
        keys: columns that identify rows.
        sequence: columns by which events are ordered, compared left to right.
        columns: columns that the target stores, in the source's order; keys among them.
        tracked: for SCD type 2, the columns whose change begins a new version.
        history: True for SCD type 2.
        ignore_nulls: True when a NULL leaves the value as it was.
    """

    keys: tuple[str, ...]
    sequence: tuple[str, ...]
    columns: tuple[str, ...]
    tracked: tuple[str, ...]
    deletes: Expression | None = None
    history: bool = False
    ignore_nulls: bool = False

    @property
    def by_start(self) -> bool:
        """True when the target has no column of the sequence: its :data:`START_AT` identifies an event of a key."""
        return self.history and self.sequence[0] not in self.columns


def null_value(table: str, what: str, name: str) -> TrinityError:
    """Return the error of an event that has NULL in a column of its key, or of its sequence."""
    return TrinityError(
        "CONSTRAINT_VIOLATION",
        f"An event for table '{table}' has NULL in its {what} column '{name}'; leave such events out of the source, or "
        "give them a value.",
    )


@dataclass(frozen=True)
class RawArguments:
    """The arguments as given to :func:`~trinity.applying.apply.apply_changes`, which documents them."""

    keys: Sequence[str]
    sequence_by: str | SparkColumn | Sequence[str]
    apply_as_deletes: Expression | None
    ignore_null_updates: bool
    column_list: Sequence[str] | None
    except_columns: Sequence[str] | None
    stored_as_scd_type: int | str
    track_history_column_list: Sequence[str] | None
    track_history_except_column_list: Sequence[str] | None

    def checked(self, source: Sequence[str]) -> ApplyArguments:
        """Check the arguments against the names of the source's columns.

        Raises:
            TrinityError: COLUMN_NOT_FOUND, DUPLICATE_COLUMN_NAME, INVALID_ARGUMENTS, NOT_SUPPORTED.
        """
        known = {name.lower(): name for name in source}
        history = _history(self.stored_as_scd_type)
        key = _named_columns("keys", self.keys, known)
        sequence = _named_columns("sequence_by", _names_of(self.sequence_by), known)
        if both := [name for name in sequence if name in key]:
            message = f"Column '{both[0]}' is in keys and in sequence_by; it can be in one."
            raise TrinityError("INVALID_ARGUMENTS", message)
        lists = ("column_list", self.column_list), ("except_columns", self.except_columns)
        chosen = _stored_columns(*lists, known, source)
        columns = tuple(name for name in source if name in chosen)
        _check_stored(key, sequence, columns, history)
        tracked = self._tracked([name for name in columns if name not in key], sequence) if history else ()
        found = ApplyArguments(
            key, sequence, columns, tracked, self.apply_as_deletes, history, self.ignore_null_updates
        )
        if history:
            _check_history(found)
        else:
            self._check_untracked()
        return found

    def _tracked(self, values: Sequence[str], sequence: Sequence[str]) -> tuple[str, ...]:
        only = ("track_history_column_list", self.track_history_column_list)
        without = ("track_history_except_column_list", self.track_history_except_column_list)
        by_default = [name for name in values if name not in sequence]
        return tuple(_stored_columns(only, without, {name.lower(): name for name in values}, by_default))

    def _check_untracked(self) -> None:
        if self.track_history_column_list is not None or self.track_history_except_column_list is not None:
            raise TrinityError(
                "INVALID_ARGUMENTS",
                "track_history_column_list and track_history_except_column_list belong to stored_as_scd_type=2, which "
                "keeps a history.",
            )


def _names_of(given: str | SparkColumn | Sequence[str]) -> Sequence[str]:
    """Return the columns that ``sequence_by`` names: one, a list, ``col("a")`` or ``struct("a", "b")``.

    Raises:
        TrinityError: INVALID_ARGUMENTS for another expression.
    """
    if isinstance(given, str):
        return [given]
    if isinstance(given, Sequence):
        return given
    text = text_of(given)
    parts = text[7:-1].split(", ") if text.startswith("struct(") and text.endswith(")") else [text]
    if all(part and not set(part) & set("() +*'\"") for part in parts):
        return parts
    message = f"sequence_by = {text} is an expression; make it a column of the source, and give its name."
    raise TrinityError("INVALID_ARGUMENTS", message)


def _history(given: int | str) -> bool:
    if str(given) not in ("1", "2"):
        raise TrinityError("INVALID_ARGUMENTS", f"stored_as_scd_type = {value_text(given)}; it is 1 or 2.")
    return str(given) == "2"


def _named_columns(word: str, given: Sequence[str], known: dict[str, str], *, empty: bool = False) -> tuple[str, ...]:
    """Return the columns that an argument names, in the source's spelling."""
    if not given and not empty:
        raise TrinityError("INVALID_ARGUMENTS", f"{word} names no column.")
    found: list[str] = []
    for name in given:
        if name.lower() not in known:
            has = ", ".join(known.values())
            message = f"{word}: there is no column '{name}'.{nearest(name, list(known.values()))} There are: {has}."
            raise TrinityError("COLUMN_NOT_FOUND", message)
        if known[name.lower()] in found:
            raise TrinityError("DUPLICATE_COLUMN_NAME", f"{word} names column '{name}' twice.")
        found.append(known[name.lower()])
    return tuple(found)


def _stored_columns(
    only: tuple[str, Sequence[str] | None],
    without: tuple[str, Sequence[str] | None],
    known: dict[str, str],
    by_default: Sequence[str],
) -> Sequence[str]:
    """Return the columns that argument ``only`` lists, or the default ones without those that ``without`` lists.

    Both are (name of the argument, its value).
    """
    if only[1] is not None and without[1] is not None:
        raise TrinityError("INVALID_ARGUMENTS", f"Give {only[0]} or {without[0]}, not both.")
    if only[1] is not None:
        return _named_columns(only[0], only[1], known, empty=True)
    left_out = _named_columns(without[0], without[1] or (), known, empty=True)
    return [name for name in by_default if name not in left_out]


def _check_stored(key: Sequence[str], sequence: Sequence[str], columns: Sequence[str], history: bool) -> None:
    """Refuse a choice of columns that leaves out columns which the target must store."""
    for name in key:
        if name not in columns:
            raise TrinityError("INVALID_ARGUMENTS", f"Column '{name}' is a key, and the target must store it.")
    kept = [name for name in sequence if name in columns]
    if not history and len(kept) < len(sequence):
        missing = next(name for name in sequence if name not in columns)
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"Column '{missing}' is left out of the target, which must store it: by the sequence of a stored row a "
            "late event loses. Take it out of except_columns, or into column_list.",
        )
    if history and 0 < len(kept) < len(sequence):
        raise TrinityError("INVALID_ARGUMENTS", "Store all columns of sequence_by in the target, or none of them.")
    for name in columns:
        if history and name.upper() in (START_AT, END_AT):
            message = f"The source has a column '{name}', which apply_changes makes; leave it out, by except_columns."
            raise TrinityError("DUPLICATE_COLUMN_NAME", message)


def _check_history(arguments: ApplyArguments) -> None:
    if arguments.ignore_nulls:
        raise TrinityError(
            "NOT_SUPPORTED",
            "ignore_null_updates with stored_as_scd_type=2 is not supported: each version would need to remember which "
            "of its values were given. Fill the NULLs in the source, or store as SCD type 1.",
        )
    untracked = [c for c in arguments.columns if c not in (*arguments.keys, *arguments.sequence, *arguments.tracked)]
    if arguments.by_start and (len(arguments.sequence) > 1 or untracked):
        why = f"column '{untracked[0]}' is not tracked" if untracked else "sequence_by has several columns"
        raise TrinityError(
            "INVALID_ARGUMENTS",
            f"The columns of sequence_by are left out of the target, and {why}: the target then needs them, to tell "
            f"the events of a version apart. Store {', '.join(arguments.sequence)}.",
        )

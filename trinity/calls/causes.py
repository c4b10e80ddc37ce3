"""Translates errors of Spark, py4j, sqlglot, pyarrow, pyiceberg, psycopg, storage and system to TrinityErrors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from trinity.calls.spark import from_java, from_spark, stopped_meanwhile
from trinity.depth import too_deep
from trinity.errors import ErrorCode, TrinityError, first_line, system_code

_Item = TypeVar("_Item")
_MOST: Final = 300
"""Maximum characters of a library's message that are shown."""


def as_trinity(error: Exception) -> TrinityError:
    """Return a TrinityError as it is, and any other error as a TrinityError with its message.

    An error without a translation is GENERIC_INTERNAL_ERROR.
    """
    if isinstance(error, TrinityError):
        return error
    for kind in type(error).__mro__:
        package = kind.__module__.partition(".")[0]
        translate = _BY_PACKAGE.get(package) or _BY_NAME.get(kind.__name__ if package == "builtins" else "")
        found = translate(error) if translate is not None else None
        if found is not None:
            return found
    return TrinityError(
        "GENERIC_INTERNAL_ERROR",
        f"{type(error).__name__}: {_sentence(error)} This is not expected; where your own code has not raised it, "
        "please report it with its traceback.",
    )


def translated(items: Iterable[_Item]) -> Iterator[_Item]:
    """Yield items; raise their errors as TrinityErrors."""
    try:
        yield from items
    except Exception as error:
        raise as_trinity(error) from error


def _sentence(error: Exception) -> str:
    """Return the first line of an error's message as a sentence, cut when it is long."""
    text = first_line(error)
    text = text if len(text) <= _MOST else f"{text[:_MOST]}..."
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _from_py4j(error: Any) -> TrinityError | None:
    if hasattr(error, "java_exception"):
        return from_java(error)
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, UnicodeEncodeError):
            return TrinityError("INVALID_ARGUMENTS", "A text holds half of a surrogate pair, which is no character.")
        behind = behind.__cause__ or behind.__context__
    if type(error).__name__ == "Py4JNetworkError":
        return TrinityError("CONFIGURATION_INVALID", "Spark's JVM does not answer: it was stopped, or has died.")
    return None


def _from_arrow(error: Exception) -> TrinityError | None:
    names = [kind.__name__ for kind in type(error).__mro__]
    if isinstance(error, OSError):
        return _from_system(error)
    code = next((_ARROW[name] for name in names if name in _ARROW), None)
    return TrinityError(code, f"The data is not understood: {_sentence(error)}") if code is not None else None


def _from_catalog(error: Exception) -> TrinityError:
    names = [kind.__name__ for kind in type(error).__mro__]
    code: ErrorCode = next((_CATALOG[name] for name in names if name in _CATALOG), "FILESYSTEM_ERROR")
    return TrinityError(code, f"The catalog refuses: {_sentence(error)}")


def _from_postgres(error: Any) -> TrinityError:
    state = error.sqlstate or "08000"  # without one the server was not reached, or is gone
    code = _POSTGRES.get(state, _POSTGRES.get(state[:3], _POSTGRES.get(state[:2], "INVALID_ARGUMENTS")))
    return TrinityError(code, f"PostgreSQL refuses: {_sentence(error)}")


def _from_sqlglot(error: Exception) -> TrinityError:
    return TrinityError("SYNTAX_ERROR", f"The text cannot be parsed: {_sentence(error)}")


def _from_storage(error: Exception) -> TrinityError:
    return TrinityError("FILESYSTEM_ERROR", f"The storage fails: {_sentence(error)}")


def _from_system(error: OSError) -> TrinityError:
    return TrinityError(system_code(error), f"The system refuses: {_sentence(error)}")


def _from_value(error: Exception) -> TrinityError | None:
    """Translate the ValueErrors for a path with NUL, and for a time in a year that Python lacks."""
    if any(text in str(error) for text in ("is out of range", "ordinal must be")):
        return _beyond(error)
    if "embedded null" in str(error):
        return TrinityError("INVALID_ARGUMENTS", "A path holds the character NUL; give another one.")
    return None


def _beyond(error: Exception) -> TrinityError:
    if any(text in str(error) for text in ("date value out of range", "year ", "ordinal must be")):
        message = (
            "A date or a time is beyond the years 1 to 9999, which are all that Python's dates have: read the column "
            f"by to_arrow(), or by CAST(… AS STRING). ({_sentence(error)})"
        )
    else:
        message = f"A number or a time is beyond what can be kept: {_sentence(error)}"
    return TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", message)


_BY_PACKAGE: Final[dict[str, Callable[[Any], TrinityError | None]]] = {
    "pyspark": from_spark,
    "py4j": _from_py4j,
    "sqlglot": _from_sqlglot,
    "pyarrow": _from_arrow,
    "psycopg": _from_postgres,
    "pyiceberg": _from_catalog,
    "sqlalchemy": _from_catalog,
    "obstore": _from_storage,
}
"""Package of an exception's class -> its translation."""

_BY_NAME: Final[dict[str, Callable[[Any], TrinityError | None]]] = {
    "AttributeError": stopped_meanwhile,
    "OSError": _from_system,
    "OverflowError": _beyond,
    "RecursionError": lambda _: too_deep(),
    "ValueError": _from_value,
}
"""Name of one of Python's own exceptions -> its translation."""

_ARROW: Final[dict[str, ErrorCode]] = {
    "ArrowNotImplementedError": "NOT_SUPPORTED",
    "ArrowTypeError": "TYPE_MISMATCH",
    "ArrowCapacityError": "NOT_SUPPORTED",
    "ArrowInvalid": "INVALID_ARGUMENTS",
}

_POSTGRES: Final[dict[str, ErrorCode]] = {
    "08": "CONFIGURATION_INVALID",
    "28": "PERMISSION_DENIED",
    "42501": "PERMISSION_DENIED",
    "42704": "CONFIGURATION_INVALID",  # no such slot, or publication
    "53": "CONFIGURATION_INVALID",  # no slots are left
    "55000": "CONFIGURATION_INVALID",  # wal_level is too low, or the slot's log was removed
    "55006": "TRANSACTION_CONFLICT",
    "57P": "CONFIGURATION_INVALID",  # the server shuts down, or starts
}
"""SQLSTATE, or the beginning of one -> code."""

_CATALOG: Final[dict[str, ErrorCode]] = {
    "NoSuchTableError": "TABLE_NOT_FOUND",
    "NoSuchNamespaceError": "SCHEMA_NOT_FOUND",
    "TableAlreadyExistsError": "TABLE_ALREADY_EXISTS",
    "NamespaceAlreadyExistsError": "SCHEMA_ALREADY_EXISTS",
    "NamespaceNotEmptyError": "SCHEMA_NOT_EMPTY",
    "CommitFailedException": "TRANSACTION_CONFLICT",
    "UnauthorizedError": "PERMISSION_DENIED",
    "ForbiddenError": "PERMISSION_DENIED",
}

"""Settings of the user's Spark that change what SQL means: while Trinity analyses or writes they have defaults (N3).

Spark reads most of these settings when it analyses an expression. So a lazy DataFrame keeps the meaning that it had
when it was made, whatever the settings are when it is collected.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from trinity.errors import TrinityError
from trinity.spark.remote import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULTS: Final[Mapping[str, str]] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.crossJoin.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.groupByAliases": "true",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.mapKeyDedupPolicy": "exception",
    "spark.sql.orderByOrdinal": "true",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.storeAssignmentPolicy": "ansi",
    "spark.sql.timestampType": "timestamp_ltz",
}
"""Setting -> Spark's own default, in lower case."""
_WANTED: Final[Mapping[str, str]] = {**_DEFAULTS, "spark.sql.variable.substitute": "false"}
"""Setting -> the value that :func:`pinned` sets.

By default Spark replaces ``${name}`` by a variable, even in literals; that is switched off.
"""
_LEGACY: Final = "spark.sql.legacy."
_OWN: Final = frozenset({"spark.sql.legacy.bucketedTableScan.outputOrdering"})
"""Legacy settings that Trinity itself sets, and that do not change what SQL means."""
_JAVA_TIMES: Final = "spark.sql.datetime.java8API.enabled"
"""Setting that is switched on, and stays so. Without it Spark filters files by a calendar without 5-14 October 1582."""
REMOTE_SETTINGS: Final[Mapping[str, str]] = {"spark.sql.variable.substitute": "false", _JAVA_TIMES: "true"}
"""Settings that a session of Spark Connect gets when it is given to Trinity, and keeps."""
_SET: Final = re.compile(r"^(spark\.sql\.[\w.]+) -> (.*)$", re.MULTILINE)
"""A line with a setting in the text of a Scala map."""
_NAME: Final = re.compile(r"^([\w.\-]+) -> ", re.MULTILINE)
_LONG: Final = 4096
"""Most characters of a short answer: an answer from 8 KB on is sent in two parts, with 40 ms in between."""
_LATE: Final = (
    (
        "spark.sql.legacy.timeParserPolicy",
        r"\b(?:try_)?(?:to_date|to_timestamp(?:_ltz|_ntz)?|to_time|date_format|(?:from_|to_)?unix(?:_timestamp|time))\s*\(",
    ),
    (
        "spark.sql.mapKeyDedupPolicy",
        r"\b(?:map|map_concat|map_from_arrays|map_from_entries|str_to_map|transform_keys)\s*\(",
    ),
)
"""Settings that Spark reads only while a query runs, each with a pattern of the functions that it changes."""
_lock: Final = threading.Lock()
_statements: Final[dict[str, tuple[int, dict[str, str | None]]]] = {}
"""JVM session -> the number of holders of its settings, and the settings' values before the first holder."""
_others: Final[dict[str, Any]] = {}
"""JVM session -> names (a Scala Seq) of its settings outside SQL, whose values may be long, such as lists of JARs."""
_within: Final[ContextVar[tuple[SparkSession, ...]]] = ContextVar("_within", default=())
"""The sessions whose settings the caller already holds."""


@contextmanager
def pinned(spark: SparkSession) -> Iterator[None]:
    """Set the settings that change what SQL means to fixed values during the block, and restore the user's afterwards.

    The values are Spark's defaults, except that ``${`` in a text is text (N2). Several threads may hold the settings of
    one session. Nested calls ask the JVM only once. Over Spark Connect the settings are checked instead.
    """
    outer = _within.get()
    if any(spark is other for other in outer):
        yield
        return
    token = _within.set((*outer, spark))
    try:
        if is_remote(spark):
            _check_remote(spark)
            yield
        else:
            with _needed_settings(spark, spark._jsparkSession):
                yield
    finally:
        _within.reset(token)


@contextmanager
def _needed_settings(spark: SparkSession, session: Any) -> Iterator[None]:
    with ExitStack() as held:
        with _lock:
            name = str(session.sessionUUID())
            changed = _changed_settings(spark, session, name)
            running, before = _statements.get(name, (0, {}))
            if running or changed:
                _statements[name] = (running + 1, {**changed, **before})
                held.callback(_release, spark, name)  # also if setting them fails or is interrupted
            for key in changed:
                if key in _WANTED:
                    spark.conf.set(key, _WANTED[key].upper())
                else:
                    spark.conf.unset(key)
        yield


def _changed_settings(spark: SparkSession, session: Any, name: str) -> dict[str, str | None]:
    """Return setting -> value, None for unset, for the settings that differ from the fixed values."""
    found = dict(_SET.findall(_settings_text(spark, session, name)))
    if found.get(_JAVA_TIMES, "").lower() != "true":
        spark.conf.set(_JAVA_TIMES, "true")
    return _different_settings(found)


def _settings_text(spark: SparkSession, session: Any, name: str) -> str:
    """Return a line for each setting; once an answer was long, without the settings outside SQL that it had."""
    settings = session.sessionState().conf().getAllConfs()
    if name in _others:
        settings = settings.removedAll(_others[name])
    text = str(settings.mkString("\n"))
    if len(text) > _LONG:
        names = [key for key in _NAME.findall(text) if not key.startswith("spark.sql.")]
        _others[name] = spark._jvm.PythonUtils.toSeq(names)  # type: ignore[union-attr]
    return text


def _different_settings(found: Mapping[str, str]) -> dict[str, str | None]:
    unlike: dict[str, str | None] = {
        key: found.get(key)
        for key, wanted in _WANTED.items()
        if found.get(key, _DEFAULTS.get(key, "")).lower() != wanted
    }
    return unlike | {k: v for k, v in found.items() if k.startswith(_LEGACY) and k not in _OWN}


def _check_remote(spark: SparkSession) -> None:
    """Refuse settings that differ from the fixed values.

    Over Spark Connect a frame is analysed when it is collected, so settings cannot be held for it.

    Raises:
        TrinityError: CONFIGURATION_INVALID naming a setting, and what to do.
    """
    for key, value in _different_settings(spark.conf.getAll).items():
        wanted = f"spark.conf.set('{key}', '{_WANTED[key]}')" if key in _WANTED else f"spark.conf.unset('{key}')"
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"What SQL means would depend on {key}={value}, which Spark Connect asks when a frame is used; {wanted}.",
        )


def _release(spark: SparkSession, name: str) -> None:
    with _lock:
        count, before = _statements[name]
        if count > 1:
            _statements[name] = (count - 1, before)
            return
        del _statements[name]
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def check_late_settings(spark: SparkSession, text: str) -> None:
    """Refuse a query whose answer depends on a setting that Spark reads only when the query runs.

    Raises:
        TrinityError: CONFIGURATION_INVALID naming the setting.
    """
    for key, functions in _LATE:
        value = spark.conf.get(key, None)
        used = re.search(functions, text, re.IGNORECASE)
        if used and value is not None and value.lower() not in ("exception", "corrected"):
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"The answer of {used[0].rstrip('( ')} would depend on {key}={value}, which Spark asks as the query is "
                f"collected; unset it: spark.conf.unset('{key}').",
            )

"""Translates Spark's errors to TrinityErrors, and recognises sessions and DataFrames of a stopped Spark.

Of an error of Python in a worker process Spark passes on only the text: a traceback, with its own sentences before it
and the stack of Java behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from trinity.depth import too_deep
from trinity.errors import CODES, ErrorCode, TrinityError, first_line
from trinity.hidden import HIDDEN_PREFIX
from trinity.messages import shown_value, without_traceback

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

STOPPED: Final = "belongs to a Spark that was stopped; make it anew, by session.spark"
"""The end of a message about a DataFrame or session of a stopped Spark."""
_TEXTS: Final = ("stopped SparkContext", "SparkContext was shut down", 'SparkPlan.session()" is null')


def is_stopped(of: Any) -> bool:
    """Return whether a session, or a DataFrame, belongs to a Spark that this process stopped."""
    session = getattr(of, "sparkSession", of)
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return bool(getattr(session, "is_stopped", False))
    context = getattr(session, "sparkContext", None)  # None for frames of pandas on Spark
    return context is not None and context._jsc is None


def _stopped_error(text: str) -> TrinityError | None:
    """Return CONFIGURATION_INVALID for a message that Spark was stopped; None for any other message."""
    return _stopped() if any(phrase in text for phrase in _TEXTS) else None


def stopped_meanwhile(error: AttributeError) -> TrinityError | None:
    """Return CONFIGURATION_INVALID where pyspark met a context that another thread stopped; None for other errors."""
    raised = error.__traceback__
    while raised is not None and raised.tb_next is not None:
        raised = raised.tb_next
    of = raised.tb_frame.f_locals.get("self") if raised is not None else None
    context = vars(of).get("_context", of) if hasattr(of, "__dict__") else None
    stopped = type(context).__name__ == "SparkContext" and getattr(context, "_jsc", context) is None
    return _stopped() if stopped else None


def _stopped() -> TrinityError:
    return TrinityError("CONFIGURATION_INVALID", "Spark was stopped while it was in use. Run it again: session.spark.")


_BEGINS: Final = "Traceback (most recent call last):\n"
_ENDS: Final = re.compile(r"\n(?:\tat | SQLSTATE: |=== Streaming Query|\nJVM stacktrace|Driver stacktrace)")
"""The beginning of Spark's text after the text of an error."""
_ERROR: Final = re.compile(r"(?:(?P<module>[\w.]+)\.)?(?P<kind>\w+)(?:: (?P<message>.*))?", re.DOTALL)
_CODE: Final = re.compile(r"\[(?P<code>\w+)\] (?P<message>.*)")
_REMEDY: Final = (
    "Workers run the Python that the variable PYSPARK_PYTHON names: before Spark is started, set it to one that has "
    "the same packages as the driver's."
)


_CRASHED: Final = {
    "Python worker exited unexpectedly": (
        "A Python worker of Spark's has ended without an error: the system has taken it, as for lack of memory, or "
        "code that is not Python has crashed in a function of yours. spark.python.worker.faulthandler.enabled=true, "
        "and spark.sql.execution.pyspark.udf.faulthandler.enabled=true, have Spark's log say where."
    ),
    "Python worker failed to connect back": (
        "A Python process of Spark's did not report to Spark within its time: the machine is too busy to start it, or "
        "its Python does not start; Spark's log has what it said. Run the statement again, or let fewer tasks run at "
        f"once. {_REMEDY}"
    ),
}
"""What Spark says of a worker that has gone -> what that means, and the remedy."""


def _worker_crashed(text: str) -> TrinityError | None:
    """Return CONFIGURATION_INVALID for a message that a worker crashed or did not start; None for any other one."""
    meaning = next((meaning for phrase, meaning in _CRASHED.items() if phrase in text), None)
    return None if meaning is None else TrinityError("CONFIGURATION_INVALID", meaning)


def _raised_in_python(text: str, code_of: Callable[[str], ErrorCode]) -> TrinityError | None:
    """Return the error of a Python traceback in Spark's message; None for a text without a traceback.

    A TrinityError keeps its code and message. A missing module is CONFIGURATION_INVALID. ``code_of`` returns the code
    of any other error, by its message.
    """
    _, begins, frames = text.rpartition(_BEGINS)
    raised = _ERROR.fullmatch(_ENDS.split(without_traceback(begins + frames), maxsplit=1)[0].strip())
    if not begins or raised is None:
        return None
    message = " ".join((raised["message"] or "").split())
    own = _CODE.fullmatch(message) if (raised["module"] or "").startswith("trinity.") else None
    if own is not None and own["code"] in CODES:
        return TrinityError(own["code"], own["message"])  # type: ignore[arg-type]
    shown = f"Python in a process of Spark's has raised {raised['kind']}: {message}".rstrip(": ")
    if raised["kind"] in ("ImportError", "ModuleNotFoundError"):
        return TrinityError("CONFIGURATION_INVALID", f"{shown}. {_REMEDY}")
    return TrinityError(code_of(message), shown)


_PREFIXES: Final[Mapping[ErrorCode, tuple[str, ...]]] = {
    "COLUMN_NOT_FOUND": (
        "UNRESOLVED_COLUMN", "UNRESOLVED_USING_COLUMN_FOR_JOIN", "UNRESOLVED_FIELD", "UNRESOLVED_MAP_KEY",
        "FIELD_NOT_FOUND", "COLUMN_NOT_FOUND", "CANNOT_RESOLVE_STAR_EXPAND",
    ),
    "TABLE_NOT_FOUND": ("TABLE_OR_VIEW_NOT_FOUND", "VIEW_NOT_FOUND"),
    "SCHEMA_NOT_FOUND": ("SCHEMA_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE"),
    "CATALOG_NOT_FOUND": ("CATALOG_NOT_FOUND",),
    "TABLE_ALREADY_EXISTS": ("TEMP_TABLE_OR_VIEW_ALREADY_EXISTS", "TABLE_OR_VIEW_ALREADY_EXISTS"),
    "SYNTAX_ERROR": ("PARSE_", "INVALID_SQL_SYNTAX", "UNCLOSED_BRACKETED_COMMENT"),
    "TYPE_MISMATCH": (
        "DATATYPE_MISMATCH", "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", "CAST_INVALID_INPUT", "INCOMPATIBLE_COLUMN_TYPE",
        "UNION_NOT_COMPATIBLE", "INVALID_TYPED_LITERAL",
    ),
    "NOT_SUPPORTED": ("UNSUPPORTED_", "NOT_SUPPORTED", "FAILED_TO_PARSE_TOO_COMPLEX"),
    "NUMERIC_VALUE_OUT_OF_RANGE": (
        "ARITHMETIC_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "CAST_OVERFLOW",
    ),
    "SUBQUERY_MULTIPLE_ROWS": ("SCALAR_SUBQUERY_TOO_MANY_ROWS",),
    "CONFIGURATION_INVALID": ("PYTHON_VERSION_MISMATCH",),
}  # fmt: skip
"""Trinity's code -> prefixes of Spark's error conditions."""


def _code(condition: str) -> ErrorCode | None:
    """Return the code of an error condition of Spark; None for an unknown one."""
    return next((code for code, prefixes in _PREFIXES.items() if condition.startswith(prefixes)), None)


def _from_python(text: str) -> TrinityError | None:
    """Return the error for a Python exception in a worker, or for its crash, by Spark's message; else None."""
    return _worker_crashed(text) or _raised_in_python(
        text, lambda raised: _code(raised.lstrip("[")) or "INVALID_ARGUMENTS"
    )


def from_spark(error: PySparkException) -> TrinityError:
    """Return Spark's error as a TrinityError; INVALID_ARGUMENTS where no other code fits."""
    from trinity.spark_names import ArithmeticException, ParseException

    text = str(getattr(error, "desc", None) or error)
    if (stopped := _stopped_error(text)) is not None:
        return stopped
    condition = error.getCondition() or ""
    message = _message(text)
    raised = _RAISED.match(message)
    if condition == "USER_RAISED_EXCEPTION" and raised and raised[1] in CODES:
        return TrinityError(raised[1], raised[2])  # type: ignore[arg-type]
    if (code := _code(condition)) is not None:
        return TrinityError(code, message)
    if (of_worker := _from_python(text)) is not None:
        return of_worker
    if isinstance(error, ArithmeticException) and not condition:
        return _out_of_range(message)
    return TrinityError("SYNTAX_ERROR" if isinstance(error, ParseException) else "INVALID_ARGUMENTS", message)


_RAISED: Final = re.compile(r"([A-Z_]+): (.*)", re.DOTALL)
"""The text of an error that a fold raises by raise_error: Trinity's code, then the message."""


def _out_of_range(message: str) -> TrinityError:
    """Return the error for an arithmetic error of Java, such as for a time beyond the last TIMESTAMP."""
    return TrinityError("NUMERIC_VALUE_OUT_OF_RANGE", f"A result is out of range: {message}.")


def _message(text: str) -> str:
    """Return Spark's message without the plan that follows it, and without hidden columns."""
    text = re.split(r";?\n'|\nJVM stacktrace|\n\n?== SQL|;\n", text, maxsplit=1)[0]
    # positions refer to the rewritten text, which the user does not know
    text = re.sub(r"^\s*\[[A-Z0-9_.]+\]\s*|\s*SQLSTATE: \w+|; line \d+ pos \d+|\(line \d+, pos \d+\)", "", text)
    # the engine's own columns are no suggestions for users
    text = re.sub(rf"(?<=\[)((?:`\w+`\.)?`{HIDDEN_PREFIX}\w+`, )+|, (?:`\w+`\.)?`{HIDDEN_PREFIX}\w+`", "", text)
    return " ".join(text.split())


@contextmanager
def spark_errors() -> Iterator[None]:
    """Raise Spark's errors within the block as TrinityErrors."""
    from py4j.protocol import Py4JJavaError

    from trinity.spark_names import PySparkException

    try:
        with quiet():
            yield
    except PySparkException as error:
        raise from_spark(error) from error
    except Py4JJavaError as error:
        known = from_java(error)
        if known is None:
            raise
        raise known from error


def from_java(error: Py4JJavaError) -> TrinityError | None:
    """Return a TrinityError for a Java error with a known condition or class; else None.

    A condition without a code is INVALID_ARGUMENTS, an unreadable file BAD_DATA, unless a cause has a code of its own.
    An internal error of Spark, as for a lambda outside a function call, is GENERIC_INTERNAL_ERROR.
    """
    found: TrinityError | None = None
    stumbled: TrinityError | None = None
    exception = error.java_exception
    while exception is not None:
        if exception.getClass().getSimpleName() == "StackOverflowError":
            return too_deep()
        text = str(exception.getMessage() or "")
        if (stopped := _stopped_error(text)) is not None:
            return stopped
        if (code := _OF_STORES.get(exception.getClass().getName())) is not None:
            return TrinityError(code, f"An object store failed Spark: {shown_value(first_line(text))}.")
        condition = re.match(r"\[([A-Z0-9_.]+)\] ([^\n]*)", text)
        if condition is None and exception.getClass().getName() == "java.lang.ArithmeticException":
            return _out_of_range(first_line(text))
        message = re.sub(r"\s*SQLSTATE: \w+", "", condition[2]) if condition is not None else f"{first_line(text)}."
        if (code := _code(condition[1] if condition is not None else "")) is not None:
            return TrinityError(code, message)
        if (of_worker := _from_python(text)) is not None:
            return of_worker
        has_condition = condition is not None and not condition[1].startswith("INTERNAL_ERROR")
        if condition is not None and not has_condition and stumbled is None:
            message = f"Spark fails by an error of its own: {shown_value(message)}"
            stumbled = TrinityError("GENERIC_INTERNAL_ERROR", message)
        if found is None and (has_condition or exception.getClass().getName() in _ARGUMENTS):
            corrupt = condition is not None and condition[1].startswith("FAILED_READ_FILE")
            found = TrinityError("BAD_DATA" if corrupt else "INVALID_ARGUMENTS", message)
        exception = exception.getCause()
    return found or stumbled


_GOOGLE: Final = "com.google.cloud.hadoop.repackaged.gcs.com.google.api.client"
_OF_STORES: Final[Mapping[str, ErrorCode]] = {
    "java.nio.file.AccessDeniedException": "PERMISSION_DENIED",
    "org.apache.hadoop.fs.UnsupportedFileSystemException": "CONFIGURATION_INVALID",
    **dict.fromkeys((
        f"{_GOOGLE}.googleapis.json.GoogleJsonResponseException", f"{_GOOGLE}.http.HttpResponseException",
        "java.net.ConnectException", "java.net.NoRouteToHostException", "java.net.SocketException",
        "java.net.SocketTimeoutException", "java.net.UnknownHostException",
        "org.apache.hadoop.fs.azurebfs.contracts.exceptions.AbfsRestOperationException",
        "org.apache.hadoop.fs.s3a.AWSClientIOException", "org.apache.hadoop.fs.s3a.AWSServiceThrottledException",
        "org.apache.hadoop.fs.s3a.AWSStatus500Exception", "org.apache.hadoop.fs.s3a.HttpChannelEOFException",
        "org.apache.hadoop.fs.s3a.UnknownStoreException", "org.apache.hadoop.net.ConnectTimeoutException",
    ), "FILESYSTEM_ERROR"),
}  # fmt: skip
"""Java class of an error of Hadoop's file systems -> Trinity's code."""

_ARGUMENTS: Final = ("java.lang.IllegalArgumentException", "org.apache.spark.SparkIllegalArgumentException")
"""Java classes of errors whose message describes a wrong argument."""


@contextmanager
def quiet() -> Iterator[None]:
    """Keep PySpark from logging errors of the block to stderr, which are raised as TrinityErrors."""
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before

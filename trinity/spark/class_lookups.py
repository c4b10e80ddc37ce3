"""Needless calls that pyspark makes into the JVM with every Column.

Each time that pyspark names a class, py4j first looks for its short name in every JAR on the path. Each time that it
calls a static method, py4j asks whether it exists. With every Column it tells the JVM which line of the program
made it, in six calls instead of one. Together that was more than half of the calls of a small statement.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CLASSES: Final[Mapping[str, tuple[str, ...]]] = {
    "PythonUtils": ("toSeq", "toArray"),
    "PythonSQLUtils": ("ddlToJson",),
    "PythonRDD": ("readRDDFromFile",),
    "SerDeUtil": ("toJavaArray", "pythonToJava"),
    "SimplePythonFunction": (),
    "functions": (),
    "org.apache.spark.sql.functions": ("col", "lit", "expr", "when", "struct", "broadcast"),
    "org.apache.spark.sql.classic.SparkSession": ("getActiveSession",),
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin": ("set", "clear"),
}
"""Class, by the name that pyspark uses -> its static methods."""


def remember_classes(spark: SparkSession) -> None:
    """Let this process's gateway keep the classes; a name that this pyspark does not know is left alone."""
    from py4j.java_gateway import JavaClass

    jvm = spark._jvm
    for name, methods in _CLASSES.items():
        found = getattr(jvm, name)
        if isinstance(found, JavaClass):
            for method in methods:
                setattr(found, method, getattr(found, method))
            setattr(jvm, name, found)


_mutex = threading.Lock()
_inside = 0
_before: bool | None = None


@contextmanager
def without_call_sites() -> Iterator[None]:
    """Make Columns meanwhile without telling the JVM which line made them: it would be one of Trinity's.

    pyspark has one switch for the whole process, so Columns of other threads go without it for that time, too.
    """
    from pyspark.errors import utils as untyped

    utils: Any = untyped
    global _inside, _before
    with _mutex:
        if _inside == 0:
            _before, utils._enable_debugging_cache = utils._enable_debugging_cache, False
        _inside += 1
    try:
        yield
    finally:
        with _mutex:
            _inside -= 1
            if _inside == 0:
                utils._enable_debugging_cache = _before

"""Avoids needless calls that pyspark makes into the JVM with every Column.

Each time pyspark names a class, py4j first looks for the class's short name in every JAR on the path. Each time it
calls a static method, py4j asks whether the method exists. With every Column pyspark tells the JVM which line of the
program made it, which takes six calls instead of one. Together these were more than half of a small statement's calls.
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
    """Cache the classes of :data:`_CLASSES` in this process's gateway; names that this pyspark lacks are left alone."""
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
    """Within the block, make Columns without telling the JVM which line made them: it would be a line of Trinity's.

    pyspark has one switch for the whole process, so Columns of other threads lack their lines for that time, too.
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

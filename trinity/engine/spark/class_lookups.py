"""Questions that pyspark asks the JVM with every Column, and need not.

Each time that pyspark names a class, py4j looks for it by its short name first, in every JAR on the path; and each
time that it calls a static method, py4j asks whether there is one. And with every Column it tells the JVM which line
of the program made it, in six calls for one. Together that was more than half of the calls of a small statement.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["remember_classes", "without_call_sites"]

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
"""Classes by the names that pyspark has for them, and their static methods."""


def remember_classes(spark: SparkSession) -> None:
    """Lets this process's gateway keep the classes; a name that this pyspark does not know is left alone."""
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
    """Columns that are made meanwhile do not tell the JVM which line made them: it would be one of Trinity's.

    pyspark has one switch for the process, read once; so those of other threads go without for that time too.
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

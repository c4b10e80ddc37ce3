"""A further session of a Spark that runs, for the settings of further formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["further_session"]


def further_session(running: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return a session that has more settings, and that is the process's from now on.

    Spark reads extensions only when it makes a session. The earlier one stays as it is, with what runs in it, and both
    share the Spark, its tables and its caches.

    Args:
        running: the earlier session, whose JVM has the JARs.
        settings: the settings; an extension whose JAR is missing is left out.
    """
    from trinity.spark_names import SparkSession

    jvm, context = running._jvm, running.sparkContext
    assert jvm is not None
    shared = running._jsparkSession.sharedState()
    for conf in (context._jsc.sc().conf(), shared.conf()):
        for key, value in settings.items():
            conf.set(key, value)
    sessions, option, nothing = jvm.org.apache.spark.sql.classic, jvm.scala.Option, jvm.PythonUtils.toScalaMap({})
    extensions = getattr(getattr(sessions, "SparkSession$"), "MODULE$").applyAndLoadExtensions(context._jsc.sc())
    made = sessions.SparkSession(context._jsc.sc(), option.apply(shared), option.empty(), extensions, nothing, nothing)
    found = SparkSession(context, made)
    jvm.SparkSession.setDefaultSession(made)
    jvm.SparkSession.setActiveSession(made)
    SparkSession._instantiatedSession = SparkSession._activeSession = found
    return found

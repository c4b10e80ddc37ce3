"""The start of a Spark with the settings and JARs that the formats need, and checks that name missing ones."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trinity.errors import TrinityError
from trinity.spark.class_lookups import remember_classes
from trinity.spark.jars import add_jars, find_jars
from trinity.spark.quiet import LOGGING, without_start_lines
from trinity.spark.remote import is_remote, remote_url, runs_in_process
from trinity.spark.workers import check_workers
from trinity.spi import SparkRequirements

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_JAVA: Final = 17
_LISTS: Final = ("spark.sql.extensions", "spark.jars")
_JOINED: Final = (*_LISTS, "spark.jars.excludes")
"""Settings that are comma lists: a Spark that is started gets the items of all parties."""
_LOCAL: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    # makes tasks begin sooner; on one machine the workers' pyspark is the installed one
    "spark.python.daemon.module": "trinity.spark.worker_daemon",
}
"""Settings for one machine; a cluster keeps Spark's own."""
_DEFAULTS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timeType.enabled": "true",
    "spark.sql.variable.substitute": "false",  # the value that every statement needs (N2)
    # one sorted file per bucket: the merged read's join needs no sort of the base
    "spark.sql.legacy.bucketedTableScan.outputOrdering": "true",
    # up to this many keys are compared one by one with the page index; of more keys Spark compares only the range
    "spark.sql.parquet.pushdown.inFilterThreshold": "256",
    # the driver lists up to this many paths, the files of a hundred commits; a Spark job for them would cost more
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "4096",
    # with this a query with availableNow on a source written in Python ends even after a crash
    "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
    # saves 40 ms of a TCP socket's delayed acknowledgements
    **({"spark.python.unix.domain.socket.enabled": "true"} if hasattr(socket, "AF_UNIX") else {}),
}
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Environment variable by which spark-submit tells a program of the JVM that it started."""
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_STACK: Final = "-Xss8m"
"""Size of Java's stack. With the default streams sometimes fail by a StackOverflowError that no query reports."""
_starting = threading.Lock()


@dataclass(frozen=True)
class _Own:
    """The Spark that Trinity started in this process, with the requirements that it meets so far."""

    context: SparkContext
    requirements: Sequence[SparkRequirements]
    settings: Mapping[str, str]


_own: _Own | None = None


def local_spark(requirements: Iterable[SparkRequirements], settings: Mapping[str, str]) -> SparkSession:
    """Return a session of this process's Spark: of the running one if it meets the requirements, else of a new one.

    A new Spark is local, unless the settings name another master, or a server of Spark Connect (``spark.remote``, or
    ``SPARK_REMOTE`` in the environment). In a program that ``spark-submit`` runs, Spark has the configuration of
    ``spark-submit``, which also has to bring the JARs, since its JVM runs already. A running Spark that Trinity started
    gets the JARs that it lacks, and a further session if it lacks settings. The caller's own settings override those of
    ``spark-submit``, and these override Trinity's.

    Raises:
        TrinityError: CONFIGURATION_INVALID with the remedy: no Java, or an old one; no network for the JARs; a server
            that does not answer; a running or submitted Spark that lacks something.
    """
    with _starting:
        from trinity.spark_names import SparkContext, SparkSession

        if (server := remote_url(settings)) is not None:
            from trinity.spark.remote_session import open_remote

            return open_remote(server)
        requirements = list(requirements)
        if SparkContext._active_spark_context is not None:
            running = SparkSession.builder.getOrCreate()
            if _own is not None and _own.context is running.sparkContext:
                running = _with_more(_own, running, requirements)
            check_spark(running, requirements)
            return running
        if _SUBMITTED in os.environ:
            submitted = _start(_new_settings(requirements, _overridden(_submitted_settings(), settings)))
            check_spark(submitted, requirements)
            return submitted
        return _start_own(requirements, settings)


def _start_own(requirements: Sequence[SparkRequirements], settings: Mapping[str, str]) -> SparkSession:
    """Start a Spark of Trinity's own; if this process had a Spark before, in that one's JVM."""
    global _own
    from trinity.spark_names import SparkContext

    _check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    wanted = _with_java_options(_new_settings(requirements, {"spark.master": "local[*]", **settings}))
    jars = find_jars(requirements, wanted)
    if SparkContext._jvm is not None:
        add_jars(SparkContext._jvm, jars)
    started = _start(_overridden(wanted, {"spark.jars": ",".join(jars)} if jars else {}))
    try:
        check_workers(started)
    except TrinityError:
        started.stop()
        raise
    _own = _Own(started.sparkContext, requirements, settings)
    return started


def _with_more(own: _Own, running: SparkSession, requirements: Sequence[SparkRequirements]) -> SparkSession:
    """Return a session of Trinity's own Spark that meets further requirements, too."""
    global _own
    lacking = _lacking_settings(running, requirements)
    if not lacking and not _lacking_jars(running, requirements):
        return running
    every = [*own.requirements, *(need for need in requirements if need not in own.requirements)]
    wanted = _new_settings(every, own.settings)
    jars = find_jars(every, wanted)
    add_jars(running._jvm, jars)
    if not runs_in_process(running):
        for jar in jars:
            running.sparkContext._jsc.addJar(jar)
    if lacking:
        running = _further_session(running, {key: wanted[key] for need in every for key in need.settings})
    _own = replace(own, requirements=every)
    return running


def _new_settings(requirements: Sequence[SparkRequirements], given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a new Spark."""
    local = given.get("spark.master", "local").startswith("local")
    asked = reduce(_overridden, (need.settings for need in requirements), dict[str, str]())
    return _overridden({**(_LOCAL if local else {}), **_DEFAULTS, **asked}, given)


def _overridden(settings: Mapping[str, str], stronger: Mapping[str, str]) -> dict[str, str]:
    """Return settings, overridden by stronger ones; settings that are lists get the items of both."""
    found = {**settings, **stronger}
    for key in _JOINED:
        if key in settings and key in stronger:
            found[key] = ",".join(dict.fromkeys(f"{settings[key]},{stronger[key]}".split(",")))
    return found


def _submitted_settings() -> dict[str, str]:
    """Return the settings that ``spark-submit`` was given."""
    from trinity.spark_names import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def check_spark(spark: SparkSession, requirements: Iterable[SparkRequirements]) -> None:
    """Check that a Spark that the caller brought meets requirements. A server of Spark Connect is not checked.

    Raises:
        TrinityError: CONFIGURATION_INVALID listing every missing JAR and setting, or if its workers run another Python.
    """
    if is_remote(spark):
        return
    requirements = list(requirements)
    if missing := _lacking_jars(spark, requirements) + _lacking_settings(spark, requirements):
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"This Spark session lacks {'; '.join(missing)}. Give them when the session is built "
            "(spark.jars.packages and the settings; by --packages and --conf of spark-submit), or let "
            "trinity.connect(path) start Spark.",
        )
    check_workers(spark)


def _lacking_jars(spark: SparkSession, requirements: Iterable[SparkRequirements]) -> list[str]:
    probes = [probe for need in requirements for probe in need.probes.items()]
    return [f"the JAR {jar} (no class {name})" for name, jar in probes if not _has(spark, name)]


def _lacking_settings(spark: SparkSession, requirements: Iterable[SparkRequirements]) -> list[str]:
    wanted = [(key, value) for need in requirements for key, value in need.settings.items() if key in _LISTS]
    return [
        f"the setting {key} with {value} in its list"
        for key, value in wanted
        if value not in (spark.conf.get(key, "") or "").split(",")
    ]


def _has(spark: SparkSession, name: str) -> bool:
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    try:
        loader.loadClass(name)
    except Exception as error:  # py4j wraps ClassNotFoundException and its relatives
        if "ClassNotFound" in str(error) or "NoClassDefFound" in str(error):
            return False
        raise
    return True


def _with_java_options(settings: dict[str, str]) -> dict[str, str]:
    """Return settings with larger Java stacks and a quiet log, unless the caller's own Java options set these."""
    given = settings.get(_JAVA_OPTIONS, "")
    ours = [_STACK] if "-Xss" not in given else []
    if "log4j" not in given and "SPARK_CONF_DIR" not in os.environ:
        ours.append(LOGGING)
    return {**settings, _JAVA_OPTIONS: " ".join([*ours, given]).strip()}


def _check_java() -> None:
    java = str(Path(os.environ["JAVA_HOME"], "bin", "java")) if "JAVA_HOME" in os.environ else shutil.which("java")
    remedy = f"Install Java {_JAVA} (Debian: apt-get install openjdk-17-jre-headless), or set JAVA_HOME to one."
    if not java or not Path(java).exists():
        where = f"JAVA_HOME={os.environ['JAVA_HOME']}" if "JAVA_HOME" in os.environ else "the PATH"
        raise TrinityError("CONFIGURATION_INVALID", f"Spark needs Java, and there is none at {where}. {remedy}")
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', printed)
    if not version or int(version[1]) < _JAVA:
        found = f"Java {version[1]}" if version else f"'{printed.strip()[:80]}'"
        raise TrinityError("CONFIGURATION_INVALID", f"Spark needs Java {_JAVA} or newer; {java} is {found}. {remedy}")


def _start(settings: Mapping[str, str]) -> SparkSession:
    from trinity.spark_names import SparkSession

    with without_start_lines():
        spark = SparkSession.builder.config(map={"spark.app.name": "trinity", **settings}).getOrCreate()
    remember_classes(spark)
    return spark


def _further_session(running: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return a session with more settings, and make it the process's default session.

    Spark reads extensions only when it makes a session; an extension whose JAR is missing is left out. The earlier
    session stays as it is, with what runs in it. Both share the Spark, its tables and its caches.
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

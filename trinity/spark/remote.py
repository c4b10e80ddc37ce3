"""Spark Connect: facts about a session whose Spark is a server, without a JVM beside Python, and about its frames.

A frame of Spark Connect is a plan that the server analyses anew at each use. A Spark beside Python knows the facts of a
frame as soon as the frame is made; a server has to be asked for them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from trinity.errors import TrinityError
from trinity.storage import Cache
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MODULE: Final = "pyspark.sql.connect"
_MANY: Final = 1 << 16
"""Rows of a range: more than any cluster has cores."""
_cores: Final[Cache[str, int]] = Cache(16)
"""Id of a session of Spark Connect -> the number of tasks that its cluster runs in parallel."""


def remote_url(settings: Mapping[str, str]) -> str | None:
    """Return the server of Spark Connect that settings or the environment name, as pyspark takes it."""
    return settings.get("spark.remote") or os.environ.get("SPARK_REMOTE")


def is_remote(of: SparkSession | DataFrame) -> bool:
    """Return True for a session, or a frame, of Spark Connect."""
    return type(of).__module__.startswith(_MODULE)


def check_mode(of: Any) -> None:
    """Refuse a session or frame of Spark Connect in a process whose pyspark is of the other kind.

    Raises:
        TrinityError: CONFIGURATION_INVALID: pyspark's functions make columns of one kind in a process.
    """
    if "SPARK_CONNECT_MODE_ENABLED" not in os.environ:
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"A {type(of).__name__} of Spark Connect is given to a process whose pyspark works with a JVM of its own. "
            "Make the session by SparkSession.builder.remote('sc://host:15002').getOrCreate(), before any other.",
        )


def refuse_remote(spark: SparkSession, what: str, instead: str) -> None:
    """Raise CONFIGURATION_INVALID for a session of Spark Connect, which has no JVM beside it.

    Args:
        spark: the session.
        what: what needs the JVM, as the message begins.
        instead: what to do instead, as the message ends.
    """
    if is_remote(spark):
        raise TrinityError(
            "CONFIGURATION_INVALID", f"{what} needs Spark's JVM beside Python, which Spark Connect lacks; {instead}."
        )


def runs_in_process(spark: SparkSession) -> bool:
    """Return True when this process is the whole Spark: its driver and its only executor."""
    return not is_remote(spark) and re.fullmatch(r"local(\[.*\])?", str(spark.sparkContext.master)) is not None


def parallelism(spark: SparkSession) -> int:
    """Return the number of tasks that Spark runs in parallel."""
    if not is_remote(spark):
        return int(spark.sparkContext.defaultParallelism)
    # a range has this number of partitions; no setting of a server tells it
    session: Any = spark
    return _cores.get(str(session.session_id), lambda: _parts(spark))


def _parts(spark: SparkSession) -> int:
    from trinity.spark_names import F

    return spark.range(_MANY).select(F.spark_partition_id()).distinct().count()


def is_temp_view(spark: SparkSession, name: str) -> bool:
    """Return True when a one-part name is a temporary view of the session."""
    if not is_remote(spark):
        session: Any = spark
        return bool(session._jsparkSession.sessionState().catalog().getTempView(name).isDefined())
    from trinity.calls import quiet
    from trinity.spark_names import PySparkException

    try:
        with quiet():
            return bool(spark.catalog.getTable(quoted(name)).isTemporary)
    except PySparkException:
        return False


def alias_of(frame: DataFrame) -> str | None:
    """Return the alias that a frame was given, as in ``df.alias("updates")``."""
    made: Any = frame
    if is_remote(frame):
        return str(made._plan._alias) if type(made._plan).__name__ == "SubqueryAlias" else None
    plan = made._jdf.queryExecution().logical()
    return str(plan.alias()) if plan.getClass().getSimpleName() == "SubqueryAlias" else None


def plan_text(frame: DataFrame) -> str:
    """Return Spark's physical plan."""
    made: Any = frame
    if is_remote(frame):
        return str(made._explain_string()).rstrip("\n")
    return str(made._jdf.queryExecution().simpleString())


def query_over(spark: SparkSession, text: str, views: Mapping[str, DataFrame]) -> DataFrame:
    """Return the frame of a statement that reads temporary views, which the caller drops afterwards.

    A frame of Spark Connect has the views' plans in its own, since it would look for the views at each use.
    """
    if not is_remote(spark) or not views:
        return analysed(spark.sql(text))
    plain = text.replace("{", "{{").replace("}", "}}")
    named: dict[str, Any] = {view: rows for view, rows in views.items() if view in plain}
    for view in named:
        plain = plain.replace(view, f"{{{view}}}")
    return analysed(spark.sql(plain, **named))


def analysed(frame: DataFrame) -> DataFrame:
    """Return the frame after its analysis: Spark raises errors in it now, and not when it is collected."""
    if is_remote(frame):
        _ = frame.schema
    return frame

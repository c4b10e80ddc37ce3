"""What SQL text reaches beyond the rows of tables: code, files, commands (N2).

Spark's own parser decides what a text contains. It is asked only for a text that has a word which such a reach needs,
or that is no plain query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from trinity.errors import TrinityError
from trinity.spark.remote import is_remote
from trinity.spark.remote_texts import plain_command, unseen
from trinity.syntax.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FUNCTIONS: Final = {
    **dict.fromkeys(("reflect", "java_method", "try_reflect"), "runs code of the JVM"),
    **dict.fromkeys(("from_protobuf", "to_protobuf"), "reads the file of a descriptor"),
    **dict.fromkeys(("table_changes", "table_changes_by_path"), "reads the files of a path"),
}
"""Functions of Spark that reach beyond their arguments -> what they do."""
_FORMATS: Final = frozenset({
    "text", "csv", "json", "xml", "parquet", "orc", "avro", "delta", "iceberg", "jdbc", "binaryfile", "image", "libsvm",
    "kafka", "rate", "socket", "console", "memory", "noop", "statestore", "hive", "protobuf",
})  # fmt: skip
"""Short names of data sources; other data sources are named by a class."""
# a comment may stand between a name and what follows it
_SUSPECT: Final = re.compile(
    rf"\b(?:{'|'.join(FUNCTIONS)}|identifier)`?\s*(?:\(|--|/\*)"
    rf"|\b(?:{'|'.join(sorted(_FORMATS))})`?\s*(?:\.|--|/\*)"
    r"|\.\s*`[^`]*[/\\:.]|`[^`]*[/\\:.][^`]*`\s*(?:\.|--|/\*)",
    re.IGNORECASE,
)
"""A name that may reach beyond rows, or that may be a path or a class."""
_SCRIPT: Final = re.compile(r"\b(?:transform|map|reduce)\b", re.IGNORECASE)
_USING: Final = re.compile(r"\busing\b", re.IGNORECASE)
_QUERY: Final = re.compile(
    r"[\s(]*(?:(?:select|values)\b|(?:with|from|table)\b(?!.*\b(?:insert|merge|update|delete)\b))",
    re.IGNORECASE | re.DOTALL,
)
"""The beginning of a query; no other statement of Spark begins like this."""
_LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical"
_COMMANDS: Final = frozenset({
    "CacheTable", "CacheTableAsSelect", "ClearCacheCommand$", "CreateVariable", "CreateViewCommand", "DescribeColumn",
    "DescribeFunction", "DescribeNamespace", "DescribeQueryCommand", "DescribeRelation", "DropVariable", "DropView",
    "ExplainCommand", "RefreshFunction", "RefreshTable", "ResetCommand", "SetCatalogCommand", "SetCommand",
    "SetVariable", "UncacheTable",
})  # fmt: skip
"""Spark's commands that reach no more than a query does; commands whose names begin with ``Show`` are not listed."""
_OTHERS: Final = frozenset({
    "Call", "CompoundBody", "DescribeDeltaHistory", "InsertIntoDir", "RestoreTableStatement",
    "UnresolvedExecuteImmediate",
})  # fmt: skip
"""Statements that Spark does not count among its commands."""
_INNER: Final = {"ExplainCommand": "logicalPlan", "DescribeQueryCommand": "plan"}
"""Command whose query is not among its children -> the query's name."""
_NAMED: Final = frozenset({"UnresolvedRelation", "UnresolvedTable", "UnresolvedTableOrView", "UnresolvedView"})
_SETTINGS: Final = re.compile(r"spark\.(?:sql|databricks\.delta)\.(?!catalog\.)(?!.*(?:class|python)$).+|time\s*zone")
"""Settings that reach nothing beyond rows; others configure file systems, or load a class."""


def reach_of_statement(spark: SparkSession, text: str) -> str | None:
    """Return what a statement reaches beyond rows, as the beginning of a message; None if it reaches nothing.

    Text that Spark cannot parse reaches nothing.
    """
    closely = _suspect(text)
    if is_remote(spark):
        plain, query = plain_command(text, _SETTINGS)
        return None if not closely and (plain or _QUERY.match(query)) else unseen(text)
    if not closely and _QUERY.match(text):
        return None
    try:
        plan = _parsed(spark, text, "parsePlan")
    except TrinityError:  # Spark raises it again when it runs the text
        return None
    return next(_reached_nodes(spark, plan, closely), None)


def reach_of_expression(spark: SparkSession, text: str) -> str | None:
    """Return what an expression, with its subqueries, reaches beyond rows, as :func:`reach_of_statement` does.

    Raises:
        TrinityError: SYNTAX_ERROR for a text that may reach something, and is no expression by itself.
    """
    if not _suspect(text):
        return None
    if is_remote(spark):
        return unseen(text)
    _parsed(spark, text, "parseExpression")
    return next(_reached_nodes(spark, _parsed(spark, f"SELECT (\n{text}\n)", "parsePlan"), closely=True), None)


def _suspect(text: str) -> bool:
    return bool(_SUSPECT.search(text) or (_USING.search(text) and _SCRIPT.search(text)))


def _parsed(spark: SparkSession, text: str, way: str) -> Any:
    from py4j.protocol import Py4JJavaError

    from trinity.calls import spark_errors

    try:
        with spark_errors():
            return getattr(spark._jsparkSession.sessionState().sqlParser(), way)(text)
    except Py4JJavaError as error:
        raise TrinityError("SYNTAX_ERROR", f"Spark cannot parse '{text.strip()[:100]}'.") from error


def _reached_nodes(spark: SparkSession, root: Any, closely: bool) -> Iterator[str]:
    """Yield what the nodes of a plan reach; if ``closely``, search the nodes' expressions, too."""
    plans = [root]
    while plans:
        plan = plans.pop()
        kind = str(plan.getClass().getSimpleName())
        if found := _command(spark, plan, kind) or _node(spark, plan, kind):
            yield found
        if kind in _INNER:
            plans.append(getattr(plan, _INNER[kind])())
        plans += [*elements(plan.children()), *elements(plan.innerChildren()), *elements(plan.subqueries())]
        for expression in _expressions(plan, kind) if closely else ():
            yield from _calls(expression)


def _expressions(plan: Any, kind: str) -> list[Any]:
    if kind == "WithWindowDefinition":  # this node has its expressions in a map
        return elements(plan.windowDefinitions().values().toSeq())
    return elements(plan.expressions())


def _calls(expression: Any) -> Iterator[str]:
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        kind = node.getClass().getSimpleName()
        if kind == "ExpressionWithUnresolvedIdentifier":
            yield _IDENTIFIER
        elif kind == "UnresolvedFunction":
            yield from _function(node.nameParts().last())
        elif kind == "UnresolvedGenerator":
            yield from _function(node.name().funcName())
        waiting += elements(node.children())


_IDENTIFIER: Final = "IDENTIFIER(...) makes a name out of text, which cannot be looked at"


def _function(name: str) -> Iterator[str]:
    if name.lower() in FUNCTIONS:
        yield f"{name}(...) {FUNCTIONS[name.lower()]}"


def _command(spark: SparkSession, plan: Any, kind: str) -> str | None:
    """Return what a command reaches; None for a query's node, and for an allowed command."""
    if kind == "SetCommand":
        return _setting(plan)
    if kind in _COMMANDS or kind.startswith("Show"):
        return None
    if kind in _OTHERS or any(_is(spark, plan, f"{_LOGICAL}.{name}") for name in ("Command", "ParsedStatement")):
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"^Unresolved|(Command|Statement)?\$?$", "", kind))
        return f"Spark's own command {words.upper()} goes past Trinity"
    return None


def _is(spark: SparkSession, node: Any, name: str) -> bool:
    from py4j.java_gateway import is_instance_of

    return bool(is_instance_of(spark.sparkContext._gateway, node, name))


def _setting(plan: Any) -> str | None:
    pair = plan.kv()
    key = str(pair.get()._1()) if pair.isDefined() else ""
    if not key or key == "-v" or _SETTINGS.fullmatch(key.lower()):
        return None
    return f"SET {key} changes more than how queries run"


def _node(spark: SparkSession, plan: Any, kind: str) -> str | None:
    if kind == "ScriptTransformation":
        return "TRANSFORM ... USING runs a program"
    if kind == "PlanWithUnresolvedIdentifier":
        return _IDENTIFIER
    if kind == "UnresolvedTableValuedFunction":
        return next(_function(plan.name().last()), None)
    if kind in _NAMED:
        parts = [str(part) for part in elements(plan.multipartIdentifier())]
        if len(parts) > 1 and _is_path(spark, parts):
            return f"{'.'.join(map(quoted, parts))} reads files of a path"
    return None


def _is_path(spark: SparkSession, parts: list[str]) -> bool:
    """Return True when Spark reads a name as data source and path, as text.`/path`, and has no table of that name."""
    source, name = parts[-2:]
    if source.lower() not in _FORMATS and not _is_source(spark, source):
        return False
    identifier = spark._jvm.org.apache.spark.sql.catalyst.TableIdentifier  # type: ignore[union-attr]
    known = spark._jsparkSession.sessionState().catalog()
    option = spark._jvm.scala.Option.apply(source)  # type: ignore[union-attr]
    return not known.tableExists(identifier(name, option))


def _is_source(spark: SparkSession, name: str) -> bool:
    from py4j.protocol import Py4JJavaError

    from trinity.calls import quiet
    from trinity.spark_names import PySparkException

    sources = spark._jvm.org.apache.spark.sql.execution.datasources.DataSource  # type: ignore[union-attr]
    try:
        with quiet():
            sources.lookupDataSource(name, spark._jsparkSession.sessionState().conf())
    except (PySparkException, Py4JJavaError):
        return False
    return True


def elements(sequence: Any) -> list[Any]:
    """Return a Scala sequence as a list."""
    return [sequence.apply(i) for i in range(sequence.size())]

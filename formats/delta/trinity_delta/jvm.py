"""All uses of Delta's own classes over py4j. They are internal to Delta; no other module uses them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trinity.errors import TrinityError, first_line
from trinity.loggers import logger
from trinity.storage import CommitRaced, Location, ObjectStore, after_commit, no_table
from trinity.storage.errors import system_trouble
from trinity_delta.actions import LOG, commit_name, with_domains
from trinity_delta.protocol import SUPPORTED
from trinity_delta.schema import renamed_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logger("trinity.delta")
_DELTA: Final = "org.apache.spark.sql.delta"
_RACED: Final = "DeltaConcurrentModificationException"
Action = Mapping[str, Any]
"""One line of Delta's log, as parsed JSON: ``{"add": {...}}``."""


class DeltaJvm:
    """Delta in the JVM of a Spark session; see also :class:`~trinity_delta.logs.DeltaLog`.

    Raises, from every method:
        TrinityError: CONFIGURATION_INVALID when the session has no Delta JARs.
    """

    # Delta needs ten times as long for a checkpoint as for a commit, and Trinity reads the log without one
    preferred: Mapping[str, str] = MappingProxyType({"delta.checkpointInterval": "100"})

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._jvm: Any = spark._jvm
        self._classes: dict[str, Any] = {}
        self._session: Any = spark._jsparkSession
        self._logs = self.module(f"{_DELTA}.DeltaLog")
        self._actions = self.module(f"{_DELTA}.actions.Action")
        self._mapper = self.module(f"{_DELTA}.util.JsonUtils").mapper()
        self.none = self.module("scala.None")

    def module(self, name: str) -> Any:
        """Return a Scala object. Only the context's class loader knows the JARs of ``spark.jars``."""
        try:
            loader = self.java("java.lang.Thread").currentThread().getContextClassLoader()
            return loader.loadClass(f"{name}$").getField("MODULE$").get(None)
        except Exception as error:
            if "ClassNotFound" not in str(error):
                raise
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"This Spark session has no Delta ({name} is missing); add io.delta:delta-spark to its packages.",
            ) from error

    def java(self, name: str) -> Any:
        """Return a Java class by its full name, looked up once: py4j searches every JAR for each part of the name."""
        if name not in self._classes:
            self._classes[name] = getattr(self._jvm, name)
        return self._classes[name]

    def sequence(self, items: Sequence[Any]) -> Any:
        """Return a Scala Seq."""
        found = self.java("java.util.ArrayList")()
        for item in items:
            found.add(item)
        return self.java("scala.jdk.javaapi.CollectionConverters").asScala(found).toSeq()

    def mapping(self, items: Mapping[str, str]) -> Any:
        """Return a Scala Map."""
        return self.java("org.apache.spark.api.python.PythonUtils").toScalaMap(dict(items))

    def action(self, action: Action) -> Any:
        """Return an action of Delta from its JSON."""
        return self._actions.fromJson(json.dumps(action))

    def json(self, value: Any) -> Any:
        """Return any object of Delta as parsed JSON, in one call."""
        return json.loads(self._mapper.writeValueAsString(value))

    def operation(self, name: str, *arguments: Any) -> Any:
        """Return an operation of Delta, as DESCRIBE HISTORY shows it, by the name of its class.

        It is never ``ManualUpdate``: after that Delta rebuilds the whole state of the table with Spark jobs, after the
        others it adds the commit's actions to what it knows. ``Merge`` needs the number of source rows, so any change
        of rows is an ``Update``.
        """
        return self.java(f"{_DELTA}.DeltaOperations${name}")(*arguments)

    def rows_changed(self, name: str) -> Any:
        """Return the operation of a change of rows: Write (an append), Update, Optimize or Truncate (or Replace)."""
        arguments: list[Any] = []
        if name == "Write":
            arguments = [self.java("org.apache.spark.sql.SaveMode").valueOf("Append"), *[self.none] * 8]
        elif name == "Update":
            arguments = [self.none]
        elif name == "Optimize":
            arguments = [self.sequence([]), self.sequence([]), False, self.none, False]
        return self.operation("Truncate" if name == "Replace" else name, *arguments)

    def altered(self, before: Any, after: Any) -> Any:
        """Return the operation for a change of a table's metadata."""
        if renamed := renamed_columns(before.schemaString(), after.schemaString()):
            return self.operation("RenameColumn", *(self.sequence([name]) for name in renamed[0]))
        if before.schemaString() != after.schemaString():
            return self.operation("UpdateSchema", before.schema(), after.schema())
        changed = self.json(after.configuration()).items() - self.json(before.configuration()).items()
        return self.operation("SetTableProperties", self.mapping(dict(changed)))

    def vacuumed(self, metadata: Any, retained_ms: int) -> Any:
        """Return the operation VacuumStart."""
        retained = self._some_long(retained_ms)
        return self.operation("VacuumStart", False, retained, self._logs.tombstoneRetentionMillis(metadata))

    def restored(self, version: int) -> Any:
        """Return the operation Restore."""
        return self.operation("Restore", self._some_long(version), self.none)

    def _some_long(self, number: int) -> Any:
        """Return a number as Scala's Some[Long]; py4j would turn a boxed one into an Integer."""
        given = self.java("java.util.OptionalLong").of(number)
        return self.java("scala.jdk.javaapi.OptionConverters").toScala(given)

    def log(self, location: str) -> Any:
        """Return the DeltaLog of a table's folder."""
        return self._logs.forTable(self._session, Location.of(location).for_spark)

    def forget(self, location: str) -> None:
        """Forget what the JVM knows of a table, which was dropped or is about to be made."""
        path = self.java("org.apache.hadoop.fs.Path")(Location.of(location).for_spark)
        self._logs.invalidateCache(self._session, path)

    def checked_configuration(self, given: Mapping[str, str]) -> dict[str, str]:
        # keys with SUPPORTED are left out: Delta checks them later
        own = {key: text for key, text in given.items() if not key.startswith(SUPPORTED)}
        try:
            checked = self.module(f"{_DELTA}.DeltaConfigs").validateConfigurations(self.mapping(own))
        except Exception as error:
            raise TrinityError("INVALID_TABLE_PROPERTY", f"Delta refuses a property: {_first_line(error)}.") from error
        return dict(self.json(checked))

    def start(self, name: str, location: str) -> DeltaTransaction:
        """Return a transaction on the newest version of the table ``name``."""
        with _delta_errors(name, location):
            return DeltaTransaction(self, name, location, self.log(location).startTransaction())

    def create(self, name: str, location: str, metadata: Mapping[str, Any]) -> None:
        """Commit the first version of a table, with the given ``metaData`` action."""
        self.start(name, location).create(metadata)

    def files(
        self,
        name: str,
        location: str,
        metadata: Mapping[str, Any],
        protocol: Mapping[str, Any],
        added: Sequence[Mapping[str, Any]],
    ) -> DataFrame:
        """Return the rows of files by Delta's own reader, with ``_metadata.file_path`` and ``_metadata.row_index``.

        Delta shows the latter only for tables with deletion vectors, so the reader gets a protocol with that feature.
        """
        from pyspark.sql import DataFrame

        features = {*(protocol.get("readerFeatures") or ()), "deletionVectors"}
        if protocol["minReaderVersion"] == 2:
            features.add("columnMapping")
        upgraded = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": sorted(features),
            "writerFeatures": sorted(features | _writer_features(protocol)),
        }
        with _delta_errors(name, location):
            log = self.log(location)
            snapshot = self.java(f"{_DELTA}.DummySnapshot")(
                log.logPath(),
                log,
                self.action({"metaData": metadata}),
                self.none,
                self.java("scala.Some")(self.action({"protocol": upgraded})),
            )
            actions = self.sequence([self.action({"add": a}) for a in added])
            # Delta uses the session that is active on the thread; the caller may have several
            plan = log.createDataFrame(snapshot, actions, False, self.none).queryExecution().logical()
            rows = self.java("org.apache.spark.sql.classic.Dataset").ofRows(self.spark._jsparkSession, plan)
            return DataFrame(rows, self.spark)


class DeltaTransaction:
    """One optimistic transaction of Delta's own; see :class:`~trinity_delta.logs.Transaction`.

    After the commit point only success is reported. Delta also raises what fails after it (its hooks, a checksum, a
    lost connection), so on any error the log is searched for the transaction's own commit.

    Attributes:
        read_version: the version that it started from; -1 when there is no table.
        domains: domain metadata that the commit repeats, unless it writes its own of that name.
        write_due_checkpoint: called after the commit. It writes a checkpoint that other writers left out, which Delta's
            classes do not.
    """

    def __init__(self, jvm: DeltaJvm, name: str, location: str, transaction: Any) -> None:
        self._jvm = jvm
        self._name = name
        self._location = location
        self._transaction = transaction
        self.read_version = int(transaction.readVersion())
        self._id = str(transaction.txnId())
        self.domains: Sequence[dict[str, Any]] = ()
        self.write_due_checkpoint: Callable[[], None] = lambda: None

    @property
    def table_id(self) -> str:
        """The id of the table that the transaction started from."""
        with _delta_errors(self._name, self._location):
            return str(self._transaction.metadata().id())

    def read_txn(self, application: str) -> None:
        """Declare a read of a record. ``txnVersion`` does so too, but rebuilds the whole state to return the record."""
        with _delta_errors(self._name, self._location):
            self._transaction.readTxn().addOne(application)

    def read_whole_table(self) -> None:
        with _delta_errors(self._name, self._location):
            self._transaction.readWholeTable()

    def create(self, metadata: Mapping[str, Any]) -> None:
        """Commit the first version, with the given ``metaData`` action."""
        with _delta_errors(self._name, self._location):
            self._transaction.updateMetadataForNewTable(self._jvm.action({"metaData": dict(metadata)}))
            made = self._jvm.operation("CreateTable", self._transaction.metadata(), False, False, self._jvm.none)
            self._commit([], made)

    def alter(self, change: Mapping[str, Any]) -> None:
        with _delta_errors(self._name, self._location):
            before = self._transaction.metadata()
            self.update(change)
            self._commit([], self._jvm.altered(before, self._transaction.metadata()))

    def update(self, change: Mapping[str, Any]) -> None:
        with _delta_errors(self._name, self._location):
            present = json.loads(self._transaction.metadata().json())["metaData"]
            self._transaction.updateMetadata(self._jvm.action({"metaData": {**present, **change}}), False)

    def vacuum(self, mark: Action, retained_ms: int) -> None:
        with _delta_errors(self._name, self._location):
            self._commit([mark], self._jvm.vacuumed(self._transaction.metadata(), retained_ms))

    def commit(
        self, actions: Sequence[Action], *, operation: str, tags: Mapping[str, str] = MappingProxyType({})
    ) -> int:
        with _delta_errors(self._name, self._location):
            return self._commit(actions, self._jvm.rows_changed(operation), tags)

    def restore(self, actions: Sequence[Action], version: int) -> int:
        with _delta_errors(self._name, self._location):
            return self._commit(actions, self._jvm.restored(version))

    def _commit(self, actions: Sequence[Action], operation: Any, tags: Mapping[str, str] = MappingProxyType({})) -> int:
        wanted = self._jvm.sequence([self._jvm.action(a) for a in with_domains(actions, self.domains)])
        try:
            version = int(self._transaction.commit(wanted, operation, self._jvm.mapping(tags)))
        except Exception as error:
            found = _committed_as(self._location, self._id, self.read_version)
            if found is None:
                raise
            _log.warning("Version %d of '%s' is committed; then Delta failed: %s", found, self._name, error)
            version = found
        after_commit(f"Version {version} of '{self._name}' was not synced", lambda: self._sync(version))
        after_commit(f"The log of '{self._name}' has no newer checkpoint", self.write_due_checkpoint)
        return version

    def _sync(self, version: int) -> None:
        """Sync the commit, which Delta does not do; for a new table also its folders."""
        store = ObjectStore(self._location)
        store.sync(commit_name(version))
        store.sync_folders([LOG] if version else [LOG, "", str(store.location.parent)])


def _committed_as(location: str, txn_id: str, after: int) -> int | None:
    """Return the version above ``after`` that Delta's transaction of that id committed, or None."""
    store = ObjectStore(location)
    for version in itertools.count(after + 1):
        try:
            if txn_id.encode() in store.get(commit_name(version)):
                return version
        except (FileNotFoundError, TrinityError):
            return None
    return None


_LISTED_FROM: Final = 7
"""The writer version from which on features are listed; an older one stands for the features up to its number."""
_IMPLIED_FEATURES: Final = {
    2: ("appendOnly", "invariants"),
    3: ("checkConstraints",),
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
}


def _writer_features(protocol: Mapping[str, Any]) -> set[str]:
    version = protocol["minWriterVersion"]
    if version >= _LISTED_FROM:
        return set(protocol.get("writerFeatures") or ())
    return {feature for number, features in _IMPLIED_FEATURES.items() if number <= version for feature in features}


@contextmanager
def _delta_errors(name: str, location: str) -> Iterator[None]:
    """Map Delta's exceptions: a lost race to CommitRaced, all else to a TrinityError that names the table."""
    try:
        yield
    except (TrinityError, CommitRaced):
        raise
    except Exception as error:
        classes = _classes(error)
        if not classes:
            raise
        if any(c.endswith(_RACED) for c in classes):
            raise CommitRaced(_first_line(error)) from error
        store = ObjectStore(location)
        log = store.path(LOG)
        if not store.is_folder(LOG):
            raise no_table(name) from error
        if "java.nio.file.AccessDeniedException" in classes or "Permission denied" in str(error):
            raise TrinityError("PERMISSION_DENIED", f"No permission for '{log}' of table '{name}'.") from error
        if (trouble := system_trouble(error, log)) is not None:
            raise trouble from error
        if any(c in _CORRUPT for c in classes) or "java.io.IOException" not in classes:
            raise TrinityError(
                "BAD_DATA", f"Delta's log '{log}' of table '{name}' cannot be used: {_first_line(error)}."
            ) from error
        raise TrinityError("FILESYSTEM_ERROR", f"'{log}' of table '{name}': {_first_line(error)}.") from error


_CORRUPT: Final = frozenset({"java.io.FileNotFoundException", "com.fasterxml.jackson.core.JacksonException"})


def _classes(error: Exception) -> list[str]:
    """Return the class names of a Java exception, its ancestors and its causes; none for a Python error."""
    # Delta's Python package, once imported, has classes of its own for conflicts, and only for these
    if type(error).__module__.startswith("delta.exceptions"):
        return [_RACED]
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    found = []
    while thrown is not None:
        kind = thrown.getClass()
        while kind is not None:
            found.append(kind.getName())
            kind = kind.getSuperclass()
        thrown = thrown.getCause()
    return found


def _first_line(error: Exception) -> str:
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    return first_line((thrown.getMessage() or thrown.toString()) if thrown is not None else error)

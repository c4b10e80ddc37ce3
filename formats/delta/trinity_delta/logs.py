"""The logs of a catalog's tables: by Delta's own classes on a disk, by conditional puts in an object store."""

from __future__ import annotations

from collections.abc import Mapping

from trinity.spi import ConnectorContext
from trinity.storage import Location
from trinity_delta.jvm import DeltaJvm
from trinity_delta.object_log import ObjectLog
from trinity_delta.transaction import DeltaLog

__all__ = ["Logs"]


class Logs:
    """Finds the log of a location; Spark is started by the first that is on a disk.

    Args:
        context: the session's, which has Spark.
    """

    def __init__(self, context: ConnectorContext) -> None:
        self._context = context
        self._delta: DeltaJvm | None = None
        self._objects = ObjectLog()

    def jvm(self) -> DeltaJvm:
        """Delta in the JVM."""
        spark = self._context.spark()
        if self._delta is None or self._delta.spark is not spark:
            self._delta = DeltaJvm(spark)
        return self._delta

    def at(self, location: str) -> DeltaLog:
        """The log of a table's folder."""
        return self.jvm() if Location.of(location).on_disk else self._objects

    def checked(self, location: str, wanted: Mapping[str, str]) -> dict[str, str]:
        """A table's configuration, whose settings of Delta's are spelled as Delta does.

        Raises:
            TrinityError: INVALID_TABLE_PROPERTY for one that cannot be set.
        """
        own = {key: text for key, text in wanted.items() if key.startswith("delta.")}
        return {**wanted, **self.at(location).checked_configuration(own)}

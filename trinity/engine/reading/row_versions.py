"""The stored row versions of a table as a result, read in this process or by Spark."""

from __future__ import annotations

from trinity.engine.executes import NotLocal, ThisProcess, execute
from trinity.engine.reading.files import why_not_files
from trinity.engine.reading.local import row_versions as local
from trinity.result import Result
from trinity.spi import SplitSource
from trinity.target import Host


def row_versions(session: Host, splits: SplitSource) -> Result:
    """Return stored row versions, each with its file and position, for ``log()``."""

    def here(process: ThisProcess) -> Result | NotLocal:
        why = process.why_not_read([*splits.files, *splits.sidecar]) or why_not_files(splits)
        return why or Result(session, lambda: local.row_versions(splits))

    def by_spark() -> Result:
        from trinity.engine.reading.spark.row_versions import row_versions

        return Result(session, row_versions(session.spark, splits))

    return execute(session, f"log() of '{splits.definition.full_name}'", here, by_spark)

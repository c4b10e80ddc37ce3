"""The stored row versions of a table as a result, whoever reads them."""

from __future__ import annotations

from trinity.engine.executes import NotLocal, execute, size_of
from trinity.engine.reading.local import row_versions as local
from trinity.engine.reading.plan import why_not_files
from trinity.result import Result
from trinity.spi import SplitSource
from trinity.target import Host


def row_versions(session: Host, splits: SplitSource) -> Result:
    """Return stored row versions with where each is, for ``log()``."""

    def here() -> Result | NotLocal:
        return why_not_files(splits) or Result(session, lambda: local.row_versions(splits))

    def by_spark() -> Result:
        from trinity.engine.reading.spark.row_versions import row_versions

        return Result(session, row_versions(session.spark, splits))

    what = f"log() of '{splits.definition.full_name}'"
    return execute(session, what, here, by_spark, size=size_of([*splits.files, *splits.sidecar]))

"""The zones of the tests of types, and the types that a zone may shift."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tests.support.edges import PRIMITIVES
from trinity import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ZONES: Final = ("America/New_York", "Asia/Kolkata", "UTC", "+05:30")
TIMED: Final = ("c_date", "c_ts", "c_ntz")
ZONED: Final = [(c, z) for c in PRIMITIVES for z in (ZONES if c in TIMED else ZONES[:1])]
"""(type, zone): types that a zone may shift in every zone, the others in one."""


def frame(session: Session, rows: pa.Table) -> DataFrame:
    """Return the rows as a Spark DataFrame of Spark's own types, TIMESTAMP_NTZ for timestamps without zone."""
    from pyspark.sql.pandas.types import from_arrow_schema  # not before: the tests without Spark load this module, too

    schema: Any = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    return session.spark.createDataFrame(rows, schema)

"""The names of pyspark's that Trinity uses, which all modules import from here.

pyspark loads its own packages as it is imported. Of two threads that begin with different ones, ``import pyspark`` and
``from pyspark.errors import ...``, both fail ("partially initialized module"). Those that import this module wait.
"""

from __future__ import annotations

import sys

if "pyspark" in sys.modules:  # a thread of the user's may be importing it: wait, and hold none of its packages
    import pyspark
else:  # a thread of the user's that begins with pyspark or pyspark.sql meanwhile waits for this one
    import pyspark.sql  # noqa: F401

from pyspark import SparkConf, SparkContext, StorageLevel
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
    VariantType,
)

__all__ = [
    "AnalysisException", "ParseException", "PySparkException",
    "Column", "DataFrame", "F", "SparkConf", "SparkContext", "SparkSession", "StorageLevel",
    "ArrayType", "CharType", "DataType", "DateType", "MapType", "NullType", "NumericType", "StringType", "StructField",
    "StructType", "TimestampNTZType", "TimestampType", "VarcharType", "VariantType",
    "from_arrow_schema", "to_arrow_schema", "to_arrow_type",
]  # fmt: skip

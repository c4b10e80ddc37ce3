"""The names of pyspark that Trinity uses; all modules import them from here.

pyspark loads its own packages when it is imported. Two threads that begin with different ones, ``import pyspark`` and
``from pyspark.errors import ...``, both fail ("partially initialized module"). Threads that import this module wait.
"""

from __future__ import annotations

import sys

if "pyspark" in sys.modules:  # a user's thread may be importing it: wait, and lock none of its packages
    import pyspark
else:  # a user's thread that imports pyspark or pyspark.sql meanwhile waits for this one
    import pyspark.sql  # noqa: F401

from pyspark import SparkConf, SparkContext, StorageLevel
from pyspark.errors import AnalysisException, ArithmeticException, ParseException, PySparkException
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
    "AnalysisException", "ArithmeticException", "ParseException", "PySparkException",
    "Column", "DataFrame", "F", "SparkConf", "SparkContext", "SparkSession", "StorageLevel",
    "ArrayType", "CharType", "DataType", "DateType", "MapType", "NullType", "NumericType", "StringType", "StructField",
    "StructType", "TimestampNTZType", "TimestampType", "VarcharType", "VariantType",
    "from_arrow_schema", "to_arrow_schema", "to_arrow_type",
]  # fmt: skip

"""Spark's SQL, parsed so that another dialect's cast fails where Spark's does."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser


class _Parser(SparkParser):
    STRICT_CAST = True
    """True: a value that does not fit is an error, as under Spark's ANSI mode, not NULL."""


class _Spark(Spark):
    Parser = _Parser


def with_strict_casts(text: str) -> exp.Expr:
    """Parse a query of Trinity's own, to be translated."""
    return sqlglot.parse_one(text, dialect=_Spark)

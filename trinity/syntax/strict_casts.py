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
    """Return the tree of a query that Trinity itself has written, to be translated to another dialect."""
    return sqlglot.parse_one(text, dialect=_Spark)

"""The arrival order of row versions after another engine has rewritten files (L3).

As long as the commit of every file is known, rows are in the order of their files. If the commit of one file is not
known, the rows' own stamps say which came later: see :mod:`trinity.spi.files`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from trinity.engine.reading.file_arrival import BEFORE, FileArrival, unknown_order_message
from trinity.engine.reading.files import order_is_lost
from trinity.hidden import ARRIVAL, MOMENT, UNSURE
from trinity.merge.row_kinds import StoredKind
from trinity.merge.spec import MergeSpec
from trinity.merge.sql.rows import AnyRows, SqlRows
from trinity.spi import MOMENT_UNIT, ROW_KIND, STAMP, DataFile, Origin, SplitSource, Tier, moment_of_append
from trinity.syntax.quoting import quoted, text_literal

POSITION_BITS: Final = 40
"""Number of low bits of an arrival that hold the row's position in its file; the higher bits hold the file's number."""


def with_order_restored(rows: AnyRows, files: Sequence[DataFile], splits: SplitSource, spec: MergeSpec) -> AnyRows:
    """Return row versions with an arrival that orders every row change after the rows that it has seen.

    They are given with an arrival by file and position; ``files`` are in the order in which it numbers them.
    """
    if not order_is_lost(splits):
        return rows
    columns = [quoted(name) for name, _ in rows.dtypes if name != ARRIVAL]
    key = ", ".join(map(quoted, spec.key))
    # if one statement deletes a key and inserts it again, the delete sorts first
    cut = f"IF({ROW_KIND} <=> {StoredKind.DELETED}, 0, 1), " if spec.by_column else ""
    order = f"{MOMENT}, {cut}{ARRIVAL}"
    arrival = f"CAST(row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS BIGINT)"
    rows = with_stamps(rows, files, splits).selectExpr("*", f"{_moment(files, splits)} AS {MOMENT}")
    if not splits.order.strangers:
        return rows.selectExpr(*columns, f"{arrival} AS {ARRIVAL}")
    unsure = _unsure(spec)
    if spec.by_column:  # every row may count, not the winner alone
        failing = f"CAST(raise_error({_message(splits, spec)}) AS BIGINT)"
        return rows.selectExpr(*columns, f"IF({unsure}, {failing}, {arrival}) AS {ARRIVAL}")
    doubts = f"IF({unsure}, {_message(splits, spec)}, NULL) AS {UNSURE}"
    rows = rows.selectExpr(*columns, f"{arrival} AS {ARRIVAL}", doubts)
    return replace(rows, dtypes=[*rows.dtypes, (UNSURE, "string")]) if isinstance(rows, SqlRows) else rows


def with_stamps(rows: AnyRows, files: Sequence[DataFile], splits: SplitSource) -> AnyRows:
    """Return the row versions, and set the stamps of those that another engine added in a commit that is still known.

    Arguments as for :func:`with_order_restored`.
    """
    if not splits.definition.stamped or all(f.origin is not Origin.ADDED for f in files):
        return rows
    columns = [quoted(name) for name, _ in rows.dtypes if name != STAMP]
    known = _by_file([FileArrival.of(file).stamp for file in files])
    return rows.selectExpr(*columns, f"coalesce({STAMP}, {known}) AS {STAMP}")


def _by_file(values: Sequence[int | None]) -> str:
    """Return Spark SQL for a row's value by its file; values are in the order in which the arrival numbers files."""
    texts = ["NULL" if value is None else f"{value}L" for value in values]
    changes = [n for n in range(1, len(texts)) if texts[n] != texts[n - 1]]
    later = "".join(f"WHEN {ARRIVAL} >= {n << POSITION_BITS}L THEN {texts[n]} " for n in reversed(changes))
    return f"CAST(CASE {later}ELSE {texts[0]} END AS BIGINT)" if later else f"CAST({texts[0]} AS BIGINT)"


def _moment(files: Sequence[DataFile], splits: SplitSource) -> str:
    """Return Spark SQL for the moment of a row."""
    before = sum(f.tier is not Tier.LOG for f in files) << POSITION_BITS
    known = f"WHEN {ARRIVAL} < {before}L THEN {BEFORE}L " if before else ""
    late = "".join(
        f"WHEN {STAMP} = {stamp}L THEN {moment_of_append(commit)}L " for stamp, commit in splits.order.late.items()
    )
    unstamped = _by_file([FileArrival.of(file).moment for file in files])
    return f"CASE {known}WHEN {STAMP} IS NULL THEN {unstamped} {late}ELSE {STAMP} DIV {MOMENT_UNIT} END"


def _unsure(spec: MergeSpec) -> str:
    """Return Spark SQL that is true for rows whose order relative to an equal row is unknown: both rows of the pair."""
    tied = ", ".join(map(quoted, (*spec.key, *spec.ordering)))
    stranger = f"{STAMP} IS NULL AND {MOMENT} > {BEFORE}"
    changed = f"{STAMP} IS NOT NULL AND {MOMENT} >= 0 AND {MOMENT} % 2 = 0"
    placed = f"{STAMP} IS NULL AND {MOMENT} >= 0"  # the row may be a copy, and so the winner, too
    window = f"OVER (PARTITION BY {tied})"
    return f"({changed} AND max({stranger}) {window} OR {placed} AND max({changed}) {window})"


def _message(splits: SplitSource, spec: MergeSpec) -> str:
    parts = [f"concat({text_literal(k + ' = ')}, CAST({quoted(k)} AS STRING))" for k in spec.key]
    began, ended = map(text_literal, unknown_order_message(splits.definition.full_name))
    return f"concat('BAD_DATA: ', {began}, concat_ws(', ', {', '.join(parts)}), {ended})"

"""The fold of whole rows as Spark SQL expressions: deduplicate (U1-U8) and first-row (E2). It needs no Python worker.

Expressions are text, not Column objects: each Column takes several calls into the JVM, and a merged read would have
hundreds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from trinity.hidden import ARRIVAL, UNSURE
from trinity.merge.properties import MergeEngine
from trinity.merge.row_kinds import StoredKind
from trinity.merge.spec import MergeSpec
from trinity.merge.sql.rows import AnyRows, Rows
from trinity.spi import ROW_KIND
from trinity.syntax.quoting import quoted, text_literal

_RANK: Final = "_trinity_rank"


def is_deleted(spec: MergeSpec, of: Rows) -> str:
    """Return Spark SQL over ``of``: true, never NULL, where a winning row says that its key is deleted (U3, U6, U8)."""
    marks = []
    if spec.tombstone:
        marks.append(_is_tombstone(spec, spec.tombstone, dict(of.dtypes)[spec.tombstone]))
    if spec.row_kind:
        marks.append(_is_retract(spec.row_kind))
    if spec.hidden_row_kind:
        marks.append(f"{ROW_KIND} IN ({StoredKind.HIDDEN}, {StoredKind.DELETED})")
    deleted = f"coalesce({' OR '.join(marks) or 'false'}, false)"
    if UNSURE not in dict(of.dtypes):
        return deleted
    return f"IF({UNSURE} IS NOT NULL, CAST(raise_error({UNSURE}) AS BOOLEAN), {deleted})"


def _is_tombstone(spec: MergeSpec, name: str, kind: str) -> str:
    if kind == "boolean":
        return quoted(name)
    if spec.tombstone_value is None:
        return f"{quoted(name)} IS NOT NULL"
    return f"{quoted(name)} = {text_literal(spec.tombstone_value)}"


def _is_retract(row_kind: str) -> str:
    return f"rtrim({quoted(row_kind)}) IN ('-U', '-D')"


def winners(spec: MergeSpec, versions: AnyRows) -> AnyRows:
    """Return the winning version of each key, tombstones too: freshest watermark, then latest arrival (K3, K4).

    In a ``first-row`` table the earliest arrival wins (E2). Under ``ignore-delete`` retracts take no part (D1).
    A window function is used, not ``max_by``: it leaves rows sorted by key, so the join with the base need not sort.
    """
    versions = taking_part(spec, versions)
    key = ", ".join(map(quoted, spec.key))
    order = winner_first(spec, {name: quoted(name) for name in spec.ordering})
    ranked = versions.selectExpr("*", f"row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS {_RANK}")
    return ranked.where(f"{_RANK} = 1").drop(_RANK)


def taking_part(spec: MergeSpec, versions: AnyRows) -> AnyRows:
    """Return the row versions that may win: under ``ignore-delete`` all except retracts (D1)."""
    if not (spec.ignore_delete and spec.row_kind):
        return versions
    return versions.where(f"NOT coalesce({_is_retract(spec.row_kind)}, false)")


def winner_first(spec: MergeSpec, names: Mapping[str, str]) -> str:
    """Return Spark SQL: the ORDER BY of a key's row versions, the winner first (K3, K4, E2)."""
    way: str = "ASC" if spec.descending else "DESC"
    arrival = "ASC" if spec.engine is MergeEngine.FIRST_ROW else "DESC"
    return ", ".join([*(f"{names[c]} {way} NULLS LAST" for c in spec.ordering), f"{ARRIVAL} {arrival}"])


def beats(spec: MergeSpec, earlier: str, later: str) -> str:
    """Return Spark SQL: true where the earlier arrival still wins, by a strictly fresher watermark (K3, K4)."""
    if spec.engine is MergeEngine.FIRST_ROW:  # an earlier row always wins
        return f"{earlier}.{quoted(spec.key[0])} IS NOT NULL"
    pairs = [(f"{earlier}.{quoted(name)}", f"{later}.{quoted(name)}") for name in spec.ordering]
    return greater(pairs, tie="false", sign="<" if spec.descending else ">")


def greater(pairs: Sequence[tuple[str, str]], tie: str, sign: str = ">") -> str:
    """Return Spark SQL, never NULL: true if the first value of each pair beats the second; NULL loses (K3).

    Pairs are compared left to right: the first pair that differs decides. If all are equal the result is ``tie``. The
    sign is ``<`` if the smallest value is the freshest.
    """
    wins = tie
    for mine, other in reversed(pairs):
        strictly = f"coalesce({mine} {sign} {other}, {mine} IS NOT NULL AND {other} IS NULL)"
        wins = f"({strictly} OR ({mine} <=> {other} AND {wins}))"
    return wins

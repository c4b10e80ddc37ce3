"""Rows that a -D of a sequence group removes (D5): a state machine over the row versions of a key, in Spark SQL.

A row's tuple in a group are its values of the group's sequence columns. Listed groups are those of
``partial-update.remove-record-on-sequence-group``.

While a key is live, a -D deletes the row if in a listed group its tuple is not older than the stored one. In each such
group the tuple of the -D becomes a threshold; everything else is blank from then on. While a key is dead, an add that
is older than a threshold is dropped as a whole, and so is an add that is NULL in all groups with a threshold. Any other
add revives the row, from blank. Retracts of a dead key can only raise thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping

from trinity.merge.row_kinds import FoldKind, is_retract
from trinity.merge.spec import MergeSpec, SequenceGroup
from trinity.merge.sql.fold import greater
from trinity.merge.sql.rows import AnyRows, per_key
from trinity.syntax.quoting import quoted

_ROWS = "_trinity_key_rows"
_STATE = "_trinity_state"


def kept_after_removal(rows: AnyRows, spec: MergeSpec, fold_order: str, kind: str) -> AnyRows:
    """Return the rows of a live key from its last revival on, and for a dead key one -D that carries its thresholds.

    Args:
        rows: the row versions, without cuts.
        spec: the table's merge rules.
        fold_order: name of a BIGINT column with the fold order within a key.
        kind: name of a column with a :class:`~trinity.merge.row_kinds.FoldKind`.
    """
    types = {fold_order: "bigint", kind: "int"}  # the fold order first: the rows are sorted by it
    types |= {name: of for name, of in rows.dtypes if name not in types}
    columns = ", ".join(map(quoted, types))
    x, y = f"x.{fold_order}", f"y.{fold_order}"
    in_order = f"(x, y) -> CASE WHEN {x} < {y} THEN -1 WHEN {x} > {y} THEN 1 ELSE 0 END"
    collected = per_key(rows, spec.key, f"array_sort(collect_list(struct({columns})), {in_order}) AS {_ROWS}")
    state = _Machine(spec.remove_on_group, types, fold_order, kind).run(_ROWS)
    found = collected.selectExpr(_ROWS, f"{state} AS {_STATE}")
    alive = f"filter({_ROWS}, r -> {_STATE}.start IS NULL OR r.{fold_order} >= {_STATE}.start)"
    dead = f"array({_threshold_row(types, spec, fold_order, kind)})"
    return found.selectExpr(f"inline(IF({_STATE}.dead, {dead}, {alive}))")


def _threshold_row(types: Mapping[str, str], spec: MergeSpec, fold_order: str, kind: str) -> str:
    last = f"{_ROWS}[size({_ROWS}) - 1]"
    values = {c: f"{last}.{quoted(c)}" for c in spec.key}
    for n, group in enumerate(spec.remove_on_group):
        values |= {c: f"{_STATE}.s{n}.{quoted(c)}" for c in group.sequence}
    assert spec.row_kind
    values |= {spec.row_kind: "'-D'", fold_order: f"{last}.{fold_order}", kind: str(FoldKind.RETRACT_DELETE)}
    fields = [f"CAST({values.get(c, 'NULL')} AS {t}) AS {quoted(c)}" for c, t in types.items()]
    return f"struct({', '.join(fields)})"


class _Machine:
    """The state machine as Spark SQL, in which ``a`` is the state so far and ``x`` the row."""

    def __init__(self, groups: tuple[SequenceGroup, ...], types: dict[str, str], fold_order: str, kind: str) -> None:
        self.groups = groups
        self.types = types
        self.fold_order = f"x.{fold_order}"
        self.kind = f"x.{kind}"
        self.numbers = range(len(groups))

    def run(self, rows: str) -> str:
        start = ", ".join(f"'s{n}', CAST(NULL AS {self._type(n)})" for n in self.numbers)
        start = f"named_struct('dead', false, 'start', CAST(NULL AS BIGINT), {start})"
        return f"aggregate({rows}, {start}, (a, x) -> {self._step()})"

    def _type(self, group: int) -> str:
        return f"STRUCT<{', '.join(f'{quoted(c)}: {self.types[c]}' for c in self.groups[group].sequence)}>"

    def _tuple(self, group: int) -> str:
        """Return Spark SQL: the row's tuple in a group; NULL if all its parts are NULL."""
        named = ", ".join(f"x.{quoted(c)} AS {quoted(c)}" for c in self.groups[group].sequence)
        return f"CASE WHEN {self._takes_part(group)} THEN struct({named}) END"

    def _takes_part(self, group: int) -> str:
        return self._any([f"x.{quoted(c)} IS NOT NULL" for c in self.groups[group].sequence])

    def _not_older(self, group: int) -> str:
        pairs = [(f"x.{quoted(c)}", f"a.s{group}.{quoted(c)}") for c in self.groups[group].sequence]
        return f"({self._takes_part(group)} AND {greater(pairs, tie='true')})"

    def _any(self, texts: list[str]) -> str:
        return f"({' OR '.join(texts)})"

    def _step(self) -> str:
        not_older = self._any([self._not_older(n) for n in self.numbers])
        deletes = f"(NOT a.dead AND {self.kind} = {FoldKind.RETRACT_DELETE} AND {not_older})"
        reached = self._any([f"(a.s{n} IS NOT NULL AND {self._not_older(n)})" for n in self.numbers])
        older = self._any([f"({self._takes_part(n)} AND NOT {self._not_older(n)})" for n in self.numbers])
        revives = f"(a.dead AND {self.kind} = {FoldKind.ADD} AND {reached} AND NOT {older})"
        parts = ", ".join(f"'s{n}', {self._sequence(n)}" for n in self.numbers)
        dead = "k.deletes OR (a.dead AND NOT k.revives)"
        found = f"named_struct('dead', {dead}, 'start', IF(k.revives, {self.fold_order}, a.start), {parts})"
        # `deletes` and `revives` are evaluated once, and then used for every group
        return f"transform(array(named_struct('deletes', {deletes}, 'revives', {revives})), k -> {found})[0]"

    def _sequence(self, group: int) -> str:
        t, not_older = self._tuple(group), self._not_older(group)
        raised = f"{is_retract(self.kind)} AND a.s{group} IS NOT NULL AND {not_older}"
        chosen = (
            f"CASE WHEN k.deletes THEN IF({not_older}, {t}, NULL) WHEN k.revives THEN {t} "
            f"WHEN a.dead THEN IF({raised}, {t}, a.s{group}) WHEN {not_older} THEN {t} ELSE a.s{group} END"
        )
        return f"CAST({chosen} AS {self._type(group)})"

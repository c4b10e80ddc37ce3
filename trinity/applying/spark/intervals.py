"""The versions of rows, made of their events by Spark: :mod:`trinity.applying.plan` says what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trinity.applying.arguments import START_AT
from trinity.applying.plan import DELETE, SEQUENCE, HistoryPlan, Rank
from trinity.applying.spark.events import EVENT_ARRIVAL
from trinity.engine.feed.spark.images import comparable_image, image
from trinity.hidden import DELETED
from trinity.merge.row_kinds import StoredKind
from trinity.spark.types import spark_type
from trinity.spark_names import DataFrame
from trinity.spi import ROW_KIND, parse_type
from trinity.syntax.quoting import quoted, text_literal

_RANK: Final = "_trinity_event_rank"
"""INT: of several events with one sequence the one with the largest rank counts."""
_WAS: Final = "_trinity_was"
"""The target's row of the event; NULL for none."""
_WAS_KIND: Final = "_trinity_was_kind"
_NUMBER: Final = "_trinity_event_number"
_PREVIOUS: Final = "_trinity_previous"
_SAME: Final = "_trinity_event_same"
_OPENS: Final = "_trinity_opens"
_START: Final = "_trinity_start"
_END: Final = "_trinity_end"
_SHOWN: Final = "_trinity_shown"
_OUT: Final = "_trinity_out"
_ROWS_BEFORE: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND"


@dataclass(frozen=True)
class History:
    """The versions of rows in one target."""

    plan: HistoryPlan

    def changed(self, stored: DataFrame, events: DataFrame) -> DataFrame:
        """Return the target's rows that new events change or add, with their row kind.

        Args:
            stored: the target's rows of the events' keys, hidden ones too, in the users' columns, with
                :data:`~trinity.spi.ROW_KIND` and :data:`~trinity.hidden.DELETED`.
            events: the events of :attr:`~trinity.applying.spark.events.Events.rows`.
        """
        stored_events = self._stored_events(stored)
        none = f"CAST(NULL AS {dict(stored_events.dtypes)[_WAS]}) AS {_WAS}"
        given = {c.lower(): c for c in events.columns}
        columns = [
            quoted(given[c.name.lower()]) if c.name.lower() in given else f"CAST(NULL AS {spark_type(c.type)})"
            for c in self.plan.values
        ]
        named = [f"{value} AS {quoted(c.name)}" for value, c in zip(columns, self.plan.values, strict=True)]
        marks = (SEQUENCE, DELETE, f"{Rank.NEW} AS {_RANK}", EVENT_ARRIVAL, none, f"CAST(NULL AS INT) AS {_WAS_KIND}")
        every = stored_events.unionByName(events.selectExpr(*named, *marks)).repartition(*map(quoted, self.plan.key))
        return self._rows(self._timeline(self._one_for_each_sequence(every)))

    def _stored_events(self, stored: DataFrame) -> DataFrame:
        """Return the events in the target's rows. Of a row that somebody deleted only its end is left."""
        kind = spark_type(self.plan.definition.column(START_AT).type)
        parts = [quoted(name) for name in self.plan.identity]
        own = parts[0] if len(parts) == 1 else f"CAST(struct({', '.join(parts)}) AS {kind})"
        was = image(list(self.plan.definition.visible), self.plan.definition)
        rows = stored.selectExpr("*", f"{own} AS {SEQUENCE}", f"{was} AS {_WAS}")
        start, end = quoted(self.plan.start), quoted(self.plan.end)
        hidden = f"coalesce({ROW_KIND} = {StoredKind.HIDDEN}, false)"
        deletes = f"({DELETED} AND NOT {hidden} AND {end} <=> {SEQUENCE})"
        none = f"CAST(NULL AS {dict(rows.dtypes)[_WAS]})"
        kinds = (
            (f"NOT {DELETED} OR {hidden} OR {deletes}", SEQUENCE, deletes, Rank.STORED, _WAS),
            (f"NOT {hidden} AND NOT {deletes} AND {end} IS NOT NULL", end, "true", Rank.ENDED, none),
            (f"NOT {DELETED} AND NOT {start} <=> {SEQUENCE}", start, "false", Rank.BEGAN, none),
        )
        made = ", ".join(
            f"IF({when}, named_struct('at', {at}, 'gone', {gone}, 'rank', {rank}, 'was', {row}), NULL)"
            for when, at, gone, rank, row in kinds
        )
        values = [quoted(c.name) for c in self.plan.values]
        rows = rows.selectExpr(*values, ROW_KIND, f"inline(array_compact(array({made})))")
        was_kind = f"IF(was IS NULL, NULL, coalesce({ROW_KIND}, 0)) AS {_WAS_KIND}"
        marks = (f"at AS {SEQUENCE}", f"gone AS {DELETE}", f"rank AS {_RANK}", f"-1L AS {EVENT_ARRIVAL}", f"was {_WAS}")
        return rows.selectExpr(*values, *marks, was_kind)

    def _by(self, *further: str) -> str:
        return f"PARTITION BY {', '.join([*map(quoted, self.plan.key), *further])} ORDER BY"

    def _one_for_each_sequence(self, every: DataFrame) -> DataFrame:
        """Keep one event of each sequence: of several, the one that came last (K4)."""
        order = f"{self._by(SEQUENCE)} {_RANK} DESC, {EVENT_ARRIVAL} DESC"
        whole = f"{order} {_ROWS_BEFORE} UNBOUNDED FOLLOWING"
        names = [quoted(c.name) for c in self.plan.values]
        kept = [f"last({c}, true) OVER ({whole}) AS {c}" for c in (_WAS, _WAS_KIND)]
        number = f"row_number() OVER ({order}) AS {_NUMBER}"
        ranked = every.selectExpr(*names, SEQUENCE, DELETE, _RANK, *kept, number)
        return ranked.where(f"{_NUMBER} = 1").drop(_NUMBER)

    def _timeline(self, events: DataFrame) -> DataFrame:
        """Add to each event the start and the end of its version, and whether it is the one that is shown."""
        order = f"{self._by()} {SEQUENCE}"
        same = self._same_as_previous(order)
        rows = events.alias("e").selectExpr("e.*", f"lag({DELETE}) OVER ({order}) AS {_PREVIOUS}", same)
        rows = rows.selectExpr("*", f"NOT {DELETE} AND (coalesce({_PREVIOUS}, true) OR NOT {_SAME}) AS {_OPENS}")
        start = f"last(IF({_OPENS}, {SEQUENCE}, NULL), true) OVER ({order} {_ROWS_BEFORE} CURRENT ROW)"
        shown = _OPENS if self.plan.arguments.by_start else f"coalesce(lead({DELETE} OR {_OPENS}) OVER ({order}), true)"
        rows = rows.drop(_SAME).selectExpr("*", f"{start} AS {_START}", f"NOT {DELETE} AND {shown} AS {_SHOWN}")
        # descending: a frame that begins at its partition's start is computed in one pass
        ends = f"last(IF({DELETE} OR {_OPENS}, {SEQUENCE}, NULL), true)"
        return rows.selectExpr("*", f"{ends} OVER ({order} DESC {_ROWS_BEFORE} 1 PRECEDING) AS {_END}")

    def _same_as_previous(self, order: str) -> str:
        if not self.plan.tracked:
            return f"true AS {_SAME}"
        values = comparable_image(self.plan.tracked, "e")
        return f"({values} <=> lag({values}) OVER ({order})) AS {_SAME}"

    def _rows(self, timeline: DataFrame) -> DataFrame:
        """Return the changed rows of the target."""
        stored = f"WHEN {_SHOWN} THEN {StoredKind.ADDED} ELSE {StoredKind.HIDDEN} END"
        kind = f"CASE WHEN {DELETE} THEN {StoredKind.DELETED} {stored}"
        ended = f"coalesce(NOT {_PREVIOUS}, false)"  # true if the delete ended a version: its END_AT keeps it
        kept = f"IF({DELETE}, {_WAS} IS NOT NULL OR NOT {ended}, {_SHOWN} OR {_RANK} <> {Rank.BEGAN})"
        rows = timeline.where(kept).selectExpr("*", f"{kind} AS {ROW_KIND}", f"{self._out()} AS {_OUT}")
        columns = list(self.plan.definition.visible)
        same = f"{comparable_image(columns, _OUT)} <=> {comparable_image(columns, _WAS)}"
        changed = rows.where(f"{_WAS} IS NULL OR {ROW_KIND} <> {_WAS_KIND} OR NOT {same}")
        return changed.selectExpr(f"{_OUT}.*", f"nullif({ROW_KIND}, 0) AS {ROW_KIND}")

    def _out(self) -> str:
        """Return Spark SQL of an event as a row of the target. A delete has NULL in all columns that allow it."""
        names = parse_type(self.plan.definition.column(START_AT).type).fields
        parts = [SEQUENCE] if len(self.plan.identity) == 1 else [f"{SEQUENCE}.{quoted(name)}" for name in names]
        made = {
            **dict(zip(self.plan.identity, parts, strict=True)),
            self.plan.start: f"IF({_SHOWN}, {_START}, {SEQUENCE})",
            self.plan.end: f"CASE WHEN {DELETE} THEN {SEQUENCE} WHEN {_SHOWN} THEN {_END} END",
        }
        fields = []
        for column in self.plan.definition.visible:
            own = quoted(column.name)
            if self.plan.cleared(column):
                own = f"IF({DELETE}, NULL, {own})"
            fields.append(f"{text_literal(column.name)}, {made.get(column.name, own)}")
        return f"named_struct({', '.join(fields)})"

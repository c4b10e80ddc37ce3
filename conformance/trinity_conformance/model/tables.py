"""The oracle: the meaning of a merged read in plain Python, written from the rules and not from an implementation.

A table is the list of its commits; a commit is a list of row versions in arrival order. :meth:`Model.merged` folds them
again on every call: no state is kept, so none can be wrong.

Where the rules leave a choice, this is the reading: under ``sort-order`` = descending a NULL still loses against every
value, because with a NULL nothing is known of the row's freshness (U2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trinity_conformance.model.conditions import Condition
from trinity_conformance.model.shapes import Shape
from trinity_conformance.model.values import Json, Value, decode, default_of, equal_form, order_form

Row = dict[str, Value]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Version:
    """One row version.

    Attributes:
        row: its values by column name.
        deleted: True when a writer's delete wrote it (U5, M11), however storage marks that.
        named: the columns that the writer supplied (P1); None for all.
        assigned: True when an SQL UPDATE wrote it: NULLs of its named columns then count (P1).
    """

    row: Row
    deleted: bool = False
    named: frozenset[str] | None = None
    assigned: bool = False

    def names(self, column: str) -> bool:
        """Return whether the writer supplied a column."""
        return self.named is None or column in self.named


@dataclass(frozen=True)
class Changed:
    """One row of a change feed (C1).

    Attributes:
        kind: ``insert``, ``delete``, ``update_preimage`` or ``update_postimage``.
        version: the version that made the change.
        row: its values by column name.
    """

    kind: str
    version: Any
    row: Row


@dataclass
class Model:
    """A keyed ``deduplicate`` table (K1-K6, U1-U8).

    Attributes:
        shape: columns, key, options.
        commits: row versions of each commit, in arrival order.
        recorded: highest transaction number by application (L4).
        blanked: (number of commits, column) of columns that were dropped and added anew.
        cuts: numbers of commits at full compactions.
        taken: (number of commits, key) of rows that another engine changed in place: their older versions are not
            known.
    """

    shape: Shape
    commits: list[list[Version]] = field(default_factory=list)
    recorded: dict[str, int] = field(default_factory=dict)
    blanked: list[tuple[int, str]] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    taken: list[tuple[int, Key]] = field(default_factory=list)

    # -- writes -----------------------------------------------------------------------------------------

    def upsert(
        self,
        rows: Iterable[Sequence[Json]],
        txn: tuple[str, int] | None = None,
        names: tuple[str, ...] | None = None,
    ) -> bool:
        """Append a commit of rows; return False, and do nothing, when ``txn`` had been recorded (L4).

        Args:
            rows: their values.
            txn: (application, number) or None.
            names: the columns of the values, in table order; all by default.
        """
        if txn and self.is_recorded(txn):
            return False
        if txn:
            self.recorded[txn[0]] = txn[1]
        named = None if names is None else frozenset(names)
        self.commits.append([Version(self.shape.decode_row(tuple(row), names), named=named) for row in rows])
        return True

    def is_recorded(self, txn: tuple[str, int]) -> bool:
        """Return whether the number is not above the highest recorded for its application (L4)."""
        return txn[1] <= self.recorded.get(txn[0], txn[1] - 1)

    def delete_keys(self, keys: Iterable[Key]) -> int:
        """Delete rows by key (in the form of :meth:`key_of`); return how many there were (U5)."""
        present = self.merged()
        return self._delete([present[k] for k in dict.fromkeys(keys) if k in present])

    def delete_where(self, condition: Condition) -> int:
        """Delete the rows of the merged read on which a condition is true; return how many (U5)."""
        return self._delete([r for r in self.merged().values() if condition.holds(self.shape, r)])

    def _delete(self, rows: list[Row]) -> int:
        if rows:
            self.commits.append([Version(row, deleted=True) for row in rows])
        return len(rows)

    # Compaction, vacuum and a restart change nothing (L3). The self-test's mutants do otherwise.

    def compact(self, full: bool) -> None:
        """Model a compaction: it changes no read; a full one ends a round (C6)."""
        if full:
            self.cuts.append(len(self.commits))

    def resolve(self) -> None:
        """Model a resolve: it changes no read (R1)."""

    def vacuum(self) -> None:
        """Model a vacuum: it changes no read."""

    def reopen(self) -> None:
        """Model a new session: it changes no read."""

    def alter(self, kind: str, columns: Sequence[str]) -> None:
        """Model a change of columns: reads change only where a column is replaced, by NULLs or by its DEFAULT."""
        if kind in ("blank", "default"):
            self.blanked += [(len(self.commits), column) for column in columns]
        if kind == "default" and (rows := self.merged()):
            types = {column: self.shape.type_of(column) for column in columns}
            given = {column: decode(kind, default_of(kind)) for column, kind in types.items()}
            self.commits.append([Version({**row, **given}, assigned=True) for row in rows.values()])

    # -- reads ------------------------------------------------------------------------------------------

    def merged(self, commits: int | None = None) -> dict[Key, Row]:
        """Return the merged read after the first ``commits`` commits, by key; after all by default (L10)."""
        winners = self.winners(commits)
        return {key: winner.row for key, winner in winners.items() if not self.is_deleted(winner)}

    def feed(self, after: int) -> list[Changed]:
        """Return the feed since the first ``after`` commits, by ``changelog-producer`` (C6)."""
        kinds = {"input": self.arrivals_after, "full-compaction": self.rounds}
        return kinds.get(self.shape.producer, self.changes)(after)

    def arrivals_after(self, after: int) -> list[Changed]:
        """Return the row versions in arrival order, commit by commit."""
        commits = enumerate(self.arrived(), 1)
        return [Changed(self.kind_of(v), n, v.row) for n, commit in commits if n > after for v in commit]

    def kind_of(self, version: Version) -> str:
        """Return the kind that a writer gave a row version; one that deletes is a delete, whatever it says."""
        kind = version.row[self.shape.row_kind] if self.shape.row_kind and not version.deleted else None
        if kind == "-U":
            return "update_preimage"
        if self.is_deleted(version):
            return "delete"
        return "update_postimage" if kind == "+U" else "insert"

    def rounds(self, after: int) -> list[Changed]:
        """Return the changes of the merged read from one full compaction to the next, under the second's version."""
        found, start = list[Changed](), 0
        for cut in self.cuts:
            found += self.between(start, cut, cut) if cut > after else []
            start = cut
        return found

    def between(self, start: int, end: int, version: Any) -> list[Changed]:
        """Return the changes between the merged reads after some commits and after more, under a version."""
        before, now = self.merged(start), self.merged(end)
        return [c for key in before.keys() | now.keys() for c in self.changed(version, before.get(key), now.get(key))]

    def changes(self, after: int) -> list[Changed]:
        """Return the changes of the merged read since the first ``after`` commits, commit by commit (C1)."""
        numbers = range(after + 1, len(self.commits) + 1)
        return [change for number in numbers for change in self.between(number - 1, number, number)]

    def changed(self, version: int, before: Row | None, after: Row | None) -> list[Changed]:
        """Return the change of one key's row by one commit, none if it is the same."""
        if before is None or after is None:
            gone = [Changed("delete", version, before)] if before else []
            return [*gone, *([Changed("insert", version, after)] if after else [])]
        if all(equal_form(c.type, before[c.name]) == equal_form(c.type, after[c.name]) for c in self.shape.columns):
            return []
        return [Changed("update_preimage", version, before), Changed("update_postimage", version, after)]

    def query(self, condition: Condition) -> dict[Key, Row]:
        """Return the rows of the merged read on which a condition is true (L9)."""
        return {k: r for k, r in self.merged().items() if condition.holds(self.shape, r)}

    def winners(self, commits: int | None = None) -> dict[Key, Version]:
        """Return the winning version of each key, deleted ones included."""
        found: dict[Key, Version] = {}
        for version in self.arrivals(commits):
            key = self.key_of(version.row)
            if not self.is_dropped(version) and (key not in found or self.takes_over(version, found[key])):
                found[key] = version
        return found

    def overflows(self, names: Iterable[str] | None = None, commits: int | None = None) -> dict[Key, set[str]]:
        """Return key -> columns for which a read must fail; none here (A4)."""
        return {}

    def situations(self) -> Counter[str]:
        """Return the situations of the folds; counted for merge engines only."""
        return Counter()

    def arrivals(self, commits: int | None = None) -> Iterable[Version]:
        """Return row versions in arrival order: by commit, then by place in the commit."""
        return (version for commit in self.arrived(commits) for version in commit)

    def arrived(self, commits: int | None = None) -> Iterable[list[Version]]:
        """Yield the commits without rows taken since; a column that was dropped and added again since is NULL."""
        last = len(self.commits) + 1 if commits is None else commits
        for number, commit in enumerate(self.commits[:commits]):
            gone = {column for at, column in self.blanked if number < at < last}
            keys = {key for at, key in self.taken if number < at < last}
            kept = [v for v in commit if self.key_of(v.row) not in keys] if keys else commit
            yield [self._blank(v, gone) if gone else v for v in kept]

    def _blank(self, version: Version, columns: Iterable[str]) -> Version:
        return replace(version, row={**version.row, **dict.fromkeys(columns)})

    def takes_over(self, later: Version, earlier: Version) -> bool:
        """Return True unless the earlier arrival is strictly fresher (U1, K4)."""
        return self.compare(later.row, earlier.row) >= 0

    def compare(self, one: Row, other: Row) -> int:
        """Compare freshness: positive when ``one`` is fresher, 0 for a tie; composites compare left to right (K3)."""
        for name in self.shape.watermark:
            found = self.compare_part(self.shape.type_of(name), one[name], other[name])
            if found:
                return found
        return 0

    def compare_part(self, type_text: str, one: Value, other: Value) -> int:
        """Compare the freshness of one ordering column (K3, U2, U8)."""
        mine, theirs = order_form(type_text, one), order_form(type_text, other)
        sign = (mine > theirs) - (mine < theirs)
        return -sign if self.shape.descending and one is not None and other is not None else sign

    def is_deleted(self, version: Version) -> bool:
        """Return whether a winner means that its key is deleted (U3, U5, U8)."""
        return version.deleted or self.is_tombstone(version.row) or self.is_retract(version.row)

    def is_tombstone(self, row: Row) -> bool:
        """Return whether a row is a tombstone (U3)."""
        if self.shape.tombstone is None:
            return False
        value, kind = row[self.shape.tombstone], self.shape.type_of(self.shape.tombstone)
        if kind == "boolean":
            return value is True
        if self.shape.tombstone_value is not None:
            return value is not None and equal_form(kind, value) == equal_form(kind, self.shape.tombstone_value)
        return value is not None

    def is_retract(self, row: Row) -> bool:
        """Return whether a row is a -U or -D (U8)."""
        return self.shape.row_kind is not None and row[self.shape.row_kind] in ("-U", "-D")

    def is_dropped(self, version: Version) -> bool:
        """Return whether the version takes no part (D1); ignored retracts do not include a writer's delete."""
        return self.shape.ignore_delete and not version.deleted and self.is_retract(version.row)

    def key_form(self, key: Sequence[Json]) -> Key:
        """Return the form of :meth:`key_of` for encoded key values in table order."""
        names = [c.name for c in self.shape.columns if c.name in self.shape.key]
        return self.key_of(self.shape.decode_row(tuple(key), tuple(names)))

    def key_of(self, row: Row) -> Key:
        """Return the key in the form in which keys are compared for equality (K2)."""
        return tuple(equal_form(self.shape.type_of(n), row[n]) for n in self.shape.key)

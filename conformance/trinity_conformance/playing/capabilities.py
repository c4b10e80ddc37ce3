"""What an adapter declares, verified both ways: declared features work, all others are refused and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from trinity import Column
from trinity.errors import TrinityError
from trinity.spi import Capability
from trinity.storage import Location
from trinity_conformance.playing.cases import Case
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.faults import inject
from trinity_conformance.playing.subject import LeftToSpark, TrinitySubject

if TYPE_CHECKING:
    from trinity_conformance.playing.observations import Tally

_CHECK: Final = "capabilities"
_NUMBERS: Final = count()
_ROW: Final = pa.table({"k": pa.array([1], pa.int32()), "w": pa.array([1], pa.int32()), "v": ["a"]})


@dataclass(frozen=True)
class Verified:
    """The verified capabilities of an adapter.

    Attributes:
        usable: capabilities that it declares and does not refuse.
        undeclared: capabilities that work, although it does not declare them.
        findings: declared capabilities that do not work, and refusals with another code or with an effect.
    """

    usable: frozenset[Capability]
    undeclared: frozenset[Capability] = frozenset()
    findings: tuple[NonConformance, ...] = ()


class _NotTried(Exception):
    """The refusal of a capability that an adapter need not have in this kind of warehouse."""


class _Bench:
    """A keyed table of k, w, v with two commits, on which a capability is tried, and further tables."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.name = _fresh()
        self.table = self.make(self.name, {"k": "int", "w": "int", "v": "string"})
        self.first = self.table.upsert(_ROW).version
        self.table.upsert(_ROW)
        self._made: list[str] = []
        self.before = self.state()

    @property
    def used(self) -> bool:
        """True once the table was changed."""
        return bool(self.table.splits().version != self.before[1])

    def make(self, name: str, types: Mapping[str, str], **options: Any) -> Any:
        """Make a table with key k and options of ``create_table``."""
        columns = [Column(n, t) for n, t in types.items()]
        return self.session.create_table(name, columns, **{"primary_key": ["k"], **options})

    def made(self, types: Mapping[str, str], **options: Any) -> Any:
        """Make another table, which counts as made once that has worked."""
        found = self.make(_fresh(), types, **options)
        self._made.append(found.name.table)
        return found

    def state(self) -> tuple[Any, ...]:
        """Return what a reader sees of the table, and the tables that no case has made."""
        rows = sorted(map(str, self.table.to_arrow().to_pylist()))
        known = self.session.connector("c").metadata.list_tables("default")
        return rows, self.table.splits().version, [name for name in known if name not in self._made]


def _fresh() -> str:
    return f"c.default.capability{next(_NUMBERS)}"


def _sql(text: str) -> Callable[[_Bench], object]:
    return lambda bench: bench.session.sql(text.format(t=bench.name)).to_arrow()


def _past(bench: _Bench) -> None:
    bench.table.to_arrow(version=bench.first)
    bench.table.changes(bench.first).to_arrow()


def _another_name(bench: _Bench) -> None:
    made = bench.made({"k": "int"})
    try:
        made.rename(_fresh()).rename(made.name)
    except TrinityError as error:
        if error.code == "NOT_SUPPORTED" and not Location.of(made.location).on_disk:
            raise _NotTried from error  # a format may rename on a disk, and refuse it in a bucket
        raise


def _external(bench: _Bench) -> None:
    """Register a folder without a table: an adapter with external tables answers that there is none."""
    with TemporaryDirectory(prefix="trinity-conformance-") as folder:
        try:
            bench.session.register(_fresh(), bench.session.format_name("c"), folder)
        except TrinityError as error:
            if error.code not in ("INVALID_ARGUMENTS", "TABLE_NOT_FOUND"):
                raise


def _commits(bench: _Bench) -> None:
    """Commit, and look whether that is an operation of the storage."""
    table = bench.made({"k": "int", "w": "int", "v": "string"})
    with inject(bench.session.connector("c"), None) as seen:
        table.upsert(_ROW)
    if not seen.in_storage:
        raise TrinityError("NOT_SUPPORTED", "a commit takes effect by no operation of trinity.storage")


def _engine(name: str, bench: _Bench) -> None:
    table = bench.made({"k": "int", "w": "int", "v": "string"}, properties={"merge-engine": name})
    table.upsert(_ROW)


def _type(text: str, bench: _Bench) -> None:
    found = bench.made({"k": "int", "x": text}).definition.column("x").type
    if found != text:
        raise ValueError(f"a column of type {text} has the type {found}")


def _partition(field: str, bench: _Bench) -> None:
    kind = pa.int32() if "," in field or field == "x" else pa.timestamp("us", "UTC")
    types = {"k": "int", "x": "int" if kind == pa.int32() else "timestamp"}
    table = bench.made(types, primary_key=(), partition_by=[field])
    table.append(pa.table({"k": pa.array([1], pa.int32()), "x": pa.array([7]).cast(pa.int64()).cast(kind)}))


_ALTERATIONS: Final[Mapping[Capability, str]] = {
    Capability.ADD_COLUMN: "ADD COLUMN x BIGINT",
    Capability.DROP_COLUMN: "DROP COLUMN v",
    Capability.RENAME_COLUMN: "RENAME COLUMN v TO x",
    Capability.MOVE_COLUMN: "ALTER COLUMN v FIRST",
    Capability.WIDEN_COLUMN: "ALTER COLUMN w TYPE BIGINT",
    Capability.CONSTRAINTS: "ADD CONSTRAINT positive CHECK (w > 0)",
}
_TYPES: Final[Mapping[Capability, str]] = {
    **{c: c.value.removeprefix("type ") for c in Capability if c.value.startswith("type ")},
    Capability.DECIMAL: "decimal(10,2)",
    Capability.CHAR: "char(3)",
    Capability.VARCHAR: "varchar(5)",
    Capability.ARRAY: "array<int>",
    Capability.MAP: "map<string,int>",
    Capability.STRUCT: "struct<a:int>",
}
_PARTITIONS: Final[Mapping[Capability, str]] = {
    Capability.PARTITION_BY_VALUE: "x",
    Capability.PARTITION_BY_BUCKET: "bucket(4, x)",
    Capability.PARTITION_BY_TRUNCATE: "truncate(4, x)",
    Capability.PARTITION_BY_YEARS: "years(x)",
    Capability.PARTITION_BY_MONTHS: "months(x)",
    Capability.PARTITION_BY_DAYS: "days(x)",
    Capability.PARTITION_BY_HOURS: "hours(x)",
}
_ENGINES: Final = (Capability.PARTIAL_UPDATE, Capability.AGGREGATION, Capability.FIRST_ROW)

OF_CALLS: Final[Mapping[Capability, Callable[[_Bench], object]]] = {
    Capability.ROW_CHANGES: _sql("UPDATE {t} SET v = 'b' WHERE k = 1"),
    Capability.TRUNCATE: lambda bench: bench.table.truncate(),
    Capability.RESOLVE: lambda bench: bench.table.compact("resolve"),
    Capability.TIME_TRAVEL: _past,
    Capability.RENAME_TABLE: _another_name,
    Capability.RESTORE: lambda bench: bench.table.restore(bench.first),
    Capability.REPAIR: lambda bench: bench.session.repair(bench.name, dry_run=True),
    Capability.EXTERNAL_TABLES: _external,
    **{c: partial(_engine, c.value) for c in _ENGINES},
    **{c: partial(_partition, field) for c, field in _PARTITIONS.items()},
    **{c: _sql("ALTER TABLE {t} " + change) for c, change in _ALTERATIONS.items()},
    **{c: partial(_type, text) for c, text in _TYPES.items()},
}
"""Capability -> a call that needs it."""
PROBES: Final = {**OF_CALLS, Capability.COMMITS_IN_STORAGE: _commits}
"""The calls of :data:`OF_CALLS`, and one that watches a commit."""


def verify(subject: TrinitySubject, tally: Tally, probes: Mapping[Capability, Callable[[_Bench], object]]) -> Verified:
    """Try capabilities. One that only Spark could try, or that need not work in a bucket, counts as usable."""
    declared = subject.session.capabilities("c")
    refused, undeclared, findings = set[Capability](), set[Capability](), list[NonConformance]()
    subject.executed_by("local")
    bench = _Bench(subject.session)
    known = {c for c in _TYPES if c in declared} if _takes_all(bench, declared) else set()
    tally.observations[_CHECK] += len(known)
    for capability, action in probes.items():
        if capability in known:
            continue
        if bench.used:
            bench = _Bench(subject.session)
        try:
            works = _tried(subject, bench, action)
        except (LeftToSpark, _NotTried):
            continue
        except NonConformance as failure:
            failure.message = f"{capability.value}: {failure.message}"
            findings.append(_with_case(capability, failure))
            continue
        finally:
            tally.observations[_CHECK] += 1
        if works is True and capability not in declared:
            undeclared.add(capability)
        if works is not True and capability in declared:
            refused.add(capability)
            text = f"{capability.value}: declared, and refused: {works}"
            findings.append(_with_case(capability, NonConformance(_CHECK, text)))
    return Verified(declared - refused, frozenset(undeclared), tuple(findings))


def _with_case(capability: Capability, failure: NonConformance) -> NonConformance:
    """Return a failure with the case that plays it again."""
    failure.case = Case(_CHECK, capability.value, "local", steps=(f"try {capability.value}",))
    return failure


def _takes_all(bench: _Bench, declared: Collection[Capability]) -> bool:
    """Return whether a table takes columns of all declared types at once; if not, each is tried alone."""
    types = {f"x{n}": text for n, (c, text) in enumerate(_TYPES.items()) if c in declared}
    try:
        made = bench.made({"k": "int", **types})
    except TrinityError:
        return False
    return {name: made.definition.column(name).type for name in types} == types


def _tried(subject: TrinitySubject, bench: _Bench, action: Callable[[_Bench], object]) -> bool | str:
    """Return True when something works, else the message of its refusal.

    Raises:
        NonConformance: another error, or a refusal that changed something.
    """
    try:
        subject.run(lambda: action(bench))
    except (LeftToSpark, _NotTried):
        raise
    except TrinityError as error:
        if error.code != "NOT_SUPPORTED":
            raise NonConformance(_CHECK, f"neither works nor is refused by NOT_SUPPORTED: {error}") from error
        if (after := bench.state()) != bench.before:
            raise NonConformance(_CHECK, f"was refused, and left {after}, where {bench.before} was") from error
        return error.message
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:1500]}"
        raise NonConformance(_CHECK, f"neither works nor is refused by NOT_SUPPORTED: {text}") from error
    return True

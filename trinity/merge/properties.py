"""Table properties: names, defaults and checks; and the meaning of those of the change feed and of compaction."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from trinity.errors import TrinityError, nearest
from trinity.merge.compaction_strength import Strength
from trinity.secrets import HIDDEN, is_secret_property
from trinity.spi import RowChangeParadigm, TableDefinition


class MergeEngine(str, Enum):
    """The way in which the row versions of a key become one row: ``merge-engine``."""

    DEDUPLICATE = "deduplicate"
    """The row is the freshest version as a whole (U1)."""
    PARTIAL_UPDATE = "partial-update"
    """The row is folded column by column, and sequence group by sequence group (P1, G1-G7)."""
    AGGREGATION = "aggregation"
    """Each column of the row is folded by the column's aggregate function (E1)."""
    FIRST_ROW = "first-row"
    """The row is the version that arrived first, as a whole (E2)."""

    @property
    def by_column(self) -> bool:
        """True for the engines that fold each column by a rule of its own, not the row as a whole (P1, G6, E1)."""
        return self in (MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION)


@dataclass(frozen=True)
class Property:
    """A table property, or an option of columns in one.

    Attributes:
        meaning: a line about what it sets.
        default: the value that means the same as leaving it out; empty if no value does.
        fixed: True if stored rows depend on it, so that it cannot be changed once the table is made (L3).
    """

    meaning: str
    default: str = ""
    fixed: bool = False


TABLE_PROPERTIES: Final[dict[str, Property]] = {
    "merge-engine": Property(
        "how row versions fold: deduplicate, partial-update, aggregation or first-row", "deduplicate", fixed=True
    ),
    "watermark-key": Property("columns 'a[,b]' whose largest value is the newest row", fixed=True),
    "sequence.field": Property("another name of watermark-key", fixed=True),
    "sequence.field.sort-order": Property(
        "ascending, or descending: the smallest value is the newest row", "ascending", fixed=True
    ),
    "tombstone-key": Property("the column that marks a deleted row", fixed=True),
    "tombstone-string-key-value": Property("the value of a string tombstone column that means deleted", fixed=True),
    "tombstone.retention": Property("how long compaction keeps tombstones, as '30 days'; without it for ever"),
    "tombstone.keep-values": Property("true: a tombstone in the sidecar keeps its whole row", "false"),
    "keep-versions": Property(
        "true: compaction leaves old row versions readable, unless tombstone.retention is set", "false"
    ),
    "rowkind.field": Property("a string column with +I, -U, +U or -D", fixed=True),
    "ignore-delete": Property("true: retracts (-U, -D) are dropped", "false", fixed=True),
    "partial-update.remove-record-on-delete": Property("true: a -D deletes the row, a -U is ignored", fixed=True),
    "partial-update.remove-record-on-sequence-group": Property(
        "sequence columns: a -D that is not older in their group deletes the row", fixed=True
    ),
    "aggregation.remove-record-on-delete": Property("true: a -D deletes the row, a -U is ignored", fixed=True),
    "fields.default-aggregate-function": Property("the function of columns that name none", fixed=True),
    "changelog-producer": Property("what the change feed shows: none, input, lookup or full-compaction", "none"),
    "changelog-producer.row-deduplicate": Property(
        "true: no change from a row to an equal one; there is none either way"
    ),
    "full-compaction.delta-commits": Property(
        "how many commits after a full compaction the writer makes the next one; without it none"
    ),
    "compaction.trigger.log-share": Property(
        "log rows divided by base rows, as 0.1, from which the writer compacts after its commit; without it never"
    ),
    "compaction.trigger.commits": Property(
        "commits in the log, from which the writer compacts after its commit; without it never"
    ),
    "compaction.trigger.strength": Property(
        "minor, resolve or full; without it full for the share, minor for the commits"
    ),
    "row-change-paradigm": Property(
        f"how an adapter gets an update: {' or '.join(p.value for p in RowChangeParadigm)}; "
        "without it as the merge engine needs"
    ),
    "bucket": Property("number of buckets of the base; without it chosen by size"),
    "commit.retry.timeout": Property("how long a statement is retried after conflicts", "10 minutes"),
    "write.sync": Property("false: data files are not synced to disk before their commit", "true"),
    "comment": Property("free text"),
}
"""Every property that Trinity itself reads."""

COLUMN_OPTIONS: Final[dict[str, Property]] = {
    "sequence-group": Property("of sequence columns 'a[,b]': the columns that they protect", fixed=True),
    "aggregate-function": Property("how the column's values fold", fixed=True),
    "ignore-retract": Property("true: retracts leave the column as it is", "false", fixed=True),
    "list-agg-delimiter": Property("what stands between values", ",", fixed=True),
    "distinct": Property("true: each value is kept once", "false", fixed=True),
    "ts-field": Property("the field with an entry's time; without it the last", fixed=True),
    "nested-key": Property("fields 'a[,b]' by which rows are equal", fixed=True),
    "nested-key-null-strategy": Property("rows with a NULL there: merge, ignore or error", "merge", fixed=True),
    "nested-sequence-field": Property("fields 'a[,b]'; only a row that is not older replaces", fixed=True),
    "count-limit": Property("how many rows are kept; without it all", fixed=True),
}
"""Options of columns, in a property ``fields.<columns>.<option>`` (G1, A1, A3)."""

PropertyValue = str | int | float | bool
Properties = Mapping[str, PropertyValue]
"""Table properties as users give them; they are kept as text."""

_COLUMN_OPTION: Final = re.compile(r"(?i)^fields\.(.+)\.([a-z_-]+)$")


def canonical_properties(given: Properties, kept_prefixes: tuple[str, ...] = ()) -> dict[str, str]:
    """Return properties under their canonical keys: lower case, with hyphens; column names in keys stay as they are.

    Args:
        given: properties as a user wrote them, any case, hyphens or underscores.
        kept_prefixes: prefixes of the format's own properties, whose keys stay as they are.

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY for an unknown key (with the nearest known one), for two
            spellings of one key, or for a secret (N4).
    """
    found: dict[str, str] = {}
    for key, value in given.items():
        canonical = key if key.startswith(kept_prefixes or ("\0",)) else _canonical_key(key)
        if canonical in found:
            raise TrinityError(
                "INVALID_TABLE_PROPERTY", f"Table property '{canonical}' is given more than once; keep one of them."
            )
        if is_secret_property(canonical, str(value)):
            raise TrinityError(
                "INVALID_TABLE_PROPERTY",
                f"Table property '{canonical}' has a secret in it, and all who read the table see its properties; give "
                "it among the options of the catalog.",
            )
        found[canonical] = property_text(value)
    return found


def property_text(value: PropertyValue) -> str:
    """Return the text of a property's value; a boolean in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _canonical_key(key: str) -> str:
    canonical = key.lower().replace("_", "-")
    if canonical in TABLE_PROPERTIES:
        return canonical
    if by_column := _COLUMN_OPTION.match(key):
        return _column_key(key, by_column[1], by_column[2].lower().replace("_", "-"))
    raise TrinityError(
        "INVALID_TABLE_PROPERTY",
        f"Table property '{key}' is unknown.{nearest(canonical, tuple(TABLE_PROPERTIES))} "
        f"Known: {', '.join(sorted(TABLE_PROPERTIES))}.",
    )


def _column_key(key: str, columns: str, option: str) -> str:
    """Return ``fields.<columns>.<option>``, with the columns as they are written, but without blanks."""
    if option not in COLUMN_OPTIONS:
        raise TrinityError(
            "INVALID_TABLE_PROPERTY",
            f"Table property '{key}' is unknown: of columns there is no option '{option}'."
            f"{nearest(option, tuple(COLUMN_OPTIONS))} Known: {', '.join(sorted(COLUMN_OPTIONS))}.",
        )
    return f"fields.{','.join(c.strip() for c in columns.split(','))}.{option}"


def column_options(properties: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Return (columns, option) -> value for every property ``fields.<columns>.<option>``, in canonical spelling."""
    found = {}
    for key, value in properties.items():
        match = None if key in TABLE_PROPERTIES else _COLUMN_OPTION.match(key)
        if match:
            found[match[1], match[2]] = value
    return found


_UNITS: Final = {
    "ms": 1, "millisecond": 1, "s": 1000, "sec": 1000, "second": 1000, "m": 60_000, "min": 60_000, "minute": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "d": 86_400_000, "day": 86_400_000, "week": 7 * 86_400_000,
}  # fmt: skip


def duration_ms(text: str | dt.timedelta, what: str) -> int:
    """Return the milliseconds of a duration such as ``7 days``, ``10 min`` or ``0 seconds``.

    Args:
        text: a whole number and a unit; or a timedelta that is not negative.
        what: the property or argument, for the message.

    Raises:
        TrinityError: INVALID_ARGUMENTS for any other text.
    """
    if isinstance(text, dt.timedelta) and text >= dt.timedelta():
        return text // dt.timedelta(milliseconds=1)
    match = re.fullmatch(r"\s*(\d+)\s*([a-zA-Z]+)\s*", str(text))
    unit = match and (_UNITS.get(match[2].lower()) or _UNITS.get(match[2].lower().removesuffix("s")))
    if not match or not unit:
        raise TrinityError(
            "INVALID_ARGUMENTS", f"{what}: '{text}' is no duration; write a number and a unit, such as '7 days'."
        )
    return int(match[1]) * unit


def is_own_property(name: str) -> bool:
    """Return True for a property that Trinity itself keeps with a table; users neither set nor see it."""
    return name.startswith(("trinity.", "_trinity"))


def shown_properties(definition: TableDefinition) -> dict[str, str]:
    """Return the properties that users set, without Trinity's own.

    Secrets are hidden (N4): an external table may have one, although Trinity refuses to set it.
    """
    users = {name: value for name, value in definition.properties.items() if not is_own_property(name)}
    return {name: HIDDEN if is_secret_property(name, value) else value for name, value in users.items()}


def keeps_versions(properties: Mapping[str, str]) -> bool:
    """Return True when compaction has to leave all row versions: ``keep-versions`` without a retention."""
    return properties.get("keep-versions", "").lower() == "true" and "tombstone.retention" not in properties


def commit_timeout_s(properties: Mapping[str, str]) -> float:
    """Return the seconds for which a commit, or a statement that lost a race, is retried: ``commit.retry.timeout``."""
    return duration_ms(_value(properties, "commit.retry.timeout"), "'commit.retry.timeout'") / 1000


def syncs_files(properties: Mapping[str, str]) -> bool:
    """Return True when data files are synced to disk before the commit that names them: ``write.sync``, the default."""
    return _value(properties, "write.sync").lower() != "false"


def _value(properties: Mapping[str, str], name: str) -> str:
    return properties.get(name, TABLE_PROPERTIES[name].default)


def _not_compacted(definition: TableDefinition) -> str | None:
    """Return why writers do not compact a table, as the end of a message; None if they do."""
    if keeps_versions(definition.properties):
        return "does not go with 'keep-versions', under which nothing is compacted"
    return _not_own_keyed(definition)


def _not_own_keyed(definition: TableDefinition) -> str | None:
    """Return the end of the error message if the table has no key or is external, so that the property does not apply.

    None if it applies.
    """
    if not definition.keyed:
        return "needs a PRIMARY KEY, and the table has none"
    if definition.external:
        return "is for tables that Trinity made: others commit to this one, and its files are not Trinity's"
    return None


def refused(definition: TableDefinition, message: str) -> TrinityError:
    """Return the error INVALID_TABLE_PROPERTY, whose message names the table."""
    return TrinityError("INVALID_TABLE_PROPERTY", f"Table '{definition.full_name}': {message}")


_PRODUCER: Final = "changelog-producer"
_DEDUPLICATE: Final = "changelog-producer.row-deduplicate"
_COMMITS: Final = "full-compaction.delta-commits"


class ChangelogProducer(str, Enum):
    """The producer of a table's change feed (C6)."""

    NONE = "none"
    """The merged rows before and after each commit, computed when they are asked for (C1)."""
    INPUT = "input"
    """The rows of each commit as they came, with their row kinds."""
    LOOKUP = "lookup"
    """The same rows as NONE, written right after each commit."""
    FULL_COMPACTION = "full-compaction"
    """The merged rows at a full compaction and at the one before, written by the later one."""

    @property
    def compares(self) -> bool:
        """True when the feed compares merged rows, and shows those that changed."""
        return self is not ChangelogProducer.INPUT

    @property
    def writes(self) -> bool:
        """True when the feed is written before it is asked for."""
        return self in (ChangelogProducer.LOOKUP, ChangelogProducer.FULL_COMPACTION)


def changelog_producer(properties: Mapping[str, str]) -> ChangelogProducer:
    """Return the producer that checked properties name."""
    return ChangelogProducer(_word(properties.get(_PRODUCER, ChangelogProducer.NONE.value)))


def commits_between(properties: Mapping[str, str]) -> int | None:
    """Return the number of commits after which a writer compacts fully, by checked properties; None without one."""
    return int(properties[_COMMITS]) if _COMMITS in properties else None


def check_changelog(definition: TableDefinition, engine: MergeEngine) -> None:
    """Refuse properties that do not go together, as Paimon does. Raises INVALID_TABLE_PROPERTY naming one."""
    properties = definition.properties
    text = properties.get(_PRODUCER, ChangelogProducer.NONE.value)
    known = [producer.value for producer in ChangelogProducer]
    if _word(text) not in known:
        raise refused(definition, f"'{_PRODUCER}' = '{text}'; it is one of {', '.join(known)}.")
    producer = ChangelogProducer(_word(text))
    if producer is not ChangelogProducer.NONE and (why := _against(definition, engine, producer)):
        raise refused(definition, f"'{_PRODUCER}' = '{producer.value}' {why}.")
    deduplicate = properties.get(_DEDUPLICATE)
    if deduplicate is not None and _word(deduplicate) not in ("true", "false"):
        raise refused(definition, f"'{_DEDUPLICATE}' = '{deduplicate}'; it is true or false.")
    if deduplicate is not None and not producer.writes:
        raise refused(definition, f"'{_DEDUPLICATE}' needs '{_PRODUCER}' = 'lookup' or 'full-compaction'.")
    if (commits := properties.get(_COMMITS)) is not None:
        if not commits.strip().isdecimal() or int(commits) < 1:
            raise refused(definition, f"'{_COMMITS}' = '{commits}'; it is a number from 1 on.")
        if why := _against_compaction(definition, producer):
            raise refused(definition, f"'{_COMMITS}' {why}.")


def _against(definition: TableDefinition, engine: MergeEngine, producer: ChangelogProducer) -> str | None:
    if why := _not_own_keyed(definition):
        return why
    if engine is MergeEngine.FIRST_ROW and producer is not ChangelogProducer.LOOKUP:
        return "does not go with merge engine first-row, of which only the first row of a key is ever seen; use lookup"
    return _not_compacted(definition) if producer is ChangelogProducer.FULL_COMPACTION else None


def _against_compaction(definition: TableDefinition, producer: ChangelogProducer) -> str | None:
    if producer is ChangelogProducer.LOOKUP:
        return f"does not go with '{_PRODUCER}' = 'lookup', which waits for no compaction; use full-compaction"
    return _not_compacted(definition)


def _word(text: str) -> str:
    return text.strip().lower().replace("_", "-")


_SHARE: Final = "compaction.trigger.log-share"
_LOG_COMMITS: Final = "compaction.trigger.commits"
_STRENGTH: Final = "compaction.trigger.strength"


@dataclass(frozen=True)
class CompactionTrigger:
    """The limits of a log at which a writer compacts: one of them, or both.

    Attributes:
        log_share: rows of the log divided by rows of the base; None for no such limit.
        commits: number of commits in the log; None for no such limit.
        strength: strength of the compaction. None means full when the share is reached, minor when the commits are.
    """

    log_share: float | None
    commits: int | None
    strength: Strength | None = None

    def due(self, log_share: float, commits: int) -> Strength | None:
        """Return the strength of the compaction that a log with this share and these commits needs; None for none."""
        if self.log_share is not None and log_share >= self.log_share:
            # a minor compaction would not lower the share
            return Strength.FULL if self.strength in (None, Strength.MINOR) else self.strength
        if self.commits is not None and commits >= self.commits:
            return self.strength or Strength.MINOR
        return None


def compaction_trigger(properties: Mapping[str, str]) -> CompactionTrigger | None:
    """Return the trigger that checked properties set; None if they set no limit."""
    share, commits = properties.get(_SHARE), properties.get(_LOG_COMMITS)
    if share is None and commits is None:
        return None
    strength = properties.get(_STRENGTH)
    return CompactionTrigger(
        float(share) if share is not None else None,
        int(commits) if commits is not None else None,
        Strength(_word(strength)) if strength is not None else None,
    )


def check_trigger(definition: TableDefinition) -> None:
    """Refuse invalid limits, and limits of a table that no writer compacts.

    Raises:
        TrinityError: INVALID_TABLE_PROPERTY naming the property.
    """
    properties = definition.properties
    given = [key for key in (_SHARE, _LOG_COMMITS, _STRENGTH) if key in properties]
    if not given:
        return
    if why := _not_compacted(definition):
        raise refused(definition, f"'{given[0]}' {why}.")
    share, commits, strength = (properties.get(key) for key in (_SHARE, _LOG_COMMITS, _STRENGTH))
    if share is not None and not _is_share(share):
        raise refused(definition, f"'{_SHARE}' = '{share}'; it is a number above 0: log rows by base rows, as 0.1.")
    if commits is not None and not (commits.strip().isdecimal() and int(commits) > 1):
        raise refused(definition, f"'{_LOG_COMMITS}' = '{commits}'; it is a number from 2 on.")
    known = [each.value for each in Strength]
    if strength is not None and _word(strength) not in known:
        raise refused(definition, f"'{_STRENGTH}' = '{strength}'; it is one of {', '.join(known)}.")
    if given == [_STRENGTH]:
        raise refused(definition, f"'{_STRENGTH}' needs '{_SHARE}' or '{_LOG_COMMITS}', which say when.")
    if share is not None and strength is not None and _word(strength) == Strength.MINOR:
        raise refused(definition, f"'{_STRENGTH}' = 'minor' leaves the share of the log as it is; use full.")


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False

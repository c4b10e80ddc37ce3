"""Merge engines: options to :class:`~trinity.merge.spec.MergeSpec`, and its fold as Spark columns."""

from trinity.merge.carried import carried_columns, carried_marks, ingested_columns
from trinity.merge.changelog import ChangelogProducer, changelog_producer, commits_between
from trinity.merge.engine import MergeEngine
from trinity.merge.options import (
    TABLE_PROPERTIES,
    Properties,
    canonical_properties,
    commit_timeout_s,
    duration_ms,
    property_text,
    syncs_files,
)
from trinity.merge.parse import merge_spec
from trinity.merge.quoting import quoted
from trinity.merge.rename import renamed
from trinity.merge.roles import role_of, without_column
from trinity.merge.spec import MergeSpec
from trinity.merge.statistics import statistics_columns
from trinity.merge.tombstone import tombstone_marks
from trinity.merge.triggers import CompactionTrigger, compaction_trigger

__all__ = [
    "TABLE_PROPERTIES",
    "ChangelogProducer",
    "CompactionTrigger",
    "MergeEngine",
    "MergeSpec",
    "Properties",
    "canonical_properties",
    "carried_columns",
    "carried_marks",
    "changelog_producer",
    "commit_timeout_s",
    "commits_between",
    "compaction_trigger",
    "duration_ms",
    "merge_spec",
    "syncs_files",
    "ingested_columns",
    "property_text",
    "quoted",
    "renamed",
    "role_of",
    "statistics_columns",
    "tombstone_marks",
    "without_column",
]

"""Names that users may not give to columns: hidden columns, and the columns that change feeds add.

Hidden columns that modules of reads and compactions share are defined only here, each with one meaning.
"""

from __future__ import annotations

from typing import Final

HIDDEN_PREFIX: Final = "_trinity_"
"""Columns with this prefix are never shown."""
DELTA_FEED: Final = ("_change_type", "_commit_version", "_commit_timestamp")
"""Columns of Delta's change data feed, and of Trinity's changes: what changed, in which commit, when."""
ICEBERG_FEED: Final = ("_change_type", "_change_ordinal", "_commit_snapshot_id")
"""Columns of Iceberg's changelog views: what changed, in which order, in which snapshot."""

ARRIVAL: Final = "_trinity_arrival"
"""BIGINT: index of a row version in the arrival order of one read; larger is later."""
SINCE: Final = "_trinity_since"
"""BIGINT, in sidecar files: when compaction moved the tombstone there, milliseconds since the epoch (U4)."""
UNSURE: Final = "_trinity_unsure"
"""STRING, in rows whose order may be lost: if the row wins, why it is not certain that it comes last (L3)."""
MOMENT: Final = "_trinity_moment"
"""BIGINT, in rows whose order may be lost: the commit that added the row, as far as it is known."""
EXISTS_FROM: Final = "_trinity_exists_from"
"""BIGINT, in the rows of a run of appends: the moment, a version, from which the row version exists."""
FOLD_ORDER: Final = "_trinity_fold_order"
"""BIGINT: the row's position in fold order among the rows of its key; larger is later."""
KIND: Final = "_trinity_kind"
"""INT: a value of :class:`~trinity.merge.row_kinds.FoldKind`."""
KEPT: Final = "_trinity_kept"
"""INT: 1 if the sidecar has an added row of the key, and so all the versions that its base row is the fold of (E3)."""
VISIBLE: Final = "_trinity_visible"
"""BOOLEAN: True if an added row is among the folded rows (D6)."""
FITS: Final = "_trinity_fits"
"""BOOLEAN: True if every column's value is in range (A4)."""
BASE_WINS: Final = "_trinity_base_wins"
"""BOOLEAN, in a base row joined with the log's winner of its key: True if the base row wins."""

FILE: Final = "_trinity_file"
"""STRING: the row's file, by its name in Spark's metadata; in a native scan as the scan names it."""
FILE_NUMBER: Final = "_trinity_file_number"
"""BIGINT: the number of the row's file, or of a group of files, in one scan or search."""
FILE_TOKEN: Final = "_trinity_file_token"
"""BIGINT or STRING: identifies the row's file among those of one scan, by its size or its name."""
POSITION: Final = "_trinity_position"
"""BIGINT: the position of the row in its file, from 0; deleted rows count."""
BITS: Final = "_trinity_bits"
"""ARRAY<BIGINT>: a bit set of the rows that a scan leaves out."""

MERGE_ROW: Final = "_trinity_merge_row"
"""STRUCT, in the rows of a row change's plan: the row that a case yields, with the two columns below."""
CHANGE_OPERATION: Final = "_trinity_change_operation"
"""TINYINT: a value of :class:`~trinity.spi.Operation`."""
CHANGE_CASE: Final = "_trinity_change_case"
"""INT: the number of the WHEN clause that made the change."""

BUCKET: Final = "_trinity_bucket"
"""INT, in rows that a rewrite writes into buckets: the bucket of the row's key."""
DELETED: Final = "_trinity_deleted"
"""BOOLEAN: True for a row that no read shows, such as one that deletes its key; a new base has it in the sidecar."""
LEFT: Final = "_trinity_left"
"""BOOLEAN, in rows that a rewrite writes: True for a row version that must stay in the log."""

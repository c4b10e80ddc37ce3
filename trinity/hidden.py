"""Names of columns that are not for users to give: hidden ones, and those by which feeds say what changed.

Those that modules of reads and compactions share stand here alone, each with one meaning.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "DELTA_FEED", "HIDDEN_PREFIX", "ICEBERG_FEED",
    "ARRIVAL", "BASE_WINS", "FITS", "KIND", "MOMENT", "PLACE", "SINCE", "UNSURE", "VISIBLE",
    "BITS", "FILE", "FILE_NUMBER", "FILE_TOKEN", "POSITION",
    "BUCKET", "DELETED", "LEFT",
]  # fmt: skip

HIDDEN_PREFIX: Final = "_trinity_"
"""Columns of this prefix are stored but never shown."""
DELTA_FEED: Final = ("_change_type", "_commit_version", "_commit_timestamp")
"""Columns by which Delta's change data feed, and Trinity's changes, say what changed, in which commit, when."""
ICEBERG_FEED: Final = ("_change_type", "_change_ordinal", "_commit_snapshot_id")
"""Columns by which Iceberg's changelog views say what changed, in which order, in which snapshot."""

ARRIVAL: Final = "_trinity_arrival"
"""BIGINT: place of a row version in the arrival order of one read; larger is later."""
SINCE: Final = "_trinity_since"
"""BIGINT, in sidecar files: when compaction put the tombstone aside, milliseconds since the epoch (U4)."""
UNSURE: Final = "_trinity_unsure"
"""STRING, in rows whose order may be lost: why it is not known whether this one comes last, should it win (L3)."""
MOMENT: Final = "_trinity_moment"
"""BIGINT, in rows whose order may be lost: the commit in which the row came, as far as it is known."""
PLACE: Final = "_trinity_place"
"""BIGINT: the row's place in fold order among the rows of its key; larger is later."""
KIND: Final = "_trinity_kind"
"""INT: a value of :class:`~trinity.merge.row_kinds.FoldKind`."""
VISIBLE: Final = "_trinity_visible"
"""BOOLEAN: an added row is among those that were folded (D6)."""
FITS: Final = "_trinity_fits"
"""BOOLEAN: every column's value is in range (A4)."""
BASE_WINS: Final = "_trinity_base_wins"
"""BOOLEAN, of a base row joined with the log's winner of its key: the base row wins."""

FILE: Final = "_trinity_file"
"""STRING: the name of the row's file."""
FILE_NUMBER: Final = "_trinity_file_number"
"""BIGINT: the number of the row's file, or of a group of files, in one scan or search."""
FILE_TOKEN: Final = "_trinity_file_token"
"""BIGINT or STRING: what tells the row's file from the others of one scan, its size or its name."""
POSITION: Final = "_trinity_row"
"""BIGINT: the place of the row in its file, from 0 on."""
BITS: Final = "_trinity_bits"
"""ARRAY<BIGINT>: the bits of the rows that a scan leaves out."""

BUCKET: Final = "_trinity_bucket"
"""INT, of the rows that a rewrite writes into buckets: the bucket of the row's key."""
DELETED: Final = "_trinity_deleted"
"""BOOLEAN, of the rows that a rewrite writes: True for a tombstone, or what else goes to the sidecar."""
LEFT: Final = "_trinity_left"
"""BOOLEAN, of the rows that a rewrite writes: True for a row version that must stay in the log."""

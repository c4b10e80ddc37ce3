"""The code that adapters share: the storage seam, the Parquet sink, the commit loop, folder catalogs, vacuum.

An adapter may import this package, ``trinity.spi`` and ``trinity.errors``, and nothing else of Trinity. A few names
come from other packages: options of tables and catalogs, quoting, logs and messages that show no secrets (N4).
"""

from trinity.merge.options import duration_ms
from trinity.merge.statistics import statistics_columns
from trinity.options import CatalogOptions
from trinity.secrets import logger, scrubbed_warnings, shown
from trinity.storage.asking import asking_again
from trinity.storage.azure import AzureOptions
from trinity.storage.cache import Cache
from trinity.storage.checkpoints import checkpoint_step
from trinity.storage.commit_template import Attempt, Change, Newest, commit_change, on_newest
from trinity.storage.commits import COMMIT_TIMEOUT_S, CommitRaced, commit_loop, next_timestamp_ms, statement_turn
from trinity.storage.conflicts import KEEPS_ROWS, FileChange
from trinity.storage.errors import AlreadyExists, after_commit, commit_unknown, system_trouble
from trinity.storage.folder_names import escaped, folder_name, own_folder, unescaped
from trinity.storage.folders import FolderCatalog, FolderMetadata, Folders, folders_of
from trinity.storage.foreign import (
    adopted_definition,
    adopted_properties,
    changed_aside,
    foreign_definition,
    keeps_aside,
    split_key,
)
from trinity.storage.gcs import GcsOptions
from trinity.storage.grants import (
    Credential,
    Granted,
    Grants,
    any_granted,
    grant,
    granted,
    to_learn,
    with_grants,
)
from trinity.storage.graves import check_free, check_only_graves
from trinity.storage.local_folders import bury, check_warehouse, remove_empty, sweep
from trinity.storage.local_hold import held
from trinity.storage.local_sync import make_folder
from trinity.storage.location import Location, file_uri, in_bucket, is_absolute, local_path, path_sql
from trinity.storage.name_errors import no_schema, no_table, schema_in_use, schema_stays, schema_taken, table_taken
from trinity.storage.naming import FIELD_ID, READ_BY_ID, columns_in, stored_name, stored_schema
from trinity.storage.nested import has_fields_of
from trinity.storage.orphans import delete_around, delete_orphans
from trinity.storage.page_index import PagedGroup
from trinity.storage.page_reads import rows_of_pages
from trinity.storage.parquet_files import open_parquet, parquet_footer, parquet_schema, stored_pages, stored_row_groups
from trinity.storage.parquet_sink import OWN_ENDING, ParquetPageSink, SinkFile, footer_statistics, is_sink_file
from trinity.storage.partitioned_sink import PartitionedPageSink, identity_only
from trinity.storage.position_deletes import (
    DeletesFragment,
    PositionDeletes,
    PositionDeleteSink,
    deletes_of_fragments,
    named_files,
    unreadable_deletes,
    with_earlier,
)
from trinity.storage.readable import no_readable_version, no_such_version, oldest_needed, version_at
from trinity.storage.repairs import newest_readable, repair_preview, repair_result
from trinity.storage.required import REQUIRED
from trinity.storage.row_changes import RowChanges
from trinity.storage.s3 import AMAZON_SDK, HADOOP_S3, S3Options, s3a_settings
from trinity.storage.single_table import SingleTable, not_ours
from trinity.storage.sink_provider import ParquetSinkProvider
from trinity.storage.spark_files import READ_OPTIONS, check_calendar, read_files, spark_schema
from trinity.storage.stamping import order_with, stamped, stamps_missing
from trinity.storage.store import Entry, ObjectStore, Stat
from trinity.storage.store_kinds import PYICEBERG_PREFIXES, kind_of
from trinity.storage.store_options import StoreOptions
from trinity.storage.store_reach import (
    WORKER_OPTIONS,
    buckets_in_use,
    claim_bucket,
    learn_options,
    options_as_text,
    release_bucket,
)
from trinity.storage.table_version import TableVersion
from trinity.storage.targets import commit_result, write_target
from trinity.storage.txns import with_txn
from trinity.storage.versions import VersionedMetadata
from trinity.syntax.quoting import quoted

__all__ = [
    "AMAZON_SDK",
    "s3a_settings",
    "COMMIT_TIMEOUT_S",
    "FIELD_ID",
    "HADOOP_S3",
    "KEEPS_ROWS",
    "PYICEBERG_PREFIXES",
    "READ_BY_ID",
    "READ_OPTIONS",
    "REQUIRED",
    "WORKER_OPTIONS",
    "AlreadyExists",
    "Attempt",
    "AzureOptions",
    "Cache",
    "CatalogOptions",
    "Change",
    "CommitRaced",
    "Credential",
    "DeletesFragment",
    "Entry",
    "FileChange",
    "FolderCatalog",
    "FolderMetadata",
    "Folders",
    "GcsOptions",
    "Granted",
    "Grants",
    "any_granted",
    "Location",
    "OWN_ENDING",
    "Newest",
    "ObjectStore",
    "ParquetPageSink",
    "ParquetSinkProvider",
    "PartitionedPageSink",
    "PositionDeleteSink",
    "PositionDeletes",
    "RowChanges",
    "S3Options",
    "SingleTable",
    "SinkFile",
    "Stat",
    "StoreOptions",
    "TableVersion",
    "VersionedMetadata",
    "adopted_definition",
    "adopted_properties",
    "after_commit",
    "asking_again",
    "buckets_in_use",
    "bury",
    "check_calendar",
    "check_free",
    "check_only_graves",
    "check_warehouse",
    "checkpoint_step",
    "claim_bucket",
    "columns_in",
    "commit_change",
    "commit_loop",
    "commit_unknown",
    "commit_result",
    "delete_around",
    "delete_orphans",
    "deletes_of_fragments",
    "duration_ms",
    "escaped",
    "file_uri",
    "folder_name",
    "folders_of",
    "footer_statistics",
    "changed_aside",
    "foreign_definition",
    "keeps_aside",
    "grant",
    "granted",
    "has_fields_of",
    "held",
    "identity_only",
    "in_bucket",
    "is_absolute",
    "is_sink_file",
    "kind_of",
    "learn_options",
    "local_path",
    "logger",
    "make_folder",
    "named_files",
    "newest_readable",
    "repair_preview",
    "next_timestamp_ms",
    "no_readable_version",
    "no_schema",
    "no_such_version",
    "no_table",
    "not_ours",
    "oldest_needed",
    "on_newest",
    "open_parquet",
    "options_as_text",
    "order_with",
    "own_folder",
    "PagedGroup",
    "rows_of_pages",
    "parquet_footer",
    "parquet_schema",
    "path_sql",
    "quoted",
    "read_files",
    "release_bucket",
    "remove_empty",
    "repair_result",
    "schema_in_use",
    "schema_stays",
    "schema_taken",
    "scrubbed_warnings",
    "shown",
    "spark_schema",
    "split_key",
    "stamped",
    "stamps_missing",
    "statement_turn",
    "statistics_columns",
    "stored_name",
    "stored_pages",
    "stored_row_groups",
    "stored_schema",
    "sweep",
    "system_trouble",
    "table_taken",
    "to_learn",
    "unescaped",
    "unreadable_deletes",
    "with_earlier",
    "with_grants",
    "version_at",
    "with_txn",
    "write_target",
]

"""The code that adapters share: the storage seam, the Parquet sink, the commit loop, folder catalogs, vacuum.

An adapter may import this package, ``trinity.spi`` and ``trinity.errors``, and nothing else of Trinity. What is in
``__all__`` is for everyone. The other names, imported as themselves, are for Trinity's own packages, and may change in
any release.
"""

from trinity.arrays import as_arrow as as_arrow
from trinity.arrays import as_numpy as as_numpy
from trinity.loggers import logger
from trinity.merge.options import duration_ms as duration_ms
from trinity.options import CatalogOptions
from trinity.secrets import scrubbed_warnings as scrubbed_warnings
from trinity.secrets import shown as shown
from trinity.spi import no_such_version, version_at
from trinity.spi import stored_name as stored_name
from trinity.spi import stored_schema as stored_schema
from trinity.storage.azure import AzureOptions
from trinity.storage.bucket_options import WORKER_OPTIONS as WORKER_OPTIONS
from trinity.storage.bucket_options import buckets_in_use as buckets_in_use
from trinity.storage.bucket_options import claim_bucket as claim_bucket
from trinity.storage.bucket_options import learn_options as learn_options
from trinity.storage.bucket_options import options_as_text as options_as_text
from trinity.storage.bucket_options import release_bucket as release_bucket
from trinity.storage.cache import Cache
from trinity.storage.commits import COMMIT_TIMEOUT_S as COMMIT_TIMEOUT_S
from trinity.storage.commits import (
    REPLACE,
    Attempt,
    Change,
    CommitRaced,
    Newest,
    RowChanges,
    commit_change,
    commit_loop,
    commit_result,
    definition_after,
    next_timestamp_ms,
    on_newest,
    order_with,
    stamps_missing,
    with_txn,
)
from trinity.storage.commits import checkpoint_step as checkpoint_step
from trinity.storage.commits import log_commit as log_commit
from trinity.storage.commits import statement_turn as statement_turn
from trinity.storage.conflicts import KEEPS_ROWS, FileChange
from trinity.storage.entries import Entry, Stat
from trinity.storage.errors import AlreadyExists, after_commit, asking_again, commit_unknown, system_trouble
from trinity.storage.errors import undoing as undoing
from trinity.storage.file_schema import FIELD_ID as FIELD_ID
from trinity.storage.file_schema import READ_BY_ID as READ_BY_ID
from trinity.storage.file_schema import columns_in as columns_in
from trinity.storage.file_schema import has_fields_of as has_fields_of
from trinity.storage.file_schema import in_file as in_file
from trinity.storage.file_schema import with_partition_values as with_partition_values
from trinity.storage.folder_names import escaped as escaped
from trinity.storage.folder_names import folder_name as folder_name
from trinity.storage.folder_names import no_schema as no_schema
from trinity.storage.folder_names import no_table, table_taken
from trinity.storage.folder_names import own_folder as own_folder
from trinity.storage.folder_names import schema_in_use as schema_in_use
from trinity.storage.folder_names import schema_stays as schema_stays
from trinity.storage.folder_names import schema_taken as schema_taken
from trinity.storage.folder_names import unescaped as unescaped
from trinity.storage.folders import FolderCatalog, FolderMetadata, Folders, folders_of
from trinity.storage.folders import check_free as check_free
from trinity.storage.folders import check_only_trash as check_only_trash
from trinity.storage.foreign import SingleTable
from trinity.storage.foreign import adopted_definition as adopted_definition
from trinity.storage.foreign import adopted_properties as adopted_properties
from trinity.storage.foreign import changed_compacted_rows as changed_compacted_rows
from trinity.storage.foreign import foreign_definition as foreign_definition
from trinity.storage.foreign import keeps_row_versions as keeps_row_versions
from trinity.storage.foreign import not_ours as not_ours
from trinity.storage.foreign import split_key as split_key
from trinity.storage.gcs import GcsOptions
from trinity.storage.grants import Credential as Credential
from trinity.storage.grants import Granted as Granted
from trinity.storage.grants import Grants as Grants
from trinity.storage.grants import any_granted as any_granted
from trinity.storage.grants import credential_of as credential_of
from trinity.storage.grants import grant as grant
from trinity.storage.grants import to_learn as to_learn
from trinity.storage.grants import with_grants as with_grants
from trinity.storage.local_folders import check_warehouse as check_warehouse
from trinity.storage.local_folders import empty_trash as empty_trash
from trinity.storage.local_folders import move_to_trash as move_to_trash
from trinity.storage.local_folders import remove_empty as remove_empty
from trinity.storage.local_objects import folder_lock as folder_lock
from trinity.storage.local_objects import make_folder as make_folder
from trinity.storage.location import Location
from trinity.storage.location import file_uri as file_uri
from trinity.storage.location import in_bucket as in_bucket
from trinity.storage.location import is_absolute as is_absolute
from trinity.storage.location import local_path as local_path
from trinity.storage.location import path_sql as path_sql
from trinity.storage.orphans import delete_around, delete_orphans
from trinity.storage.page_index import MOST_BY_PAGE as MOST_BY_PAGE
from trinity.storage.page_index import PagedGroup as PagedGroup
from trinity.storage.page_reads import rows_of_pages as rows_of_pages
from trinity.storage.parquet_files import OldDays as OldDays
from trinity.storage.parquet_files import check_not_missing as check_not_missing
from trinity.storage.parquet_files import missing_file as missing_file
from trinity.storage.parquet_files import open_parquet as open_parquet
from trinity.storage.parquet_files import parquet_footer as parquet_footer
from trinity.storage.parquet_files import parquet_schema as parquet_schema
from trinity.storage.parquet_files import reporting_unreadable_file as reporting_unreadable_file
from trinity.storage.parquet_files import results_ahead as results_ahead
from trinity.storage.parquet_files import rows_in as rows_in
from trinity.storage.parquet_files import stored_pages as stored_pages
from trinity.storage.parquet_files import stored_row_groups as stored_row_groups
from trinity.storage.parquet_files import stored_rows as stored_rows
from trinity.storage.parquet_sink import OWN_ENDING as OWN_ENDING
from trinity.storage.parquet_sink import REQUIRED as REQUIRED
from trinity.storage.parquet_sink import ParquetPageSink, SinkFile
from trinity.storage.parquet_sink import footer_statistics as footer_statistics
from trinity.storage.parquet_sink import is_sink_file as is_sink_file
from trinity.storage.partitioned_sink import PartitionedPageSink, identity_only
from trinity.storage.position_deletes import FRAME as FRAME
from trinity.storage.position_deletes import DeletesFragment, PositionDeletes
from trinity.storage.position_deletes import PositionDeleteSink as PositionDeleteSink
from trinity.storage.position_deletes import deletes_of_fragments as deletes_of_fragments
from trinity.storage.position_deletes import in_frame as in_frame
from trinity.storage.position_deletes import named_files as named_files
from trinity.storage.position_deletes import places_in as places_in
from trinity.storage.position_deletes import places_in_file as places_in_file
from trinity.storage.position_deletes import unreadable_deletes as unreadable_deletes
from trinity.storage.position_deletes import vector_of as vector_of
from trinity.storage.position_deletes import with_earlier as with_earlier
from trinity.storage.readable import (
    check_still_there,
    oldest_needed,
    repair_preview,
    repair_result,
)
from trinity.storage.readable import newest_readable as newest_readable
from trinity.storage.readable import no_readable_version as no_readable_version
from trinity.storage.s3 import AMAZON_SDK as AMAZON_SDK
from trinity.storage.s3 import HADOOP_S3 as HADOOP_S3
from trinity.storage.s3 import S3Options
from trinity.storage.s3 import s3a_settings as s3a_settings
from trinity.storage.sinks import ParquetSinkProvider, stamped, write_target
from trinity.storage.sinks import statistics_columns as statistics_columns
from trinity.storage.spark_files import READ_OPTIONS as READ_OPTIONS
from trinity.storage.spark_files import check_calendar as check_calendar
from trinity.storage.spark_files import read_files as read_files
from trinity.storage.spark_files import spark_schema as spark_schema
from trinity.storage.store import ObjectStore, commit_point
from trinity.storage.store_kinds import PYICEBERG_PREFIXES as PYICEBERG_PREFIXES
from trinity.storage.store_kinds import kind_of as kind_of
from trinity.storage.store_options import StoreOptions
from trinity.storage.versions import TableVersion, VersionedMetadata
from trinity.syntax.quoting import quoted as quoted

__all__ = [
    "KEEPS_ROWS",
    "REPLACE",
    "AlreadyExists",
    "Attempt",
    "AzureOptions",
    "Cache",
    "CatalogOptions",
    "Change",
    "CommitRaced",
    "DeletesFragment",
    "Entry",
    "FileChange",
    "FolderCatalog",
    "FolderMetadata",
    "Folders",
    "GcsOptions",
    "Location",
    "Newest",
    "ObjectStore",
    "ParquetPageSink",
    "ParquetSinkProvider",
    "PartitionedPageSink",
    "PositionDeletes",
    "RowChanges",
    "S3Options",
    "SingleTable",
    "SinkFile",
    "Stat",
    "StoreOptions",
    "TableVersion",
    "VersionedMetadata",
    "after_commit",
    "asking_again",
    "check_still_there",
    "commit_change",
    "commit_loop",
    "commit_point",
    "commit_unknown",
    "commit_result",
    "definition_after",
    "delete_around",
    "delete_orphans",
    "folders_of",
    "identity_only",
    "logger",
    "repair_preview",
    "next_timestamp_ms",
    "no_such_version",
    "no_table",
    "oldest_needed",
    "on_newest",
    "order_with",
    "repair_result",
    "stamped",
    "stamps_missing",
    "system_trouble",
    "table_taken",
    "version_at",
    "with_txn",
    "write_target",
]

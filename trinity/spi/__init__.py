"""Interfaces that an adapter implements, and the values that pass through it. Depends on pyarrow only."""

# Names that are imported "as" themselves are for Trinity's own modules, which import from a package what it loads: two
# threads that import its modules would else wait for each other. They are in no __all__, as no adapter needs them.
from trinity.hidden import HIDDEN_PREFIX
from trinity.spi.capabilities import EVERYTHING, TRANSFORMS, Capability
from trinity.spi.connector import (
    ENTRY_POINT_GROUP,
    Connector,
    ConnectorContext,
    Format,
    PageSinkProvider,
    SinkId,
    SparkRequirements,
)
from trinity.spi.files import (
    MOMENT_UNIT,
    OLDEST,
    Bucket,
    ColumnStats,
    DataFile,
    Deletes,
    Origin,
    RowOrder,
    Tier,
    append_stamp,
    arrival_order,
    came_after,
    from_fragments,
    from_merge_fragments,
    moment_of_append,
    removal,
    row_change_stamp,
)
from trinity.spi.files import decode_value as decode_value
from trinity.spi.files import encode_value as encode_value
from trinity.spi.handles import (
    CommitResult,
    HistoryEntry,
    InsertTableHandle,
    LostCommit,
    MergeTableHandle,
    ReadScope,
    RepairResult,
    RewriteTableHandle,
    SplitSource,
    TableHandle,
    TransactionId,
    VacuumResult,
    WriteTarget,
)
from trinity.spi.handles import no_such_version as no_such_version
from trinity.spi.handles import version_at as version_at
from trinity.spi.metadata import ConnectorMetadata
from trinity.spi.operations import KEEPS_ROWS, CommitOperation
from trinity.spi.partition import PartitionField, parse_partition
from trinity.spi.scan import NATIVE_FILE, NATIVE_ROW, NativeScan
from trinity.spi.schema import (
    CARRIED,
    ROW_KIND,
    STAMP,
    STORED_NAME,
    Check,
    Column,
    NewerMetadata,
    TableDefinition,
    storage_schema,
    stored_field,
)
from trinity.spi.schema import name_in_file as name_in_file
from trinity.spi.schema import stored_name as stored_name
from trinity.spi.schema import stored_schema as stored_schema
from trinity.spi.sink import DeleteSink, MergeSink, Operation, PageSink, RowChangeParadigm
from trinity.spi.types import DATETIMES as DATETIMES
from trinity.spi.types import FLOATS as FLOATS
from trinity.spi.types import INTEGERS as INTEGERS
from trinity.spi.types import TEXTS as TEXTS
from trinity.spi.types import DataType, arrow_type, parse_given_type, parse_type, type_text

__all__ = [
    # the adapter
    "Capability",
    "EVERYTHING",
    "TRANSFORMS",
    "ENTRY_POINT_GROUP",
    "Connector",
    "ConnectorContext",
    "ConnectorMetadata",
    "Format",
    "SparkRequirements",
    # sinks
    "DeleteSink",
    "LostCommit",
    "MergeSink",
    "Operation",
    "PageSink",
    "PageSinkProvider",
    "RowChangeParadigm",
    "SinkId",
    # tables and types
    "HIDDEN_PREFIX",
    "CARRIED",
    "ROW_KIND",
    "STAMP",
    "STORED_NAME",
    "Check",
    "Column",
    "DataType",
    "NewerMetadata",
    "PartitionField",
    "TableDefinition",
    "arrow_type",
    "parse_partition",
    "parse_given_type",
    "parse_type",
    "storage_schema",
    "stored_field",
    "type_text",
    # files
    "Bucket",
    "ColumnStats",
    "DataFile",
    "Deletes",
    "NATIVE_FILE",
    "NATIVE_ROW",
    "NativeScan",
    "Origin",
    "SplitSource",
    "Tier",
    "arrival_order",
    "from_fragments",
    "from_merge_fragments",
    "removal",
    # the order of rows
    "MOMENT_UNIT",
    "OLDEST",
    "RowOrder",
    "append_stamp",
    "came_after",
    "moment_of_append",
    "row_change_stamp",
    # handles and results
    "CommitOperation",
    "CommitResult",
    "HistoryEntry",
    "InsertTableHandle",
    "KEEPS_ROWS",
    "MergeTableHandle",
    "ReadScope",
    "RepairResult",
    "RewriteTableHandle",
    "TableHandle",
    "TransactionId",
    "VacuumResult",
    "WriteTarget",
]

"""The journalled SQL rewriter: INSERT, UPDATE and DELETE become appends to a journal, SELECT reads the newest versions.

After Pivotal's ``calcite-sql-rewriter`` ("SQL rewriter"), without its defects and limitations.
"""

from __future__ import annotations

from trinity.journal.model import LoadedModel, ModelSource, load_model
from trinity.journal.rewrite import Rewritten, rewrite
from trinity.journal.tables import JournalColumn, JournalModel, JournalTable

__all__ = [
    "JournalColumn", "JournalModel", "JournalTable", "LoadedModel", "ModelSource", "Rewritten", "load_model", "rewrite",
]  # fmt: skip

"""Names of columns in the expressions of a statement: those of its target, and of its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trinity.spi import TableDefinition

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Names:
    """The aliases of an expression that mean the target, and the source, if there is one."""

    target: str
    source: str | None = None
    source_columns: Sequence[str] = ()

    def side(self, column: exp.Column, definition: TableDefinition) -> str | None:
        """Return ``target``, ``source``, or None for a name that is ambiguous or unknown."""
        qualifier, name = column.table.lower(), column.name.lower()
        if column.args.get("db"):
            return None
        in_target = any(c.name.lower() == name for c in definition.visible)
        in_source = name in (c.lower() for c in self.source_columns)
        if qualifier == self.target.lower() or (not qualifier and in_target and not in_source):
            return "target" if in_target else None
        if self.source and (qualifier == self.source.lower() or (not qualifier and in_source and not in_target)):
            return "source"
        return None

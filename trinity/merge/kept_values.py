"""What a definition says about the row versions that compaction keeps in addition to the folded rows (E3)."""

from __future__ import annotations

from dataclasses import replace

from trinity.merge.spec import merge_spec
from trinity.spi import TableDefinition


def with_last_values_kept(definition: TableDefinition) -> TableDefinition:
    """Return the definition with :attr:`~trinity.spi.TableDefinition.keeps_last_values`, if that changes anything.

    Raises as :func:`~trinity.merge.spec.merge_spec` for properties that are not valid.
    """
    kept = replace(definition, keeps_last_values=True)
    return kept if merge_spec(kept).keeps_history != merge_spec(definition).keeps_history else definition


def with_history_noted(before: TableDefinition, after: TableDefinition) -> TableDefinition:
    """Return a changed definition, whose ``history_changed`` is set if compactions begin or cease to keep row versions.

    Reads and compactions then ask of each key whether its base row is the fold of row versions in the sidecar. From the
    change on compaction keeps row versions because of ``last_value``, too. Raises as
    :func:`~trinity.merge.spec.merge_spec` for properties that are not valid after the change.
    """
    after = with_last_values_kept(after)
    same = merge_spec(after).keeps_history == merge_spec(before).keeps_history
    return after if same else replace(after, history_changed=True)

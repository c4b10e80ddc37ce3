"""The adapters with a planted fault, as classes by name: ``--format trinity_conformance.mutants.planted:PastByOne``."""

from __future__ import annotations

from trinity.spi import Format
from trinity_conformance.mutants.adapters import ADAPTER_MUTANTS


def __getattr__(name: str) -> type[Format]:
    if name not in ADAPTER_MUTANTS:
        raise AttributeError(name)
    return ADAPTER_MUTANTS[name].adapter()

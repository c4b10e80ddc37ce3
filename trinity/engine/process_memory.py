"""The memory that this process may have: the machine's, or what its container is given."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["memory_bytes"]

_LIMITS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux tells the limit of a container, in the second and the first version of control groups."""


def memory_bytes() -> int:
    """Return the memory in bytes."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in _LIMITS:
        with suppress(OSError, ValueError):  # no such file; "max" for no limit
            found.append(int(Path(limit).read_text()))
    return min(found)

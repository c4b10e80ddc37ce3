"""Commits of one process that do not wait for each other, like those of several processes."""

from contextlib import nullcontext

import pytest


def without_turns(patch: pytest.MonkeyPatch) -> None:
    """Let this process's writers to a table commit at once, not one after the other."""
    patch.setattr("trinity.storage.commits._FifoLock.taken", lambda self, timeout_s=None: nullcontext(True))

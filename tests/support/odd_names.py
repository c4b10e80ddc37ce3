"""Names that are easily confused."""

from __future__ import annotations

from hypothesis import settings

QUICK = settings(deadline=None, derandomize=True)


def quoted(name: str, mark: str = "`") -> str:
    return mark + name.replace(mark, mark * 2) + mark

"""The shape of the machine, and the versions, that a run was made with."""

from __future__ import annotations

import datetime as dt
import os
import platform
from pathlib import Path
from typing import Any

import pyspark

import trinity


def facts() -> dict[str, Any]:
    """Return the date, the machine's shape and load, and the versions."""
    return {
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "version": trinity.__version__,
        "python": platform.python_version(),
        "spark": pyspark.__version__,
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30),
        "cpu": _cpu(),
        "load_before": round(os.getloadavg()[0], 1),
    }


def _cpu() -> str:
    """Return the model of the processor, where the system has it."""
    found = Path("/proc/cpuinfo")
    lines = found.read_text().splitlines() if found.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()

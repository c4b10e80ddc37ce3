"""The loop of a process that plays a system, in the system's environment and without Trinity."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any


def answer_all(actions: Mapping[str, Callable[..., Any]], why: Callable[[Exception], str]) -> None:
    """Answer requests until the input ends; errors of the system are answers, too."""
    for line in sys.stdin:
        request = json.loads(line)
        try:
            found = {"answer": actions[request.pop("do")](**request)}
        except Exception as error:
            found = {"error": why(error)}
        print(json.dumps(found), flush=True)

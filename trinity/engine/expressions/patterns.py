"""RLIKE with patterns that mean the same in Java and in RE2, of which Arrow has regular expressions."""

from __future__ import annotations

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.node import Refused

__all__ = ["as_re2"]

_PLAIN: Final = r"[A-Za-z0-9 _,:;@#%=<>/'\"!~`-]"
_ESCAPED: Final = r"\\[\\.+*?()\[\]{}|^$/-]"
_CLASS: Final = rf"\[\^?(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[A-Za-z0-9 _.,:;@#%=<>/'\"!~`+*?]|\\[dw]|{_ESCAPED})+\]"
_REPEATED: Final = r"(?:[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\})\??"
_ONE: Final = rf"(?:{_PLAIN}|{_ESCAPED}|\\[dDwW]|\.|{_CLASS})"
_TOKEN: Final = re.compile(rf"(?P<item>{_ONE}|\()(?P<times>{_REPEATED})?|(?P<close>\))(?:{_REPEATED})?|\|")
_TERMINATORS: Final = r"\n\r\x{85}\x{2028}\x{2029}"
"""What ends a line in Java: no dot is it, and the last one may stand behind the end."""


def as_re2(pattern: str) -> str:
    """Return a pattern of Java's as RE2 has it. Raises Refused where it is not certain that it means the same."""
    why = Refused(f"only Spark evaluates the pattern '{pattern}'")
    start, end = pattern.startswith("^"), pattern.endswith("$") and not pattern.endswith("\\$")
    found, at, last = "", int(start), len(pattern) - int(end)
    while at < last:
        token = _TOKEN.match(pattern, at, last)
        if token is None or (token["item"] == "(" and token["times"]):
            raise why
        text = token.group()
        found += f"[^{_TERMINATORS}]{text[1:]}" if text[0] == "." else text
        at = token.end()
    if end and re.search(r"\[\^|\\[DW]", found.replace(f"[^{_TERMINATORS}]", "")):  # may be half of a line's end
        raise why
    found = f"{'^' if start else ''}{found}" + (rf"(?:\r\n|[{_TERMINATORS}])?\z" if end else "")
    try:
        pc.match_substring_regex(pa.array([""]), found)
    except pa.ArrowInvalid:
        raise why from None
    return found

"""Regular expressions of Java, for RE2, which Arrow uses: only those that mean the same in both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from trinity.engine.expressions.node import Refused

_PLAIN: Final = r"[A-Za-z0-9 _,:;@#%=<>/'\"!~`-]"
_ESCAPED: Final = r"\\[\\.+*?()\[\]{}|^$/-]"
_CLASS: Final = rf"\[\^?(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[A-Za-z0-9 _.,:;@#%=<>/'\"!~`+*?]|\\[dsw]|{_ESCAPED})+\]"
_REPEATED: Final = r"(?:[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\})\??"
_ONE: Final = rf"(?:{_PLAIN}|{_ESCAPED}|\\[dDsSwW]|\.|{_CLASS})"
_TOKEN: Final = re.compile(rf"(?P<item>{_ONE}|\()(?P<times>{_REPEATED})?|(?P<close>\))(?P<often>{_REPEATED})?|\|")
_TERMINATORS: Final = r"\n\r\x{85}\x{2028}\x{2029}"
"""Java's line terminators: a dot does not match them, and ``$`` matches before the last one."""
_BLANKS: Final = r"\t\n\x0b\f\r "
r"""The characters that ``\s`` matches in Java; RE2's ``\s`` lacks one of them."""
_LINE_END: Final = rf"\r\n|[{_TERMINATORS}]"
_REFERENCE: Final = re.compile(r"\$([0-9])(?![0-9])|[^$\\]")
"""A part of a Java replacement: a reference to a group, or a character."""


@dataclass(frozen=True)
class Pattern:
    """A Java pattern, in parts with the same meaning in RE2.

    Attributes:
        tokens: its parts between ``^`` and ``$``.
        start: ``^``, or nothing.
        end: True where it ends with ``$``.
    """

    java: str
    tokens: Sequence[str]
    start: str
    end: bool

    @classmethod
    def of(cls, java: str) -> Pattern:
        """Parse a pattern of Java. Raises Refused where it is not certain that it means the same in RE2."""
        start, end = java.startswith("^"), java.endswith("$") and not java.endswith("\\$")
        tokens, at, last = list[str](), int(start), len(java) - int(end)
        while at < last:
            token = _TOKEN.match(java, at, last)
            if token is None or (token["item"] == "(" and token["times"]):
                raise _refused(java)
            tokens.append(_in_re2(token.group()))
            at = token.end()
        found = cls(java, tokens, "^" if start else "", end)
        if end and re.search(r"\[\^|\\[DWn]", "".join(tokens).replace(f"[^{_TERMINATORS}]", "")):
            raise _refused(java)  # it may match half of a line end of two characters
        found._check(found.matching)
        return found

    @property
    def matching(self) -> str:
        """RE2's pattern for texts that contain a match."""
        return self._written(self.tokens, rf"(?:{_LINE_END})?\z")

    @property
    def groups(self) -> int:
        """The number of capturing groups."""
        return self.tokens.count("(")

    def extracting(self, group: int) -> str:
        """Return a pattern of RE2 whose only group, ``found``, is the given group of this one; 0 is the whole match.

        Raises:
            Refused: for a group that does not exist, and where it is not certain what Java finds.
        """
        if not 0 <= group <= self.groups or self._repeats_empty() or (group == 0 and self.end and self._alternates()):
            raise _refused(self.java)
        tokens, number = list[str](), 0
        for token in self.tokens:
            number += token == "("
            tokens.append(token if token != "(" else "(?P<found>" if number == group else "(?:")
        end = rf"(?:{_LINE_END})?\z"
        if group == 0:
            return self._check(f"(?P<found>{self.start}{''.join(tokens)}){end if self.end else ''}")
        return self._check(self._written(tokens, end))

    def replacing(self, replacement: str) -> tuple[str, str]:
        """Return a pattern and a replacement of RE2 that replace what Java's replace.

        Raises:
            Refused: for a replacement with groups that do not exist, and where it is not certain what Java replaces.
        """
        parts, at = list[str](), 0
        while at < len(replacement):
            part = _REFERENCE.match(replacement, at)
            if part is None or int(part[1] or 0) > self.groups:
                raise Refused(f"only Spark replaces a match by '{replacement}'")
            parts.append(rf"\{part[1]}" if part[1] else part[0])
            at = part.end()
        if self._matches_empty(self.tokens) or self._repeats_empty() or self.groups >= _MOST_GROUPS:
            raise _refused(self.java)
        if self.end and r"\0" in parts:
            raise _refused(self.java)
        kept = rf"\{self.groups + 1}" if self.end else ""  # the end of the line, which is no part of Java's match
        return self._check(self._written(self.tokens, rf"((?:{_LINE_END})?)\z")), "".join(parts) + kept

    def _written(self, tokens: Sequence[str], end: str) -> str:
        return f"{self.start}{''.join(tokens)}{end if self.end else ''}"

    def _check(self, re2: str) -> str:
        """Return a pattern as it is if RE2 can read it. Raises Refused for any other."""
        try:
            pc.match_substring_regex(pa.array([""]), re2)
        except pa.ArrowInvalid:
            raise _refused(self.java) from None
        return re2

    def _matches_empty(self, tokens: Sequence[str]) -> bool:
        """Return True when tokens match an empty text; after such a match Java and RE2 continue in different ways."""
        return bool(pc.match_substring_regex(pa.array([""]), f"^(?:{''.join(tokens)})$")[0].as_py())

    def _repeats_empty(self) -> bool:
        """Return True when a group that may match an empty text is repeated."""
        open_ = list[int]()
        for number, token in enumerate(self.tokens):
            if token == "(":
                open_.append(number)
            elif token[0] == ")":
                first = open_.pop()
                if token != ")" and self._matches_empty(self.tokens[first + 1 : number]):
                    return True
        return False

    def _alternates(self) -> bool:
        """Return True when the pattern has a ``|`` outside of groups."""
        depth = 0
        for token in self.tokens:
            depth += (token == "(") - (token[0] == ")")
            if token == "|" and not depth:
                return True
        return False


def _in_re2(token: str) -> str:
    """Return a token of a pattern in which dots and classes of blanks match the characters that they match in Java."""
    if token[0] == ".":
        return f"[^{_TERMINATORS}]{token[1:]}"
    known = {"\\s": _BLANKS} if token[0] == "[" else {"\\s": f"[{_BLANKS}]", "\\S": f"[^{_BLANKS}]"}
    return re.sub(r"\\.", lambda part: known.get(part[0], part[0]), token)


_MOST_GROUPS: Final = 9
"""Number of groups from which on nothing is replaced: RE2 has nine in a replacement, and one keeps the line end."""


def _refused(pattern: str) -> Refused:
    return Refused(f"only Spark evaluates the pattern '{pattern}'")

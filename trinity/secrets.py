"""Secrets: the one place that decides what is secret, and keeps it out of texts (N4).

A value is secret by the name of its option (``password``, ``s3.secret-access-key``) or by its form (the password before
the ``@`` of a URL, ``password=`` in a DSN or query). :func:`keep` remembers the secrets of given options. From then on
:func:`redacted` removes them from any text, besides all that has the form of a secret.
"""

from __future__ import annotations

import json
import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote

HIDDEN: Final = "***"
"""The text that replaces a secret."""

_SHORTEST: Final = 6
"""Minimum characters of a secret that is searched in texts. A shorter one may occur in words; it is hidden by form."""
_REMEMBERED: Final = 1000
_LONGEST: Final = 20_000
"""Maximum characters of a text that is searched; the middle of a longer one is cut out, since nobody reads it."""

_WORDS: Final = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|token|credential|authorization|signature|connection[-_. ]?string"
    r"|(?:access|account|api|private|shared|sas)[-_. ]?key|\bsig)"
)
_NAME: Final = re.compile(_WORDS, re.IGNORECASE)
_QUOTED: Final = r"""\\?'(?:[^'\\]|\\.|'')*(?:'|$)|\\?"(?:[^"\\]|\\.)*(?:"|$)"""
_USER_INFO: Final = re.compile(r"""://[^\s/:@'"]{0,200}:(?P<secret>[^\s'"]{1,1000})@""")
_FORMS: Final = (
    _USER_INFO,
    # a mapping or JSON: 'password': 'x', "token": "x"
    re.compile(
        rf"""{_WORDS}[\w.-]{{0,60}}\\?["']\s{{0,3}}:\s{{0,3}}(?P<secret>{_QUOTED})""", re.IGNORECASE | re.DOTALL
    ),
    # a DSN, a query, a setting: password=x, secret.key = "x", 'token' = 'x'
    re.compile(
        rf"""{_WORDS}[\w.-]{{0,60}}(?:\\?["'\]])?\s{{0,3}}=>?\s{{0,3}}(?P<secret>{_QUOTED}|[^\s'"]+)""",
        re.IGNORECASE | re.DOTALL,
    ),
    # SQL: ALTER ROLE r PASSWORD 'x'
    re.compile(rf"(?:password|identified by)\s{{1,3}}(?P<secret>{_QUOTED})", re.IGNORECASE | re.DOTALL),
    # a header, sent or quoted
    re.compile(r"\b(?:bearer|basic) (?P<secret>[\w.~+/=-]{16,})", re.IGNORECASE),
)

_known: dict[str, None] = {}
_keeping = threading.Lock()


def _is_secret(name: str) -> bool:
    """Return whether an option's name says that its value is secret: ``jdbcPassword``, ``s3.access-key-id``."""
    return _NAME.search(name) is not None


def is_secret_property(name: str, value: str) -> bool:
    """Return whether a property is secret: by its name (without a column's name in it), or as a URL with password."""
    own_name = "" if name.startswith("fields.") else name.partition(".column.")[0]
    return _is_secret(own_name) or _USER_INFO.search(value) is not None


def keep(options: Mapping[str, Any]) -> None:
    """Remember the secrets among options, so that :func:`redacted` hides them in any text.

    A secret that equals the value of an option that is not secret (user and password alike) is not remembered.
    """
    pairs = list(_pairs(options))
    secrets = {text for name, value in pairs for text in _secrets(name, value)}
    found = {form for text in secrets for form in _spellings(text) if len(form) >= _SHORTEST}
    with _keeping:
        for text in found - {value for name, value in pairs if not _is_secret(name)}:
            _known.pop(text, None)
            _known[text] = None
        for oldest in list(_known)[:-_REMEMBERED]:
            del _known[oldest]


def _pairs(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and text of every value, also of nested ones; an item of a list has the list's name."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _pairs(inner, f"{name}.{key}" if _is_secret(name) else str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _pairs(inner, name)
    elif isinstance(value, str):
        yield name, value


def _secrets(name: str, value: str) -> Iterator[str]:
    if _is_secret(name):
        yield value
    for form in _FORMS:
        yield from (found["secret"].strip("'\"") for found in form.finditer(value[:_LONGEST]))


def _spellings(secret: str) -> set[str]:
    """Return a secret as it is, and in the spellings of URLs, JSON and Python."""
    plain = {secret, unquote(secret)}
    return plain | {
        w for p in plain for w in (quote(p, safe=""), quote(p), quote_plus(p), json.dumps(p)[1:-1], repr(p)[1:-1])
    }


def redacted(text: str) -> str:
    """Return a text without remembered secrets, and without all that has the form of a secret."""
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
    for form in _FORMS:
        text = form.sub(_hidden, text)
    return text


def _hidden(found: re.Match[str]) -> str:
    start, end = (bound - found.start() for bound in found.span("secret"))
    return found[0][:start] + HIDDEN + found[0][end:]


def shown(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options for a message or a repr, with secrets hidden by name and by form."""
    return {name: HIDDEN if _is_secret(name) else redacted(str(value)) for name, value in options.items()}


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and all errors behind it: its causes and contexts."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        link = left.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            left += [link.__cause__, link.__context__]


def scrub(error: BaseException) -> None:
    """Replace each cause and context of an error that shows a secret by an error with its class and redacted text."""
    for link in chain(error):
        suppressed = link.__suppress_context__
        for attribute in ("__cause__", "__context__"):
            behind = getattr(link, attribute)
            if behind is not None and _shows_secret(behind):
                setattr(link, attribute, _stand_in(behind))
        link.__suppress_context__ = suppressed


@contextmanager
def scrubbing() -> Iterator[None]:
    """Scrub any error that leaves the block, so that no error behind it shows a secret; see :func:`scrub`."""
    try:
        yield
    except Exception as error:
        scrub(error)
        raise


def _shows_secret(error: BaseException) -> bool:
    texts = (str(error), repr(error), *getattr(error, "__notes__", ()))
    return any(redacted(text) != text for text in texts)


def _stand_in(error: BaseException) -> Exception:
    kind = type(error)
    found = RuntimeError(f"{kind.__module__}.{kind.__qualname__}: {redacted(str(error))}")
    found.__cause__, found.__context__ = error.__cause__, error.__context__
    found.__suppress_context__ = error.__suppress_context__
    return found.with_traceback(error.__traceback__)


@contextmanager
def scrubbed_warnings() -> Iterator[None]:
    """Collect the warnings of the block, and issue them at its end without secrets."""
    with warnings.catch_warnings(record=True) as caught:
        try:
            yield
        finally:
            given = list(caught)
    for one in given:
        warnings.warn_explicit(redacted(str(one.message)), one.category, one.filename, one.lineno)

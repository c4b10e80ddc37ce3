"""Secrets: the one place that knows what is one, and keeps it out of texts (N4).

A value is secret by the name of its option (``password``, ``s3.secret-access-key``) or by its form (what stands before
the ``@`` of a URL, ``password=`` in a DSN or query). :func:`keep` remembers the secrets among options when they come
in; from then on :func:`redacted` finds them in any text, whoever wrote it, beside what has the form of a secret.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote

__all__ = [
    "HIDDEN",
    "chain",
    "is_secret",
    "is_secret_property",
    "keep",
    "logger",
    "redacted",
    "scrub",
    "scrubbed_warnings",
    "scrubbing",
    "shown",
]

HIDDEN: Final = "***"
"""The text that stands in the place of a secret."""

_SHORTEST: Final = 6
"""Characters of a secret that is looked for in texts; a shorter one is part of other words, hidden by form alone."""
_REMEMBERED: Final = 1000
_LONGEST: Final = 20_000
"""Characters of a text that are looked at; nobody reads more of a message."""

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


def is_secret(name: str) -> bool:
    """True when an option's name says that its value is secret: ``jdbcPassword``, ``s3.access-key-id``."""
    return _NAME.search(name) is not None


def is_secret_property(name: str, value: str) -> bool:
    """True for a secret property: by its name, but for a column's name in it, or as a URL with a password."""
    own_name = "" if name.startswith("fields.") else name.partition(".column.")[0]
    return is_secret(own_name) or _USER_INFO.search(value) is not None


def keep(options: Mapping[str, Any]) -> None:
    """Remembers the secrets among options, so that :func:`redacted` knows them wherever they turn up.

    A secret that is also the value of an option that is none (user and password alike) cannot be hidden by its value.
    """
    pairs = list(_pairs(options))
    secrets = {text for name, value in pairs for text in _secrets(name, value)}
    found = {form for text in secrets for form in _spellings(text) if len(form) >= _SHORTEST}
    with _keeping:
        for text in found - {value for name, value in pairs if not is_secret(name)}:
            _known.pop(text, None)
            _known[text] = None
        for oldest in list(_known)[:-_REMEMBERED]:
            del _known[oldest]


def _pairs(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Name and text of every value, of nested ones too; an item of a list has the list's name."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _pairs(inner, f"{name}.{key}" if is_secret(name) else str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _pairs(inner, name)
    elif isinstance(value, str):
        yield name, value


def _secrets(name: str, value: str) -> Iterator[str]:
    if is_secret(name):
        yield value
    for form in _FORMS:
        yield from (found["secret"].strip("'\"") for found in form.finditer(value[:_LONGEST]))


def _spellings(secret: str) -> set[str]:
    """A secret as it is, and as URLs, JSON and Python write it."""
    plain = {secret, unquote(secret)}
    return plain | {
        w for p in plain for w in (quote(p, safe=""), quote(p), quote_plus(p), json.dumps(p)[1:-1], repr(p)[1:-1])
    }


def redacted(text: str) -> str:
    """A text without the secrets that are known or that can be told by their form."""
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 2 :]}"
    for form in _FORMS:
        text = form.sub(_hidden, text)
    return text


def _hidden(found: re.Match[str]) -> str:
    start, end = (place - found.start() for place in found.span("secret"))
    return found[0][:start] + HIDDEN + found[0][end:]


def shown(options: Mapping[str, Any]) -> dict[str, str]:
    """Options for a message or a repr: secrets hidden by name and by form."""
    return {name: HIDDEN if is_secret(name) else redacted(str(value)) for name, value in options.items()}


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and all that led to it."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        link = left.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            left += [link.__cause__, link.__context__]


def scrub(error: BaseException) -> None:
    """Puts something in the place of each error behind this one that tells a secret: its kind, and its text without."""
    for link in chain(error):
        said_why = link.__suppress_context__
        for place in ("__cause__", "__context__"):
            behind = getattr(link, place)
            if behind is not None and _tells(behind):
                setattr(link, place, _stand_in(behind))
        link.__suppress_context__ = said_why


@contextmanager
def scrubbing() -> Iterator[None]:
    """Scrubs any error that leaves this, so that nothing secret is behind it; see :func:`scrub`."""
    try:
        yield
    except Exception as error:
        scrub(error)
        raise


def _tells(error: BaseException) -> bool:
    said = (str(error), repr(error), *getattr(error, "__notes__", ()))
    return any(redacted(text) != text for text in said)


def _stand_in(error: BaseException) -> Exception:
    kind = type(error)
    found = RuntimeError(f"{kind.__module__}.{kind.__qualname__}: {redacted(str(error))}")
    found.__cause__, found.__context__ = error.__cause__, error.__context__
    found.__suppress_context__ = error.__suppress_context__
    return found.with_traceback(error.__traceback__)


@contextmanager
def scrubbed_warnings() -> Iterator[None]:
    """Warnings of the packages called here, told when they are done, without secrets."""
    with warnings.catch_warnings(record=True) as said:
        try:
            yield
        finally:
            given = list(said)
    for one in given:
        warnings.warn_explicit(redacted(str(one.message)), one.category, one.filename, one.lineno)


class _Redacting(logging.Filter):
    """Takes secrets out of what is logged."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redacted(record.getMessage()), ()
        return True


_redacting: Final = _Redacting()


def logger(name: str) -> logging.Logger:
    """The logger of a module, whose records tell no secrets."""
    found = logging.getLogger(name)
    found.addFilter(_redacting)
    return found

"""JDBC URLs, drivers and data sources, translated to parameters of Python's PostgreSQL driver."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, unquote

from trinity.errors import TrinityError, nearest

DRIVERS: Final = ("org.postgresql.Driver",)
"""``jdbcDriver`` values; each stands for psycopg 3."""

DATA_SOURCES: Final = (
    "org.postgresql.ds.PGSimpleDataSource",
    "org.postgresql.ds.PGPoolingDataSource",
    "org.postgresql.ds.PGConnectionPoolDataSource",
)
"""``dataSource`` values; each stands for psycopg 3 with libpq's defaults and environment: PGHOST, PGSERVICE, ...."""

_OPTIONS: Final = {
    "user": "user",
    "password": "password",
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "loginTimeout": "connect_timeout",
    "targetServerType": "target_session_attrs",
}
"""Properties of PostgreSQL's JDBC driver -> libpq's parameters."""

_SERVER_TYPES: Final = {"any": "any", "primary": "primary", "master": "primary", "secondary": "standby"}


def connection_options(url: str) -> dict[str, str]:
    """Return libpq's parameters for a ``jdbc:postgresql:`` URL.

    Args:
        url: ``jdbc:postgresql://host:port/database?user=...``, with several ``host:port`` and commas, ``//host/``,
            or ``jdbc:postgresql:database``.

    Raises:
        TrinityError: CONFIGURATION_INVALID for another URL or an unknown property.
    """
    match = re.fullmatch(r"jdbc:postgresql:(?://([^/?]*)(?:/|(?=\?|$)))?([^?]*)(?:\?(.*))?", url)
    if match is None:
        raise TrinityError(
            "CONFIGURATION_INVALID",
            f"jdbcUrl '{':'.join(url.split(':')[:2])}:…' is not understood: write jdbc:postgresql://host:port/database.",
        )
    hosts, database, query = match.groups(default="")
    options = _hosts(hosts) if hosts else {}
    if database.strip("/"):
        options["dbname"] = unquote(database.strip("/"))
    for name, value in parse_qsl(query, keep_blank_values=True):
        options.update(_option(name, value))
    return options


def _hosts(text: str) -> dict[str, str]:
    found = [re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(\d+))?", part) for part in text.split(",")]
    if "@" in text:  # the form of other databases' URLs
        raise TrinityError(
            "CONFIGURATION_INVALID",
            "jdbcUrl: user and password do not stand before the host; give jdbcUser and jdbcPassword.",
        )
    if not all(found):
        raise TrinityError("CONFIGURATION_INVALID", f"jdbcUrl: '{text}' is no list of host:port.")
    pairs = [(m[1].strip("[]") or "localhost", m[2] or "5432") for m in found if m]
    return {"host": ",".join(h for h, _ in pairs), "port": ",".join(p for _, p in pairs)}


def _option(name: str, value: str) -> dict[str, str]:
    if name == "ssl":
        return {"sslmode": "verify-full"} if value.lower() in ("", "true") else {}
    if name == "currentSchema":
        return {"options": "-c search_path=" + value.replace("\\", "\\\\").replace(" ", "\\ ")}
    if name == "targetServerType":
        return {"target_session_attrs": _SERVER_TYPES.get(value, value)}
    if name not in _OPTIONS:
        known = [*_OPTIONS, "ssl", "currentSchema"]
        raise TrinityError("CONFIGURATION_INVALID", f"jdbcUrl: unknown property '{name}'.{nearest(name, known)}")
    return {_OPTIONS[name]: value}

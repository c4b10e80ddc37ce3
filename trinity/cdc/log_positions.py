"""Positions in databases' logs as texts that sort as the positions do, in Spark SQL; NULL for an invalid position."""

from __future__ import annotations

from typing import Final

from trinity.cdc.values import matches, whole
from trinity.syntax.quoting import text_literal

_FILE: Final = r"(.*)\.0*([0-9]{1,18})"
_LSN: Final = "[0-9a-fA-F]{1,8}:[0-9a-fA-F]{1,8}:[0-9a-fA-F]{1,4}"
_USUAL: Final = 6
"""Digits that MySQL gives the number of a log file; after 999999 comes 1000000."""


def binlog_position(file: str, pos: str, row: str) -> str:
    """Return Spark SQL of a position in MySQL's log: the file's name, the position in it, the event's row (default 0).

    A file's number of more than six digits gets a letter before it, ``a`` for seven, so that it sorts after all shorter
    ones. Those stay as MySQL writes them.
    """
    pattern = text_literal(whole(_FILE))
    name, number = (f"regexp_extract({file}, {pattern}, {n})" for n in (1, 2))
    digits, usual = f"length({number})", f"lpad({number}, {_USUAL}, '0')"
    longer = f"concat(char({ord('a') - _USUAL - 1} + {digits}), {number})"
    digits_shown = f"IF({digits} > {_USUAL}, {longer}, {usual})"
    places = [f"IF({matches(n, '[0-9]{1,20}')}, lpad({n}, 20, '0'), NULL)" for n in (pos, f"coalesce({row}, '0')")]
    return f"IF({matches(file, _FILE)}, concat({name}, '.', {digits_shown}, ':', {places[0]}, ':', {places[1]}), NULL)"


def sql_server_lsn(lsn: str) -> str:
    """Return Spark SQL of SQL Server's LSN, ``00000027:00000ac0:0002``: hexadecimal numbers of 8, 8 and 4 digits."""
    parts = (f"lpad(split({lsn}, ':')[{n}], {width}, '0')" for n, width in enumerate((8, 8, 4)))
    whole_lsn = f"lower(concat_ws(':', {', '.join(parts)}))"
    return f"IF({matches(lsn, _LSN)}, {whole_lsn}, NULL)"

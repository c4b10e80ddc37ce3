"""Change messages drawn at random: numbers of every length and exponent, text in numbers' places, broken texts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Final

from tests.support.cdc_model import COLUMNS

TOOLS: Final = ("debezium", "maxwell", "canal")
_WORDS: Final = (
    *("", "a", "#", "#1", "##", "{", "[1]", '{"a": 1}', '{"a":"#1"}', "1 2", "NaN", "Infinity", "-inf", "true", "T"),
    *("no", "1d", "0x1F", "1_000", " 1", "1 ", "1\n", "+1", "01", ".5", "5.", "-", "\u00e9", "\uffff", "\U0001d538"),
    *("\u0000", "AQID", "1234", "YQ==", "YR==", "YQ", "12 34", "2020", "2020-01", "2020-01-02", "2020-1-2", "10:00:00"),
    *("2020-02-30", "2020-01-02Z", "2020-01-02T00:00:00", "2020-01-02 03:04:05", "2020-01-02T03:04:05.123456789"),
    *("2020-01-02T03:04:05Z", "2020-01-02T03:04:05+05:30", "2020-01-02T03:04:05+00:00", "2020-01-02T25:00:00", "now"),
    *("0000-00-00", "\\", '"', "\\u0023", "null"),
)
_NO_JSON: Final = (
    *("NaN", "Infinity", "-Infinity", "01", "+1", ".5", "5.", "1e", "0x1F", "'a'", "nul", "1 2", "--1", "undefined"),
    *("1.2.3", ""),
)


def _digits(draw: random.Random, most: int) -> str:
    return "".join(draw.choice("0123456789") for _ in range(draw.randint(1, most)))


def _number(draw: random.Random) -> str:
    """Draw a number as JSON text."""
    edges = [1 << n for n in (7, 15, 24, 31, 53, 63, 64)] + [10**n for n in (2, 7, 9, 28, 38)]
    if draw.random() < 0.4:
        text = str((draw.choice(edges) + draw.randint(-2, 2)) * draw.choice((1, 1, -1)))
    else:
        digits = _digits(draw, draw.choice((1, 3, 10, 20, 45))).lstrip("0") or "0"
        text = draw.choice(("", "", "-")) + digits
    if draw.random() < 0.4:
        text += "." + _digits(draw, draw.choice((1, 2, 3, 12, 45))) + draw.choice(("", "", "0", "000000"))
    if draw.random() < 0.25:
        power = draw.choice(
            (str(draw.randint(0, 5)), str(draw.randint(0, 50)), str(draw.randint(0, 420)), "0009", "99999999999")
        )
        text += draw.choice("eE") + draw.choice(("", "+", "-")) + power
    return text


def _fitting(draw: random.Random, bits: int, scale: int) -> str:
    """Draw a number that mostly fits a type, in one of the ways in which it can be written."""
    whole = draw.choice((1, -1)) * (draw.getrandbits(draw.randint(1, bits)) + draw.randint(0, 1))
    digits, behind = str(abs(whole)), draw.randint(0, scale)
    if behind:
        digits = digits.rjust(behind + 1, "0")
        digits = f"{digits[:-behind]}.{digits[-behind:]}"
    zeros = draw.randint(0, 4)
    if draw.random() < 0.2:
        digits += ("" if behind else ".") + "0" * (zeros + 1)
    elif draw.random() < 0.3 and not behind:
        digits += f"{'0' * zeros}{draw.choice('eE')}-{zeros}"
    written = ("-" if whole < 0 else "") + digits
    return f'"{written}"' if draw.random() < 0.2 else written


def _text(draw: random.Random) -> str:
    given = draw.choice((lambda: draw.choice(_WORDS), lambda: _number(draw)))()
    written = json.dumps(given, ensure_ascii=draw.random() < 0.3)
    return written.replace("#", "\\u0023", 1) if draw.random() < 0.1 else written


def _scalar(draw: random.Random) -> str:
    return draw.choices((_number, _text, lambda d: d.choice(("true", "false", "null"))), (6, 3, 1))[0](draw)


def _array(draw: random.Random) -> str:
    return (
        "[" + ", ".join(_any(draw) if draw.random() < 0.1 else _scalar(draw) for _ in range(draw.randint(0, 3))) + "]"
    )


def _map(draw: random.Random) -> str:
    names = draw.sample(("x", "y", "z", "#k", "{", "10"), draw.randint(0, 3))
    return "{" + ", ".join(f"{json.dumps(name)}:{_any(draw)}" for name in names) + "}"


def _any(draw: random.Random) -> str:
    return draw.choices((_scalar, _array, _map), (8, 1, 1))[0](draw)


def _struct(draw: random.Random) -> str:
    zs = ", ".join(_fitting(draw, 50, 20) for _ in range(draw.randint(0, 3)))
    fields = (f'"x": {_fitting(draw, 31, 0)}', f'"y":{_any(draw)}', f'"z": [{zs}]', f'"more": {_any(draw)}')
    return "{" + ", ".join(draw.sample(fields, draw.randint(0, 4))) + "}"


_LIKELY: Final[Mapping[str, Callable[[random.Random], str]]] = {
    "ti": lambda draw: _fitting(draw, 7, 0), "i": lambda draw: _fitting(draw, 31, 0),
    "b": lambda draw: _fitting(draw, 63, 0),
    "m": lambda draw: _fitting(draw, 29, 2), "n": lambda draw: _fitting(draw, 126, 10),
    "w": lambda draw: f"0.{_digits(draw, 38)}{draw.choice(('', '0', 'e-1', 'e0'))}",
    "f": lambda draw: draw.choice((_number, lambda d: _fitting(d, 26, 30)))(draw),
    "d": lambda draw: draw.choice((_number, lambda d: _fitting(d, 55, 60)))(draw),
    "o": lambda draw: draw.choice(("true", "false", "1", "0", '"1"', '"TRUE"')),
    "am": lambda draw: "[" + ", ".join(_fitting(draw, 29, 2) for _ in range(draw.randint(0, 4))) + "]",
    "mp": lambda draw: "{" + ", ".join(f'"{name}": {_fitting(draw, 62, 0)}' for name in draw.sample("xyz#", 2)) + "}",
    "st": _struct,
    "s": lambda draw: draw.choice((_any, _text, _map, _array))(draw),
    "da": lambda draw: draw.choice((_text, lambda d: str(d.randint(-9999, 99999)), _date))(draw),
    "ts": lambda draw: draw.choice((_text, _date, _time))(draw),
    "tn": lambda draw: draw.choice((_text, _date, _time))(draw),
    "by": lambda draw: draw.choice((_text, lambda d: f'"{_digits(d, 9)}"', lambda _: "true"))(draw),
}  # fmt: skip
"""Column -> the usual values."""


def _date(draw: random.Random) -> str:
    return f'"{draw.choice((1, 1900, 2020, 9999)):04}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"'


def _time(draw: random.Random) -> str:
    clock = f"{draw.randint(0, 23):02}:{draw.randint(0, 59):02}:{draw.randint(0, 59):02}"
    fraction = draw.choice(("", "." + _digits(draw, 9)))
    return f'{_date(draw)[:-1]}{draw.choice("T ")}{clock}{fraction}{draw.choice(("", "", "Z", "+02:00", "-11:30"))}"'


def _row(draw: random.Random) -> str:
    """Draw a row with values in few columns, so that not every row is refused."""
    names = draw.sample([n for n in COLUMNS if n != "k"], draw.randint(1, 2))
    fields = [f'"k": {draw.randint(0, 99)}']
    fields += [f'"{n}": {_LIKELY[n](draw) if n in _LIKELY and draw.random() < 0.9 else _any(draw)}' for n in names]
    if draw.random() < 0.2:
        fields.insert(0, f'"other": {_any(draw)}')
    return "{" + ", ".join(fields) + "}"


def _enveloped(draw: random.Random, tool: str) -> str:
    position = draw.choice(("1", "17", '"18"', "9223372036854775807", "1e3"))
    if tool == "maxwell":
        return f'{{"database": "d", "type": "insert", "ts": {position}, "data": {_row(draw)}}}'
    if tool == "canal":
        rows = ", ".join(_row(draw) for _ in range(draw.choice((1, 1, 2))))
        return f'{{"type": "INSERT", "isDdl": false, "es": {position}, "data": [{rows}]}}'
    source = f'{{"lsn": {position}, "ts_ms": 1700000000000}}'
    event = f'{{"before": null, "after": {_row(draw)}, "source": {source}, "op": "{draw.choice("ccru")}"}}'
    return draw.choice((event, event, f'{{"schema": {{"type": "struct"}}, "payload": {event}}}'))


def _broken(draw: random.Random, text: str, tool: str) -> str:
    """Return a message's text after a random edit, which may leave it valid."""
    at, to = sorted((draw.randint(0, len(text)), draw.randint(0, len(text))))
    colon = draw.choice([n for n, c in enumerate(text) if c == ":"])
    return draw.choice((
        lambda: text[:at],
        lambda: text[:at] + text[to:][:1] + text[at:],
        lambda: text[:at] + text[at + 1 :],
        lambda: text[:at] + draw.choice('{}[]",:#0-e.\\ \n') + text[at:],
        lambda: text + draw.choice(("", " ", ", ")) + _enveloped(draw, tool),
        lambda: text + draw.choice(("x", "]", "}", "} x", "] x", ",0] x", "}} {", " \n", "null", ",", ', "a": 1}')),
        lambda: text.replace('"', "'"),
        lambda: text.replace(draw.choice(('"k"', '"op"', '"type"', '"data"', '"after"')), '"s"', 1),
        lambda: text[:colon] + ": " + draw.choice(_NO_JSON) + draw.choice((", ", "}")) + text[colon + 1 :].lstrip(),
        lambda: text.replace("}", ', "k": 5}', 1),
        lambda: text.replace("{", '{"data": 1, "k": 2, ', 1),
        lambda: draw.choice(("[", "", " ", "{", "5, ")) + text + draw.choice(("]", "", " ", "}")),
    ))()  # fmt: skip


def message(draw: random.Random, tool: str) -> str:
    """Draw a message of a CDC tool."""
    text = _enveloped(draw, tool)
    return _broken(draw, text, tool) if draw.random() < 0.25 else text

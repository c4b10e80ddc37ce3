"""The first steps of an adapter: a table is made, written and read. If they fail, nothing else is tried."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trinity.errors import TrinityError
from trinity_conformance.model.shapes import Column, Shape
from trinity_conformance.playing.differences import NonConformance
from trinity_conformance.playing.observations import Tally
from trinity_conformance.playing.runner import play
from trinity_conformance.playing.subject import TrinitySubject, Unsupported
from trinity_conformance.playing.traces import History, Read, Upsert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trinity.spi import Format

_CHECK: Final = "first-steps"
_HISTORY: Final = History(
    Shape((Column("k", "int", nullable=False), Column("v", "string")), ("k",)),
    (Upsert((((1, "a"), (2, None)),), executor="local"), Read(executor="local")),
)


def first_steps(
    connector: str | type[Format],
    spark: SparkSession | None,
    folder: Path,
    options: Mapping[str, Any],
    tally: Tally,
) -> TrinitySubject:
    """Return an adapter whose tables can be made, written to and read; arguments as for :class:`TrinitySubject`.

    Raises:
        NonConformance: they cannot.
        TrinityError: CONFIGURATION_INVALID, the adapter cannot be opened here.
    """
    try:
        subject = TrinitySubject(connector, spark, folder, options)
    except Exception as error:
        if isinstance(error, TrinityError) and error.code == "CONFIGURATION_INVALID":
            raise
        text = f"{type(error).__name__}: {str(error)[:1500]}"
        raise NonConformance(_CHECK, f"a table that is made, and opened by another session, raised {text}") from error
    try:
        play(subject, _HISTORY)
    except Unsupported as reason:
        subject.close()
        raise NonConformance(_CHECK, f"a keyed table of INT and STRING cannot be made: {reason}") from reason
    except NonConformance as failure:
        subject.close()
        failure.check = _CHECK
        raise
    tally.observations[_CHECK] += 1
    return subject

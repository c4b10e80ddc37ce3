"""How an action was refused: by an error of Trinity with a code that the rules name, and with words that say why."""

from __future__ import annotations

from collections.abc import Callable, Collection

from trinity.errors import TrinityError
from trinity_conformance.playing.subject import LeftToSpark


def why_not_refused(action: Callable[[], object], codes: Collection[str], names: Collection[str]) -> str | None:
    """Run an action; return what is wrong with how it was refused, None where nothing is.

    Args:
        action: uses a bad input.
        codes: error codes; the error must have one of them.
        names: words that the message must contain.

    Raises:
        LeftToSpark: the action needs Spark, and there is none.
    """
    try:
        action()
    except LeftToSpark:
        raise
    except TrinityError as error:
        if error.code not in codes:
            return f"{error.code} instead of {' or '.join(sorted(codes))}: {error.message}"
        unnamed = [word for word in names if word not in error.message]
        return f"the message does not name {unnamed}: {error.message}" if unnamed else None
    except Exception as error:
        return f"not a TrinityError but {type(error).__name__}: {str(error)[:400]}"
    return "accepted"

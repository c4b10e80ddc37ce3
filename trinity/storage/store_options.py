"""Options of object stores: what all kinds have in common, and how a user's spelling of them is checked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import ValidationError

from trinity.errors import TrinityError, nearest
from trinity.options import Options
from trinity.secrets import keep

__all__ = ["StoreOptions", "invalid"]


class StoreOptions(Options):
    """Options of a bucket, by which it is reached. A subclass for each kind of store says which keys there are.

    Attributes:
        endpoint: URL of the service, for another one than the usual.
        allow_http: True for an endpoint without TLS.
        anonymous: True for what is public, and read without a key.
    """

    prefix: ClassVar[re.Pattern[str]]
    """The beginning of a name that may be left out."""
    aliases: ClassVar[Mapping[str, str]]
    """Another name of an option -> its own."""
    environment: ClassVar[Mapping[str, tuple[str, ...]]]
    """Option -> the variables that say it where it is left out, the first one first."""
    keys: ClassVar[tuple[str, ...]] = ()
    """Options of which the environment is asked only where none of them is given, nor ``anonymous``."""
    usual: ClassVar[str]
    """The service without an endpoint, for messages."""

    endpoint: str | None = None
    allow_http: bool | None = None
    anonymous: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """The checked options.

        Args:
            options: as ``storage_options=`` gives them: the names of the attributes, with or without the kind's prefix
                before them, in any case, with hyphens or underscores.

        Raises:
            TrinityError: CONFIGURATION_INVALID naming each option that is wrong.
        """
        keep(options)
        try:
            found = cls.model_validate({cls._canonical(name): value for name, value in options.items()})
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        else:
            found._check_endpoint()
            found._check_keys()
            return found
        raise invalid(wrong)

    def resolved(self) -> Self:
        """With what the environment says, where the options do not."""
        told = self.anonymous or any(getattr(self, name) is not None for name in self.keys)
        found: dict[str, Any] = {}
        for name, variables in self.environment.items():
            said = [os.environ[v] for v in variables if os.environ.get(v)]
            if getattr(self, name) is None and said and not (told and name in self.keys):
                found[name] = said[0].lower() in ("1", "true", "yes") if name == "allow_http" else said[0]
        if found.keys() & set(self.keys):
            keep(found)
        return self.model_copy(update=found)

    @property
    def place(self) -> str:
        """The service, for messages."""
        return self.resolved().endpoint or self.usual

    def _check_keys(self) -> None:
        """Refuses keys that are no key together. Raises CONFIGURATION_INVALID."""

    def _check_endpoint(self) -> None:
        if self.endpoint is None:
            return
        parts = urlsplit(self.endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
            raise invalid("endpoint is a URL such as 'https://host:9000', without a user")
        if parts.scheme == "http" and self.resolved().allow_http is not True:
            raise invalid(f"endpoint '{self.endpoint}' has no TLS; say allow_http=True, or use https")

    @classmethod
    def _canonical(cls, name: str) -> str:
        plain = cls.prefix.sub("", str(name).lower().replace("-", "_"))
        found = cls.aliases.get(plain, plain)
        if found not in cls.model_fields:
            known = list(cls.model_fields)
            raise invalid(f"there is no option '{name}'.{nearest(found, known)} There are: {', '.join(known)}")
        return found


def invalid(what: str) -> TrinityError:
    """The refusal of options."""
    return TrinityError("CONFIGURATION_INVALID", f"storage_options: {what}.")

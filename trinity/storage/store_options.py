"""Options of object stores: those that all kinds share, and the check of user-given options."""

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


class StoreOptions(Options):
    """The options by which a bucket is reached. Each kind of store has a subclass, with the options of its keys.

    Attributes:
        endpoint: URL of the service, if not the usual one.
        allow_http: True to allow an endpoint without TLS.
        anonymous: True to read a public bucket without a key.
    """

    prefix: ClassVar[re.Pattern[str]]
    """Pattern of a prefix of option names that may be left out."""
    aliases: ClassVar[Mapping[str, str]]
    """Alias of an option -> its name."""
    environment: ClassVar[Mapping[str, tuple[str, ...]]]
    """Option -> environment variables for it when it is not given; the first one that is set counts."""
    keys: ClassVar[tuple[str, ...]] = ()
    """Options that come from the environment only if none of them, nor ``anonymous``, is given."""
    usual: ClassVar[str]
    """Name of the usual service, for messages."""

    endpoint: str | None = None
    allow_http: bool | None = None
    anonymous: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return the options that a user gave, checked.

        Args:
            options: ``storage_options=``: keys are names of the attributes, with or without the kind's prefix, in any
                case, with hyphens or underscores.

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
        """Return these options, with missing ones from the environment."""
        has_keys = self.anonymous or any(getattr(self, name) is not None for name in self.keys)
        found: dict[str, Any] = {}
        for name, variables in self.environment.items():
            values = [os.environ[v] for v in variables if os.environ.get(v)]
            if getattr(self, name) is None and values and not (has_keys and name in self.keys):
                found[name] = values[0].lower() in ("1", "true", "yes") if name == "allow_http" else values[0]
        if found.keys() & set(self.keys):
            keep(found)
        return self.model_copy(update=found)

    @property
    def service(self) -> str:
        """The name of the service, for messages."""
        return self.resolved().endpoint or self.usual

    def _check_keys(self) -> None:
        """Check that the keys fit together. Raises CONFIGURATION_INVALID."""

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
    """Return the error for wrong options: CONFIGURATION_INVALID."""
    return TrinityError("CONFIGURATION_INVALID", f"storage_options: {what}.")

"""Options of catalogs and backends as pydantic models, which show no secrets (N4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from trinity.errors import TrinityError
from trinity.secrets import redacted

_Options = TypeVar("_Options", bound="CatalogOptions")


class Options(BaseModel):
    """Options whose repr hides secrets, and whose validation errors show no input."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, hide_input_in_errors=True)

    def __repr__(self) -> str:
        return redacted(super().__repr__())

    def __str__(self) -> str:
        return redacted(super().__str__())


class CatalogOptions(Options):
    """Settings of a catalog, from ``connect(catalogs={name: {...}})``."""

    @classmethod
    def of(cls: type[_Options], catalog: str, options: Mapping[str, Any]) -> _Options:
        """Check the user's settings of a catalog, without ``connector``, and return them.

        Raises:
            TrinityError: CONFIGURATION_INVALID naming the catalog and each option that is wrong.
        """
        try:
            return cls.model_validate(dict(options))
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise TrinityError("CONFIGURATION_INVALID", f"Options of catalog '{catalog}': {wrong}.")

"""Credentials that a REST catalog issues for a table's location, asked for with the table, and before they expire."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.catalog.rest import Capability, RestCatalog, TableResponse
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import StagedTable, Table

from trinity.errors import TrinityError
from trinity.storage import Location
from trinity.storage.grants import Credential, grant
from trinity.storage.location import in_bucket
from trinity.storage.s3 import S3Options
from trinity_iceberg.options import DELEGATION
from trinity_iceberg.trouble import catalog_trouble, trouble

_KEY: Final = {
    "access_key_id": "s3.access-key-id",
    "secret_access_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
}
_EXPIRES: Final = "s3.session-token-expires-at-ms"
_SIGNING: Final = ("s3.remote-signing-enabled", "s3.signer.uri")
_S3: Final = re.compile(r"s3[an]:")


class VendingCatalog(RestCatalog):
    """A REST catalog whose tables are reached with the credentials that it issues.

    The options of the store that are known without the catalog, in ``root``, override those that it sends.
    """

    def __init__(self, name: str, known_store: S3Options, **properties: Any) -> None:
        self._known_store = known_store
        self._handed: dict[str, Sequence[Credential]] = {}
        self._settings: dict[str, Mapping[str, str]] = {}  # settings of a table's store, besides credentials
        super().__init__(name, **properties)

    def _response_to_table(self, identifier_tuple: tuple[str, ...], table_response: TableResponse) -> Table:
        self._hand_out(identifier_tuple, table_response)
        return super()._response_to_table(identifier_tuple, table_response)

    def _response_to_staged_table(
        self, identifier_tuple: tuple[str, ...], table_response: TableResponse
    ) -> StagedTable:
        self._hand_out(identifier_tuple, table_response)
        return super()._response_to_staged_table(identifier_tuple, table_response)

    def _hand_out(self, name: tuple[str, ...], answer: TableResponse) -> None:
        """Use the credentials of an answer. Raises PERMISSION_DENIED, NOT_SUPPORTED where it has none."""
        location = answer.metadata.location
        if not in_bucket(location):
            return
        listed = {one.prefix: one.config for one in answer.storage_credentials}
        root, config = Location.of(location), {**self._own_config(), **answer.config}
        found = self._credentials(name, root, {"s3:": {}, **listed}, config)
        self._handed[str(root)] = found
        self._settings[str(root)] = {k: v for k, v in config.items() if k not in (*_KEY.values(), _EXPIRES)}
        grant(root, found, _Grants(self, name, root))

    def _own_config(self) -> dict[str, str]:
        """Return the catalog's own settings of stores, which apply to all tables."""
        properties = self.properties.items()
        return {name: str(value) for name, value in properties if name.startswith("s3.") or name == "client.region"}

    def _credentials(
        self, name: tuple[str, ...], root: Location, listed: Mapping[str, Mapping[str, str]], config: Mapping[str, str]
    ) -> list[Credential]:
        """Return the listed credentials, each with the settings that apply to all."""
        found = [
            Credential(_S3.sub("s3:", prefix), self._options({**config, **own}), _expiry({**config, **own}))
            for prefix, own in listed.items()
            if prefix.startswith("s3") and _KEY["access_key_id"] in {**config, **own}
        ]
        if any(f"{root}/".startswith(one.prefix) for one in found):
            return found
        signs = any(option in config for option in _SIGNING)
        raise TrinityError(
            "NOT_SUPPORTED" if signs else "PERMISSION_DENIED",
            f"Catalog '{self.name}' hands out no keys for table '{'.'.join(name)}' at '{root}'"
            + (": it would sign requests itself, which Trinity does not ask of it." if signs else ".")
            + f" See to its settings; or leave '{DELEGATION}' out, and give keys by storage_options.",
        )

    def _options(self, config: Mapping[str, str]) -> S3Options:
        known = self._known_store
        own: dict[str, Any] = {option: config[name] for option, name in _KEY.items() if config.get(name)}
        known_options = known.model_dump(exclude_none=True, exclude_defaults=True)
        settings = {
            "endpoint": config.get("s3.endpoint"),
            "region": config.get("s3.region") or config.get("client.region"),
            "virtual_hosted_style": config.get("s3.force-virtual-addressing") == "true",
        }
        return S3Options.of({**{option: value for option, value in settings.items() if value}, **known_options, **own})

    def newer(self, name: tuple[str, ...], root: Location) -> Sequence[Credential]:
        """Return newer credentials of a table; requested without the table, if the catalog supports that.

        Raises:
            TrinityError: PERMISSION_DENIED, NOT_SUPPORTED, FILESYSTEM_ERROR, TABLE_NOT_FOUND.
        """
        try:
            if Capability.V1_LOAD_CREDENTIALS in self._supported_endpoints:
                listed = {one.prefix: one.config for one in self._load_credentials(name).storage_credentials}
                return self._credentials(name, root, listed, self._settings.get(str(root), {}))
            self.load_table(name)
        except trouble() as error:
            raise catalog_trouble(self.name, error) from error
        except ValueError as error:  # a malformed answer
            raise catalog_trouble(self.name, error) from error
        except NoSuchTableError as error:
            raise TrinityError("TABLE_NOT_FOUND", f"Table '{'.'.join(name)}' was dropped meanwhile.") from error
        return self._handed[str(root)]


@dataclass(frozen=True)
class _Grants:
    """The credentials of one table, as :class:`~trinity.storage.grants.Grants`."""

    catalog: VendingCatalog
    name: tuple[str, ...]
    root: Location

    def credentials(self) -> Sequence[Credential]:
        return self.catalog.newer(self.name, self.root)


def _expiry(config: Mapping[str, str]) -> int | None:
    expires = str(config.get(_EXPIRES) or "")
    return int(expires) if expires.isdecimal() else None

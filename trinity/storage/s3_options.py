"""The options of S3 buckets: where each bucket is, and by which keys it is reached. The one place that knows them.

A process has one set of options for a bucket, which the sessions that use it have given; a bucket of which nothing is
known is reached by what the environment says.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from trinity.errors import TrinityError, nearest
from trinity.options import Options
from trinity.secrets import keep

__all__ = [
    "HADOOP_S3",
    "WORKER_OPTIONS",
    "S3Options",
    "claim_bucket",
    "learn_options",
    "options_as_text",
    "options_of",
    "options_to_learn",
    "release_bucket",
]

WORKER_OPTIONS: Final = "TRINITY_STORAGE_OPTIONS"
"""Variable of the environment by which Spark's workers learn of the options that a session was given."""

HADOOP_S3: Final = "fs.s3.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem"
"""Setting of Hadoop's, and its value, by which ``s3:`` URIs, as Iceberg's metadata has them, are read by S3A."""

_PREFIX: Final = re.compile(r"^(aws_|s3\.|s3_)")
_ALIASES: Final = {
    "endpoint_url": "endpoint",
    "endpoint_url_s3": "endpoint",
    "default_region": "region",
    "virtual_hosted_style_request": "virtual_hosted_style",
    "force_virtual_addressing": "virtual_hosted_style",
    "skip_signature": "anonymous",
}
_ENVIRONMENT: Final = {
    "endpoint": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "allow_http": ("AWS_ALLOW_HTTP",),
}


class S3Options(Options):
    """Options of a bucket.

    Attributes:
        endpoint: URL of the service, for another one than Amazon's: ``http://127.0.0.1:9000``.
        region: the bucket's; ``us-east-1`` where nothing says another.
        access_key_id: with ``secret_access_key`` the key; without it the environment's usual chain is asked:
            ``AWS_ACCESS_KEY_ID`` and its like, web identity, container, instance.
        secret_access_key: see there.
        session_token: of temporary keys.
        allow_http: True for an endpoint without TLS.
        virtual_hosted_style: True for a service that wants the bucket in the name of its host.
        anonymous: True for a public bucket that is read without a key.
    """

    endpoint: str | None = None
    region: str | None = None
    access_key_id: str | None = Field(default=None, repr=False)
    secret_access_key: str | None = Field(default=None, repr=False)
    session_token: str | None = Field(default=None, repr=False)
    allow_http: bool | None = None
    virtual_hosted_style: bool = False
    anonymous: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> S3Options:
        """The checked options.

        Args:
            options: as ``storage_options=`` gives them: the names of the attributes, with or without ``aws_`` or
                ``s3.`` before them, in any case, with hyphens or underscores.

        Raises:
            TrinityError: CONFIGURATION_INVALID naming each option that is wrong.
        """
        keep(options)
        try:
            found = cls.model_validate({_canonical(name): value for name, value in options.items()})
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        else:
            return found._checked()
        raise TrinityError("CONFIGURATION_INVALID", f"storage_options: {wrong}.")

    def _checked(self) -> S3Options:
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise _invalid("access_key_id and secret_access_key are given together, or neither")
        if self.endpoint is not None:
            parts = urlsplit(self.endpoint)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
                raise _invalid("endpoint is a URL such as 'https://host:9000', without a user")
            if parts.scheme == "http" and self.resolved().allow_http is not True:
                raise _invalid(f"endpoint '{self.endpoint}' has no TLS; say allow_http=True, or use https")
        return self

    def resolved(self) -> S3Options:
        """With what the environment says of the place, where the options do not; keys are left to each client."""
        found: dict[str, Any] = {}
        for name, variables in _ENVIRONMENT.items():
            said = [os.environ[v] for v in variables if os.environ.get(v)]
            if getattr(self, name) is None and said:
                found[name] = said[0].lower() in ("1", "true", "yes") if name == "allow_http" else said[0]
        return self.model_copy(update=found)

    @property
    def place(self) -> str:
        """The service, for messages."""
        return self.resolved().endpoint or f"Amazon S3 in {self.resolved().region or 'us-east-1'}"


def _canonical(name: str) -> str:
    plain = _PREFIX.sub("", str(name).lower().replace("-", "_"))
    found = _ALIASES.get(plain, plain)
    if found not in S3Options.model_fields:
        known = list(S3Options.model_fields)
        raise _invalid(f"there is no option '{name}'.{nearest(found, known)} There are: {', '.join(known)}")
    return found


def _invalid(what: str) -> TrinityError:
    return TrinityError("CONFIGURATION_INVALID", f"storage_options: {what}.")


_known: dict[str, S3Options] = {}
_users: dict[str, int] = {}
_mutex = threading.Lock()


def options_of(bucket: str) -> S3Options:
    """The options of a bucket; the environment's where nobody has given any."""
    with _mutex:
        known = _known.get(bucket)
    if known is None and (text := os.environ.get(WORKER_OPTIONS)):
        known = _read(text).get(bucket)
    return known or S3Options()


def options_as_text(before: str | None, buckets: Mapping[str, S3Options]) -> str:
    """The value of :data:`WORKER_OPTIONS` for some buckets, beside those of an earlier one.

    What the driver's environment says of their place is in it, as a worker may have another one.
    """
    told = {bucket: options.resolved().model_dump(mode="json") for bucket, options in buckets.items()}
    found = {**(json.loads(before) if before else {}), **told}
    return json.dumps(found, sort_keys=True)


def options_to_learn(bucket: str) -> str:
    """The options of one bucket as text, keys among them, for :func:`learn_options`."""
    return options_as_text(None, {bucket: options_of(bucket)})


def learn_options(text: str) -> None:
    """Has one of Spark's workers reach a bucket as the driver does; other buckets are left alone.

    Args:
        text: made there by :func:`options_to_learn`.
    """
    before = os.environ.get(WORKER_OPTIONS)
    if before != text:
        os.environ[WORKER_OPTIONS] = json.dumps({**json.loads(before or "{}"), **json.loads(text)}, sort_keys=True)


@lru_cache(maxsize=1)
def _read(text: str) -> dict[str, S3Options]:
    return {bucket: S3Options.of(options) for bucket, options in json.loads(text).items()}


def claim_bucket(bucket: str, options: S3Options) -> None:
    """Says how a bucket is reached from now on: newer keys take the place of older ones.

    Raises:
        TrinityError: CONFIGURATION_INVALID where an open session has the bucket of that name at another endpoint.
    """
    with _mutex:
        before = _known.get(bucket)
        if before is not None and _users.get(bucket) and before.place != options.place:
            raise TrinityError(
                "CONFIGURATION_INVALID",
                f"Bucket '{bucket}' is at {before.place} for another session of this process, and would be at "
                f"{options.place}; a process knows one bucket of a name. Close that session first.",
            )
        _known[bucket] = options
        _users[bucket] = _users.get(bucket, 0) + 1


def release_bucket(bucket: str) -> None:
    """Says that a session uses the bucket no longer. What is known of it stays, for work that is under way."""
    with _mutex:
        _users[bucket] = max(0, _users.get(bucket, 0) - 1)

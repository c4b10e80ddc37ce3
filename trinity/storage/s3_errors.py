"""Failures of S3, as Trinity's errors: what is wrong with which store, and what helps."""

from __future__ import annotations

import re
from typing import Final

from trinity.errors import ErrorCode, TrinityError
from trinity.storage.location import Location
from trinity.storage.s3_options import options_of

__all__ = ["plain_text", "s3_trouble", "without_conditional_put"]

_CAUSES: Final[tuple[tuple[str, ErrorCode, str], ...]] = (
    (
        r"NoSuchBucket|NO_SUCH_BUCKET",
        "FILESYSTEM_ERROR",
        "there is no bucket '{bucket}'. Make it, or correct the name or the endpoint.",
    ),
    (
        r"ExpiredToken|TokenRefreshRequired|EXPIRED_TOKEN|RequestExpired",
        "PERMISSION_DENIED",
        "the credentials have expired. Connect again with new ones.",
    ),
    (
        (
            r"AuthorizationHeaderMalformed|PermanentRedirect|IllegalLocationConstraint|301 Moved|BareRedirect"
            r"|HTTP status 301"
        ),
        "CONFIGURATION_INVALID",
        "bucket '{bucket}' is in another region{region}. Say which in storage_options, as region='eu-west-1'.",
    ),
    (
        (
            r"InvalidAccessKeyId|SignatureDoesNotMatch|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|Unauthenticated"
            r"|401 Unauthorized|InvalidToken|UNRECOGNIZED_CLIENT"
        ),
        "PERMISSION_DENIED",
        (
            "the key was refused. Correct access_key_id and secret_access_key in storage_options, or in "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        ),
    ),
    (
        r"403 Forbidden|AccessDenied|ACCESS_DENIED|PermissionDenied",
        "PERMISSION_DENIED",
        "the key has no permission for this. Trinity lists, reads, puts and deletes objects below the warehouse.",
    ),
    (
        r"SlowDown|SLOW_DOWN|503 Service|THROTTLING|Too Many Requests",
        "FILESYSTEM_ERROR",
        "the store is throttling, and went on for longer than it was asked again. Try again later.",
    ),
    (
        r"instance metadata|169\.254\.169\.254|NoCredentials|credentials? (?:provider|not found)|metadata endpoint",
        "PERMISSION_DENIED",
        (
            "no credentials were found. Give access_key_id and secret_access_key in storage_options, set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or say anonymous=True for a public bucket."
        ),
    ),
    (
        r"builder error",
        "CONFIGURATION_INVALID",
        "the address is not accepted: without TLS it needs allow_http=True in storage_options.",
    ),
    (
        (
            r"error sending request|NETWORK_CONNECTION|timed? ?out|connection (?:closed|reset|refused)|dns error"
            r"|curlCode|HTTP error|incomplete message"
        ),
        "FILESYSTEM_ERROR",
        "it does not answer ({said}). Check the endpoint and the network.",
    ),
)
_REGION: Final = re.compile(r"<Region>([\w-]{1,40})</Region>|expecting '([\w-]{1,40})'")


def s3_trouble(error: BaseException, path: str) -> TrinityError:
    """The error of a request about an object, by what the library says of it."""
    location, text = Location.of(path), plain_text(error)
    options = options_of(location.bucket)
    for signs, code, remedy in _CAUSES:
        if re.search(signs, f"{type(error).__name__} {text}", re.IGNORECASE):
            region = _REGION.search(text)
            named = f" ('{region[1] or region[2]}')" if region else ""
            said = remedy.format(bucket=location.bucket, region=named, said=text[-160:].strip(". "))
            return TrinityError(code, f"'{path}' at {options.place}: {said}")
    return TrinityError("FILESYSTEM_ERROR", f"'{path}' at {options.place} cannot be read or written: {text[:300]}.")


def without_conditional_put(path: str) -> TrinityError:
    """The refusal of a store that puts an object over one that is there, although it was told not to."""
    location = Location.of(path)
    return TrinityError(
        "CONFIGURATION_INVALID",
        f"The store of bucket '{location.bucket}' at {options_of(location.bucket).place} has no conditional put "
        "(If-None-Match): of two commits at once one would be lost. Use a store, or a version of it, that has it.",
    )


def plain_text(error: BaseException) -> str:
    """The text of an error, without what obstore adds for those who debug it."""
    return " ".join(str(error).partition("\n\nDebug source:")[0].split())

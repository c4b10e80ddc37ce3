"""The requests that :mod:`tests.support.google_server` answers."""

from __future__ import annotations

import base64
import json
import re
import threading
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import md5
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

_JSON: Final = re.compile(r"/(?:download/)?storage/v1/b/([^/]+)(?:/o(?:/(.+))?)?")
_RANGE: Final = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True)
class _Object:
    data: bytes
    generation: int
    when: datetime

    @property
    def tag(self) -> str:
        return md5(self.data).hexdigest()


@dataclass
class Stored:
    """All that a server stores.

    Attributes:
        token: a token that is always accepted.
        email: a service account whose tokens are accepted.
        key: the public key that verifies these tokens.
        buckets: bucket -> name of an object -> the object.
        slow: how far the server's clock is behind the machine's.
    """

    token: str
    email: str
    key: rsa.RSAPublicKey
    buckets: dict[str, dict[str, _Object]] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    slow: timedelta = timedelta()

    def put(self, bucket: str, name: str, data: bytes, generation: str | None) -> _Object | None:
        """Put an object. Return None where the present generation is not the required one."""
        with self.lock:
            there = self.buckets[bucket].get(name)
            if generation is not None and int(generation) != (there.generation if there else 0):
                return None
            now = (datetime.now(UTC) - self.slow).replace(microsecond=0)
            found = _Object(data, (there.generation if there else 0) + 1, now)
            self.buckets[bucket][name] = found
            return found

    def copied(self, source: str) -> bytes | None:
        """Return the bytes of the object to copy, a percent-encoded ``bucket/name``; None if it does not exist."""
        bucket, _, name = unquote(source).removeprefix("/").partition("/")
        with self.lock:
            there = self.buckets.get(bucket, {}).get(name)
        return there.data if there else None

    def listed(self, bucket: str, prefix: str, delimiter: str, after: str) -> tuple[dict[str, _Object], list[str]]:
        """Return the objects and the common prefixes of a listing, by name, after the name ``after``."""
        with self.lock:
            names = sorted(n for n in self.buckets[bucket] if n.startswith(prefix) and n > after)
            objects = {n: self.buckets[bucket][n] for n in names}
        if not delimiter:
            return objects, []
        parts = {n: n[len(prefix) :].partition(delimiter) for n in names}
        below = dict.fromkeys(f"{prefix}{first}{sign}" for first, sign, _ in parts.values() if sign)
        return {n: objects[n] for n in names if not parts[n][1]}, list(below)

    def knows(self, authorization: str) -> bool:
        """Return whether a token is accepted."""
        token = authorization.removeprefix("Bearer ")
        if token == self.token:
            return True
        signed, _, signature = token.rpartition(".")
        try:
            self.key.verify(_decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
            return bool(json.loads(_decoded(signed.partition(".")[2]))["iss"] == self.email)
        except (InvalidSignature, ValueError, KeyError):
            return False


class GoogleHandler(BaseHTTPRequestHandler):
    """The handler of one request."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self) -> None:
        stored: Stored = self.server.stored  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        if address.path == "/token":
            form = parse_qs(body.decode())
            good = stored.knows(form["assertion"][0])
            reply = {"access_token": stored.token, "token_type": "Bearer", "expires_in": 3600}
            return self.say(200 if good else 400, json.dumps(reply if good else {"error": "invalid_grant"}).encode())
        if not stored.knows(self.headers.get("Authorization", "")):
            return self.refuse(401, "AuthenticationRequired", "Authentication required.")
        if (found := _JSON.fullmatch(address.path)) is not None:
            return self.by_json(stored, unquote(found[1]), unquote(found[2]) if found[2] else "", query)
        bucket, _, name = unquote(address.path).removeprefix("/").partition("/")
        if bucket not in stored.buckets:
            return self.refuse(404, "NoSuchBucket", "The specified bucket does not exist.")
        if not name:
            return self.list(stored, bucket, query)
        if "uploads" in query or "uploadId" in query:
            return self.upload(stored, bucket, name, query, body)
        return self.by_xml(stored, bucket, name, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer  # noqa: N815 - as http.server calls them

    # -- XML --------------------------------------------------------------------------------------------

    def by_xml(self, stored: Stored, bucket: str, name: str, body: bytes) -> None:
        if self.command == "PUT":
            if (source := self.headers.get("x-goog-copy-source")) is not None:
                copied = stored.copied(source)
                if copied is None:
                    return self.refuse(404, "NoSuchKey", "The specified key does not exist.")
                body = copied
            put = stored.put(bucket, name, body, self.headers.get("x-goog-if-generation-match"))
            if put is None:
                return self.refuse(412, "PreconditionFailed", "A precondition that was specified did not hold.")
            return self.say(200, b"", _facts(put))
        there = stored.buckets[bucket].get(name)
        if there is None:
            return self.refuse(404, "NoSuchKey", "The specified key does not exist.")
        if self.command == "DELETE":
            with stored.lock:
                stored.buckets[bucket].pop(name, None)
            return self.say(204)
        return self.send(there)

    def send(self, found: _Object) -> None:
        """Send an object, or the requested range of it."""
        wanted = _RANGE.fullmatch(self.headers.get("Range", ""))
        if wanted is None:
            return self.say(200, found.data, _facts(found))
        size = len(found.data)
        start = int(wanted[1]) if wanted[1] else max(0, size - int(wanted[2]))
        end = min(size, int(wanted[2]) + 1) if wanted[1] and wanted[2] else size
        if start >= size:
            return self.refuse(416, "InvalidRange", "The requested range cannot be satisfied.")
        return self.say(
            206, found.data[start:end], {**_facts(found), "Content-Range": f"bytes {start}-{end - 1}/{size}"}
        )

    def list(self, stored: Stored, bucket: str, query: dict[str, str]) -> None:
        after = max(query.get("start-after", ""), query.get("continuation-token", ""))
        objects, below = stored.listed(bucket, query.get("prefix", ""), query.get("delimiter", ""), after)
        most = int(query.get("max-keys", 1000))
        more = list(objects)[most - 1] if len(objects) > most else None
        rows = [
            f"<Contents><Key>{escape(n)}</Key><Generation>{o.generation}</Generation>"
            f'<LastModified>{o.when:%Y-%m-%dT%H:%M:%S.000Z}</LastModified><ETag>"{o.tag}"</ETag>'
            f"<Size>{len(o.data)}</Size></Contents>"
            for n, o in list(objects.items())[:most]
        ]
        rows += [f"<CommonPrefixes><Prefix>{escape(p)}</Prefix></CommonPrefixes>" for p in below]
        rows += [f"<NextContinuationToken>{escape(more)}</NextContinuationToken>"] if more else []
        self.say(200, f"<?xml version='1.0'?><ListBucketResult>{''.join(rows)}</ListBucketResult>".encode())

    def upload(self, stored: Stored, bucket: str, name: str, query: dict[str, str], body: bytes) -> None:
        """Handle a request of a multipart upload: start it, upload a part, complete it, or abort it."""
        upload = query.get("uploadId", "")
        if self.command == "POST" and not upload:
            upload = uuid.uuid4().hex
            stored.uploads[upload] = {}
            reply = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            return self.say(200, reply.encode())
        if self.command == "PUT":
            stored.uploads[upload][int(query["partNumber"])] = body
            return self.say(200, b"", {"ETag": f'"{md5(body).hexdigest()}"'})
        parts = stored.uploads.pop(upload)
        if self.command == "DELETE":
            return self.say(204)
        put = stored.put(bucket, name, b"".join(parts[n] for n in sorted(parts)), None)
        assert put is not None
        reply = f'<CompleteMultipartUploadResult><ETag>"{put.tag}"</ETag></CompleteMultipartUploadResult>'
        return self.say(200, reply.encode(), _facts(put))

    # -- JSON -------------------------------------------------------------------------------------------

    def by_json(self, stored: Stored, bucket: str, name: str, query: dict[str, str]) -> None:
        if bucket not in stored.buckets:
            return self.say(404, _json_error("The specified bucket does not exist."))
        if name:
            there = stored.buckets[bucket].get(name)
            if there is None:
                return self.say(404, _json_error(f"No such object: {bucket}/{name}"))
            if query.get("alt") == "media":
                return self.send(there)
            return self.say(200, json.dumps(_resource(bucket, name, there)).encode())
        if not self.path.partition("?")[0].endswith("/o"):
            return self.say(200, json.dumps({"kind": "storage#bucket", "id": bucket, "name": bucket}).encode())
        prefix, start = query.get("prefix", ""), query.get("startOffset", "")
        objects, below = stored.listed(bucket, prefix, query.get("delimiter", ""), "")
        items = [_resource(bucket, n, o) for n, o in objects.items() if n >= start]
        body: dict[str, Any] = {"kind": "storage#objects", "items": items, "prefixes": below}
        return self.say(200, json.dumps(body).encode())

    # -- answers ----------------------------------------------------------------------------------------

    def refuse(self, status: int, code: str, message: str) -> None:
        body = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
        self.say(status, body.encode())

    def say(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response_only(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        kind = "application/json" if body[:1] == b"{" else "application/xml" if body[:1] == b"<" else None
        self.send_header("Content-Type", kind or "application/octet-stream")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as in the base class
        """Log nothing."""


def _facts(found: _Object) -> dict[str, str]:
    return {
        "ETag": f'"{found.tag}"',
        "Last-Modified": format_datetime(found.when, usegmt=True),
        "x-goog-generation": str(found.generation),
        "x-goog-stored-content-length": str(len(found.data)),
    }


def _resource(bucket: str, name: str, found: _Object) -> dict[str, Any]:
    when = f"{found.when:%Y-%m-%dT%H:%M:%S.000Z}"
    return {
        "kind": "storage#object",
        "id": f"{bucket}/{name}/{found.generation}",
        "name": name,
        "bucket": bucket,
        "generation": str(found.generation),
        "metageneration": "1",
        "size": str(len(found.data)),
        "etag": found.tag,
        "timeCreated": when,
        "updated": when,
        "storageClass": "STANDARD",
    }


def _json_error(message: str) -> bytes:
    body = {"code": 404, "message": message, "errors": [{"domain": "global", "reason": "notFound", "message": message}]}
    return json.dumps({"error": body}).encode()


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(f"{text}{'=' * (-len(text) % 4)}")

"""Polls by HTTP: conditional requests, so that what has not changed costs almost nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

import aiohttp

from freshet.model import UserError
from freshet.sources.mirror.answer import PollAnswer, PollFailed, Spend, Validator
from freshet.sources.mirror.content import shown_reason
from freshet.sources.mirror.hosts import AllowedHosts
from freshet.sources.mirror.packed import unpacked

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_BUSY: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_HEADERS: Final = {"Accept-Encoding": "gzip", "User-Agent": "freshet"}
_LONGEST_RETRY: Final = 7 * 86_400.0


class HttpFetcher:
    """Polls resources by HTTP.

    The validator holds the ETag and Last-Modified of the content that is known; a resource that still has them answers
    304 without a body. Redirects are followed here, because each is a request of the budget and must lead to an allowed
    host.

    Args:
        allowed: Hosts that may be asked.
        url: Address of an element, with ``{element}`` where its name goes; None: the element is the address.
        headers: Headers of every request, unless a redirect leads to another host.
        timeout: Maximum number of seconds for a request.
        max_bytes: Maximum size of a body, packed or unpacked.
        redirects: Maximum number of redirects.
    """

    def __init__(
        self,
        allowed: AllowedHosts,
        url: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 10.0,
        max_bytes: int = 1 << 20,
        redirects: int = 3,
    ) -> None:
        self._allowed, self._url = allowed, url
        self._headers = dict(headers or {})
        self._timeout, self._max_bytes, self._redirects = timeout, max_bytes, redirects
        self._session: aiohttp.ClientSession | None = None

    def address(self, element: str) -> str:
        """Where an element is.

        >>> HttpFetcher(AllowedHosts([]), "http://localhost/items/{element}?full=1").address("a b/c")
        'http://localhost/items/a%20b%2Fc?full=1'
        """
        return element if self._url is None else self._url.replace("{element}", quote(element, safe=""))

    def host(self, element: str) -> str:
        return urlsplit(self.address(element)).netloc.rpartition("@")[2].lower()

    def check(self, element: str) -> None:
        try:
            parts = urlsplit(self.address(element))
            usable = parts.scheme in ("http", "https") and parts.hostname is not None and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise UserError(f"{self.address(element)} is not an address of HTTP, such as http://host/path")
        self._allowed.check(parts.netloc.rpartition("@")[2])

    async def fetch(self, element: str, validator: Validator, spend: Spend) -> PollAnswer:
        first = address = self.address(element)
        moved, own = 0, self._headers
        for hop in range(self._redirects + 1):
            if hop:
                await spend()
                # What the headers tell is meant for the element's own host.
                own = self._headers if urlsplit(address).netloc == urlsplit(first).netloc else {}
            answer = await self._request(address, {**own, **_conditions(validator)}, validator, moved)
            if isinstance(answer, PollAnswer):
                return answer
            address, moved = answer
        raise PollFailed(f"more than {self._redirects} redirects", moved=moved)

    async def _request(
        self, address: str, headers: Mapping[str, str], validator: Validator, moved: int
    ) -> PollAnswer | tuple[str, int]:
        """An answer; or where a redirect leads to, and the bytes so far."""
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._opened().get(address, headers=headers, allow_redirects=False) as response,
            ):
                moved += _header_bytes(response)
                if response.status in _REDIRECTS:
                    return self._next(address, response, moved), moved
                return await self._answer(response, validator, moved)
        except TimeoutError:
            raise PollFailed(f"no answer within {self._timeout:g} s", moved=moved) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise PollFailed(shown_reason(error), moved=moved) from None

    def _next(self, address: str, response: aiohttp.ClientResponse, moved: int) -> str:
        target = urljoin(address, response.headers.get("Location", ""))
        if urlsplit(target).scheme not in ("http", "https"):
            raise PollFailed(f"redirected to {target!r}, which is not HTTP", moved=moved)
        if urlsplit(target).netloc != urlsplit(address).netloc:
            try:
                self._allowed.check(urlsplit(target).netloc.rpartition("@")[2])
            except UserError as error:
                raise PollFailed(f"redirected: {error}", moved=moved) from None
        return target

    async def _answer(self, response: aiohttp.ClientResponse, validator: Validator, moved: int) -> PollAnswer:
        modified = _http_time(response.headers.get("Last-Modified"))
        if response.status == HTTPStatus.NOT_MODIFIED:
            return PollAnswer(None, validator, modified, moved)
        if response.status != HTTPStatus.OK:
            raise _refused(response, moved)
        body, packed = await self._body(response, moved)
        found = {"etag": response.headers.get("ETag"), "modified": response.headers.get("Last-Modified")}
        kept = {key: value for key, value in found.items() if value is not None}
        return PollAnswer(body, kept, modified, moved + packed, response.content_type)

    async def _body(self, response: aiohttp.ClientResponse, moved: int) -> tuple[bytes, int]:
        """The body, unpacked, and how many bytes came."""
        parts, packed = [], 0
        async for part in response.content.iter_any():
            packed += len(part)
            if packed > self._max_bytes:
                # The connection goes with the rest of the body.
                response.close()
                raise PollFailed(f"more than {self._max_bytes:,} bytes", moved=moved + packed)
            parts.append(part)
        body = b"".join(parts)
        if response.headers.get("Content-Encoding", "").lower() in ("gzip", "x-gzip"):
            body = unpacked(body, self._max_bytes, moved + packed)
        return body, packed

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            # Limits are the gate's: a connector's limit would let hanging requests hold up the others.
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0)
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers=_HEADERS,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _conditions(validator: Validator) -> dict[str, str]:
    headers = {}
    if "etag" in validator:
        headers["If-None-Match"] = str(validator["etag"])
    if "modified" in validator:
        headers["If-Modified-Since"] = str(validator["modified"])
    return headers


def _header_bytes(response: aiohttp.ClientResponse) -> int:
    """Bytes of a head: each line has a colon, a blank and its end."""
    return sum(len(name) + len(value) + 4 for name, value in response.raw_headers) + 19


def _refused(response: aiohttp.ClientResponse, moved: int) -> PollFailed:
    busy = response.status in _BUSY
    wait = retry_seconds(response.headers.get("Retry-After"), time.time())
    reason = f"{response.status} {response.reason or ''}".strip()
    return PollFailed(reason, moved=moved, retry_after=wait, whole_host=busy and wait is not None)


def retry_seconds(text: str | None, now: float) -> float | None:
    """Seconds that Retry-After asks for: a number or a date; None if it says nothing that can be read.

    >>> retry_seconds("120", 0.0), retry_seconds("Thu, 01 Jan 1970 00:01:00 GMT", 10.0), retry_seconds("soon", 0.0)
    (120.0, 50.0, None)
    """
    if text is None:
        return None
    if text.strip().isdecimal():
        return min(float(text), _LONGEST_RETRY)
    date = _http_time(text)
    return None if date is None else min(max(0.0, date - now), _LONGEST_RETRY)


def _http_time(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None

"""Polls by HTTP: conditional requests, so that what has not changed costs almost nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urljoin, urlsplit

import aiohttp

from freshet.model import UserError
from freshet.sources.mirror.polling.answer import PollAnswer, PollFailed, Spend, Validator
from freshet.sources.mirror.polling.content import shown_reason
from freshet.sources.mirror.polling.hosts import AllowedHosts
from freshet.sources.mirror.polling.packed import unpacked

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_BUSY: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_HEADERS: Final = {"Accept-Encoding": "gzip", "User-Agent": "freshet"}
_LONGEST_RETRY: Final = 7 * 86_400.0


@dataclass(slots=True)
class _Traffic:
    """Bytes that the answers to one poll have brought so far, headers included."""

    bytes: int = 0


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
        traffic = _Traffic()
        try:
            return await self._follow(self.address(element), validator, spend, traffic)
        except PollFailed as failure:
            # What came before it failed was moved all the same, also a part of a body.
            failure.moved = traffic.bytes
            raise

    async def _follow(self, first: str, validator: Validator, spend: Spend, traffic: _Traffic) -> PollAnswer:
        address, own = first, self._headers
        for hop in range(self._redirects + 1):
            if hop:
                await spend()
                # What the headers tell is meant for the element's own host.
                own = self._headers if urlsplit(address).netloc == urlsplit(first).netloc else {}
            answer = await self._request(address, {**own, **_conditions(validator)}, validator, traffic)
            if isinstance(answer, PollAnswer):
                return answer
            address = answer
        raise PollFailed(f"more than {self._redirects} redirects")

    async def _request(
        self, address: str, headers: Mapping[str, str], validator: Validator, traffic: _Traffic
    ) -> PollAnswer | str:
        """An answer, or where a redirect leads to."""
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._opened().get(address, headers=headers, allow_redirects=False) as response,
            ):
                traffic.bytes += _header_bytes(response)
                if response.status in _REDIRECTS:
                    return self._next(address, response)
                return await self._answer(response, validator, traffic)
        except TimeoutError:
            raise PollFailed(f"no answer within {self._timeout:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise PollFailed(shown_reason(error)) from None

    def _next(self, address: str, response: aiohttp.ClientResponse) -> str:
        target = urljoin(address, response.headers.get("Location", ""))
        if urlsplit(target).scheme not in ("http", "https"):
            raise PollFailed(f"redirected to {target!r}, which is not HTTP")
        if urlsplit(target).netloc != urlsplit(address).netloc:
            try:
                self._allowed.check(urlsplit(target).netloc.rpartition("@")[2])
            except UserError as error:
                raise PollFailed(f"redirected: {error}") from None
        return target

    async def _answer(self, response: aiohttp.ClientResponse, validator: Validator, traffic: _Traffic) -> PollAnswer:
        modified = _http_time(response.headers.get("Last-Modified"))
        if response.status == HTTPStatus.NOT_MODIFIED:
            return PollAnswer(None, validator, modified, traffic.bytes)
        if response.status != HTTPStatus.OK:
            raise _refused(response)
        body = await self._body(response, traffic)
        return PollAnswer(body, _validator(response.headers), modified, traffic.bytes, response.content_type)

    async def _body(self, response: aiohttp.ClientResponse, traffic: _Traffic) -> bytes:
        """The body, unpacked."""
        body = bytearray()
        async for part in response.content.iter_any():
            traffic.bytes += len(part)
            body += part
            if len(body) > self._max_bytes:
                # The connection goes with the rest of the body.
                response.close()
                raise PollFailed(f"more than {self._max_bytes:,} bytes")
        if response.headers.get("Content-Encoding", "").lower() in ("gzip", "x-gzip"):
            return unpacked(bytes(body), self._max_bytes, traffic.bytes)
        return bytes(body)

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


def _validator(headers: Mapping[str, str]) -> Validator:
    """What an answer says of its content; not a time by itself that is so young that it may come once more.

    Last-Modified has whole seconds. A resource that changes twice in a second has the same one afterwards, and would
    seem unchanged for ever (RFC 9110 §8.8.2.2).

    >>> told = {"Last-Modified": "Thu, 01 Jan 1970 00:01:00 GMT", "Date": "Thu, 01 Jan 1970 00:01:00 GMT"}
    >>> _validator(told), _validator({**told, "ETag": "7"})["etag"]
    ({}, '7')
    >>> sorted(_validator({**told, "Date": "Thu, 01 Jan 1970 00:01:01 GMT"}))
    ['modified']
    """
    tag, text = headers.get("ETag"), headers.get("Last-Modified")
    found = {} if tag is None else {"etag": tag}
    sent, modified = _http_time(headers.get("Date")), _http_time(text)
    if text is not None and modified is not None and (tag or (sent or time.time()) - modified >= 1.0):
        found["modified"] = text
    return found


def _header_bytes(response: aiohttp.ClientResponse) -> int:
    """Bytes of a head: each line has a colon, a blank and its end."""
    return sum(len(name) + len(value) + 4 for name, value in response.raw_headers) + 19


def _refused(response: aiohttp.ClientResponse) -> PollFailed:
    busy = response.status in _BUSY
    wait = retry_seconds(response.headers.get("Retry-After"), time.time())
    reason = f"{response.status} {response.reason or ''}".strip()
    return PollFailed(reason, retry_after=wait, whole_host=busy and wait is not None)


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

"""A web server on this machine whose resources a test changes, and which notes every request."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Web:
    """What it serves: by path a body, or a function of the request that answers itself."""

    address: str = ""
    pages: dict[str, bytes | Callable[[Any], None]] = field(default_factory=dict)
    requests: list[tuple[float, str, dict[str, str]]] = field(default_factory=list)
    validators: bool = True
    packed: bool = False
    media: str = "application/json"

    @property
    def host(self) -> str:
        return self.address.removeprefix("http://")

    def paths(self) -> list[str]:
        return [path for _, path, _ in self.requests]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: Web

    def do_GET(self) -> None:
        self.web.requests.append((time.monotonic(), self.path, dict(self.headers.items())))
        page = self.web.pages.get(self.path)
        if page is None:
            self.answer(404, b"")
        elif callable(page):
            page(self)
        else:
            self._serve(page)

    def _serve(self, page: bytes) -> None:
        tag = f'"{hash(page)}"'
        if self.web.validators and self.headers.get("If-None-Match") == tag:
            self.answer(304, b"", {"ETag": tag})
            return
        body = gzip.compress(page) if self.web.packed else page
        headers = {"Content-Type": self.web.media}
        headers |= {"ETag": tag} if self.web.validators else {}
        headers |= {"Content-Encoding": "gzip"} if self.web.packed else {}
        self.answer(200, body, headers)

    def answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as the base class calls it
        pass


@contextmanager
def serving() -> Iterator[Web]:
    web = Web()
    handler = type("Handler", (_Handler,), {"web": web})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    web.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        server.server_close()

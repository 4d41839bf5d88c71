"""Prices of a shop: more of them change than may be asked for, so the mirror asks for those that matter.

``python examples/prices/prices.py``
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import freshet

# How many seconds each price holds. A real shop does not say so; the mirror finds out.
HOLDS = {"tea": 0.4, "coffee": 0.8, "cocoa": 2.0, "milk": 5.0, "sugar": 20.0, "salt": 600.0}
BUDGET = 3  # polls a second; four or five prices change in that time
CHANGES = 15  # enough to see something


class Shop(BaseHTTPRequestHandler):
    """A web server with a price for each item. An item that has not changed costs a 304 and no content."""

    protocol_version = "HTTP/1.1"
    opened = time.time()

    def do_GET(self) -> None:
        """Answers ``/ITEM``."""
        item = self.path.strip("/")
        if item not in HOLDS:
            self._answer(404, b"")
            return
        number = int((time.time() - self.opened) / HOLDS[item])
        tag = f'"{number}"'
        if self.headers.get("If-None-Match") == tag:
            self._answer(304, b"", tag)
        else:
            self._answer(200, b'{"offer": {"price": %.2f}}' % price(item, number), tag)

    def _answer(self, status: int, body: bytes, tag: str = "") -> None:
        self.send_response(status)
        self.send_header("ETag", tag)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the base class calls it
        """Says nothing."""


def price(item: str, number: int) -> float:
    """The price of an item after so many changes."""
    return len(item) + number % 100 / 100


@contextmanager
def open_shop() -> Iterator[str]:
    """The shop, on a free port of this machine; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def mirror(state: Path, address: str) -> freshet.App:
    """The application: a stream of price changes, and two queries that care about different items."""
    app = freshet.App("prices", state=state, master="local[2]", report=None)
    app.stream(
        "prices",
        "element string, price double, polled timestamp, changed timestamp",
        source={
            "kind": "mirror",
            "budget": BUDGET,
            "elements": [*HOLDS, "gone"],  # nobody has "gone": it fails, and the others do not wait for it
            "http": {"url": f"{address}/{{element}}"},
            "columns": {"price": "offer.price"},
            "worth": "queries",  # coffee and milk are worth 1.1, the others 0.1
            "change_every": "2 s",  # until polls say more
            "audit": 0.1,
        },
    )
    app.query("breakfast", "SELECT element, price, changed FROM prices WHERE element IN ('coffee', 'milk')", weight=1.0)
    app.query("archive", "SELECT element, price, polled FROM prices", weight=0.1)
    return app


def main() -> dict[str, object]:
    """Mirrors the shop until some changes were found; returns what the queries answered, and what the mirror says."""
    with tempfile.TemporaryDirectory() as state, open_shop() as address, mirror(Path(state), address).start() as run:
        while run.report()["mirrors"]["prices"]["changes"] < CHANGES:
            run.wait(0.2)
        told = run.report()["mirrors"]["prices"]
        run.drain()
        answers = {name: run.read(name).to_pylist() for name in ("breakfast", "archive")}
        return {**answers, "mirror": told}


if __name__ == "__main__":
    found = main()
    for query in ("breakfast", "archive"):
        rows = found[query]
        assert isinstance(rows, list)
        print(f"{query}: {len(rows)} answers")
        for row in rows[-5:]:
            print("  ", row)
    print("mirror")
    mirrored = found["mirror"]
    assert isinstance(mirrored, dict)
    for key in ("polls", "changes", "budget_used", "freshness", "freshness_audited", "failing_examples"):
        print(f"   {key}: {mirrored[key]}")

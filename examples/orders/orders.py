"""Orders and payments: two streams that belong together, and the orders that nobody paid for.

``python examples/orders/orders.py``
"""

from __future__ import annotations

import datetime as dt
import tempfile
from pathlib import Path

import freshet

PAID = """
SELECT o.id, o.customer, o.amount, p.method, p.ts AS paid_at
FROM orders [RANGE 30 MINUTES] o JOIN payments [RANGE 30 MINUTES] p ON o.id = p.order_id
"""
WITH_PAYMENT = """
SELECT o.id, o.customer, o.amount, p.order_id
FROM orders [RANGE 30 MINUTES] o LEFT JOIN payments [RANGE 30 MINUTES] p ON o.id = p.order_id
"""

NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)


def shop(state: Path) -> freshet.App:
    """The application: a payment belongs to an order if it comes within half an hour of it."""
    app = freshet.App("orders", state=state, master="local[2]")
    app.stream("orders", "ts timestamp, id int, customer string, amount double", event_time="ts", lateness="1 min")
    app.stream("payments", "ts timestamp, order_id int, method string", event_time="ts", lateness="1 min")
    app.query("paid", PAID)
    # A left join gives an order without a payment as soon as none can come any more.
    app.query("with_payment", WITH_PAYMENT)
    app.query("unpaid", "SELECT id, customer, amount FROM with_payment WHERE order_id IS NULL")
    return app


def main() -> dict[str, list[dict[str, object]]]:
    """Lets a few orders and payments come, and returns what the queries answered."""
    with tempfile.TemporaryDirectory() as state, shop(Path(state)).start() as run:
        run.push(
            "orders",
            [
                {"ts": NOON, "id": 1, "customer": "ada", "amount": 250.0},
                {"ts": NOON + dt.timedelta(minutes=1), "id": 2, "customer": "bob", "amount": 9.5},
                {"ts": NOON + dt.timedelta(minutes=2), "id": 3, "customer": "cy", "amount": 80.0},
            ],
        )
        run.push(
            "payments",
            [
                {"ts": NOON + dt.timedelta(minutes=4), "order_id": 1, "method": "card"},
                {"ts": NOON + dt.timedelta(minutes=50), "order_id": 3, "method": "transfer"},  # too late
            ],
        )
        # No more orders come for a while: say what time it is, so that the wait for payments ends.
        for stream in ("orders", "payments"):
            run.heartbeat(stream, NOON + dt.timedelta(hours=2))
        run.drain()
        return {name: run.read(name).to_pylist() for name in ("paid", "unpaid")}


if __name__ == "__main__":
    for query, rows in main().items():
        print(query)
        for row in rows:
            print("  ", row)

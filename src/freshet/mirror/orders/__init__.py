"""Orders of polling: how the polls of an element lie in time (CGM00b §4)."""

from __future__ import annotations

from typing import Final, Literal

from freshet.mirror.orders.fixed import FixedOrder
from freshet.mirror.orders.order import PollOrder
from freshet.mirror.orders.poisson import PoissonOrder
from freshet.mirror.orders.random import RandomOrder

OrderName = Literal["fixed", "random", "poisson"]

ORDERS: Final[dict[OrderName, PollOrder]] = {
    "fixed": FixedOrder(),
    "random": RandomOrder(),
    "poisson": PoissonOrder(),
}

__all__ = ["ORDERS", "FixedOrder", "OrderName", "PoissonOrder", "PollOrder", "RandomOrder"]

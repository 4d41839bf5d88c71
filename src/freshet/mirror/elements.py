"""The elements of a mirror: how often each changes, what it is worth, and what a poll of it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from freshet.model import UserError

Floats = NDArray[np.float64]

_LARGEST: Final = 1e100
"""Beyond this, and below its inverse, the products of three numbers would leave the range of floats."""


@dataclass(frozen=True, slots=True)
class Elements:
    """What the plan knows of each element; row i of every array is element i (CAR §2.2.1, §2.5.1).

    Use :meth:`of`, which checks the numbers.

    Args:
        rates: Changes per second.
        worth: Share of accesses, or any other weight; only proportions count.
        sizes: What one poll costs, in the unit of the budget.
    """

    rates: Floats
    worth: Floats
    sizes: Floats

    @classmethod
    def of(
        cls,
        rates: Sequence[float] | Floats,
        worth: Sequence[float] | Floats | None = None,
        sizes: Sequence[float] | Floats | None = None,
    ) -> Elements:
        """Checks the numbers; without worth or sizes all elements are alike.

        >>> Elements.of([1.0, 2.0]).worth
        array([1., 1.])
        >>> Elements.of([1.0, -2.0])
        Traceback (most recent call last):
        freshet.model.errors.UserError: row 1: the change rate is -2.0; it must be 0, or between 1e-100 and 1e+100
        """
        given = _floats(rates, "change rate")
        every = np.ones(len(given))
        made = cls(
            given,
            every if worth is None else _floats(worth, "worth"),
            every if sizes is None else _floats(sizes, "size"),
        )
        made.check()
        return made

    def __len__(self) -> int:
        return len(self.rates)

    def check(self) -> None:
        """Refuses numbers that no plan can be made for.

        Raises:
            UserError: A number is not finite, negative or out of range; the text names its row.
        """
        for name, values in (("worth", self.worth), ("size", self.sizes)):
            if len(values) != len(self.rates):
                raise UserError(f"there are {len(self.rates)} change rates, but {len(values)} values of {name}")
        check_column(self.rates, "change rate", zero=True)
        check_column(self.worth, "worth", zero=True)
        check_column(self.sizes, "size", zero=False)

    def total_worth(self) -> float:
        """Sum of the worth of all elements."""
        return float(self.worth.sum())


def check_column(values: Floats, name: str, *, zero: bool) -> None:
    """Refuses a column with a number that is not finite, negative or out of range, and names the row.

    >>> check_column(np.array([1.0, np.nan]), "size", zero=False)
    Traceback (most recent call last):
    freshet.model.errors.UserError: row 1: the size is nan; it must be between 1e-100 and 1e+100
    """
    fine = (values >= 1.0 / _LARGEST) & (values <= _LARGEST)
    if zero:
        fine |= values == 0.0
    if not fine.all():
        row = int(np.argmin(fine))
        wanted = "0, or between" if zero else "between"
        raise UserError(
            f"row {row}: the {name} is {float(values[row])}; it must be {wanted} {1 / _LARGEST:g} and {_LARGEST:g}"
        )


def check_budget(budget: float) -> float:
    """Refuses a budget that is not a positive number.

    >>> check_budget(0.0)
    Traceback (most recent call last):
    freshet.model.errors.UserError: the budget is 0.0; it must be a positive number
    """
    if not 0.0 < budget < np.inf:
        raise UserError(f"the budget is {budget}; it must be a positive number")
    return float(budget)


def _floats(values: Sequence[float] | Floats, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise UserError(f"the {name} must be given as one number for each element")
    return array

"""How many arguments the functions of Spark take, and of which types, as far as each argument alone decides it.

``signatures.txt`` holds it for every function of Spark 4.3; :mod:`freshet.spark.driver.signatures` made it by asking
Spark. A line is ``name counts refused``: counts as ``1``, ``1-3`` or ``2+``, and for each argument the letters of the
types that Spark refuses there, whatever the other arguments are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

import pyarrow as pa

LETTERS: Final = {
    "b": "boolean", "i": "int", "l": "bigint", "f": "double", "n": "decimal", "s": "string", "x": "binary",
    "d": "date", "t": "timestamp", "a": "array", "m": "map", "r": "struct",
}  # fmt: skip
"""By letter the type that it stands for; narrower numbers go with the int and the double."""
LOOKED_AT: Final = 3
"""Maximum number of arguments of a call whose types are checked: some functions have other forms with more."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes.

    Args:
        counts: How many arguments.
        refused: For each argument the letters of the types that are not allowed there.
        unbounded: Whether any number beyond the counts is right, too.
    """

    counts: frozenset[int]
    refused: tuple[frozenset[str], ...] = ()
    unbounded: bool = False

    def takes(self, count: int) -> bool:
        """Whether this number of arguments is right."""
        return count in self.counts or (self.unbounded and count > max(self.counts))

    @property
    def wanted(self) -> str:
        """How many arguments are right, in words.

        >>> Signature.of("1").wanted, Signature.of("1-3").wanted, Signature.of("2+").wanted, Signature.of("2,4").wanted
        ('1 argument', '1 to 3 arguments', '2 or more arguments', '2 or 4 arguments')
        """
        if self.counts == {0}:
            return "no arguments"
        text = self._counts().replace("+", " or more").replace("-", " to ").replace(",", " or ")
        return f"{text} argument{'' if text == '1' else 's'}"

    def refuses(self, place: int, count: int, kind: pa.DataType) -> bool:
        """Whether a type is surely not allowed at a place (from 0) of a call with ``count`` arguments."""
        return count <= LOOKED_AT and place < len(self.refused) and letter_of(kind) in self.refused[place]

    def text(self) -> str:
        """As a line of the file has it.

        >>> Signature(frozenset([1, 2]), (frozenset("ma"), frozenset())).text()
        '1-2 am,'
        """
        refused = ",".join("".join(letter for letter in LETTERS if letter in each) for each in self.refused)
        return f"{self._counts()} {refused}".rstrip()

    @staticmethod
    def of(text: str) -> Signature:
        """The reverse of :meth:`text`."""
        counts, _, refused = text.partition(" ")
        unbounded, numbers = counts.endswith("+"), set[int]()
        for part in counts.removesuffix("+").split(","):
            low, _, high = part.partition("-")
            numbers |= set(range(int(low), int(high or low) + 1))
        places = tuple(frozenset(place) for place in refused.split(",")) if refused else ()
        return Signature(frozenset(numbers), places, unbounded)

    def _counts(self) -> str:
        numbers = sorted(self.counts)
        if self.unbounded:
            first = next(n for n in numbers if all(more in self.counts for more in range(n, numbers[-1] + 1)))
            return ",".join([*(str(n) for n in numbers if n < first), f"{first}+"])
        if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
            return f"{numbers[0]}-{numbers[-1]}"
        return ",".join(map(str, numbers))


@cache
def signatures() -> dict[str, Signature]:
    """What every function takes, by its name in lower case.

    >>> signatures()["upper"].takes(1), signatures()["upper"].takes(2), signatures()["coalesce"].takes(7)
    (True, False, True)
    """
    lines = resources.files("freshet.sql.check").joinpath("signatures.txt").read_text().splitlines()
    return {name: Signature.of(rest) for name, _, rest in (line.partition(" ") for line in lines)}


def letter_of(kind: pa.DataType) -> str | None:
    """The letter of a type; ``z`` is a timestamp without a zone. None: it is not known, or has no letter."""
    return next((letter for letter, test in _TESTS.items() if test(kind)), None)


_TESTS: Final = {
    "b": pa.types.is_boolean,
    "i": lambda kind: kind in (pa.int8(), pa.int16(), pa.int32()),
    "l": pa.types.is_int64,
    "f": pa.types.is_floating,
    "n": pa.types.is_decimal,
    "s": pa.types.is_string,
    "x": pa.types.is_binary,
    "d": pa.types.is_date,
    "t": lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
    "z": lambda kind: pa.types.is_timestamp(kind) and kind.tz is None,
    "a": pa.types.is_list,
    "m": pa.types.is_map,
    "r": pa.types.is_struct,
}

"""Planning: which jobs the chains of a unit make, one after the other.

A chain runs in as many pieces as it has forms. Pieces that are compiled go together in one job with those that they
read; what one job gives to a later one is read from its files. Two kinds of work go beyond one task: a join that is
large goes through a shuffle, and the tuples of a large train are merged in parts up to a sliding aggregate, which then
comes a second time, to close windows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from freshet.kernels.parting import OVERHEAD, parts_pay
from freshet.kernels.shuffling import MOST_BYTES, pays
from freshet.model import Chain, Input, Train, Unit
from freshet.spark.driver.forms import Form, Forms, Stage
from freshet.spark.worker.assignment import input_key

Component = tuple[int, ...]
"""Places of chains that hang together by what one takes from another's hand."""
MOST_CHAINS: Final = 16
"""Chains of one job in Spark's own form; a wider select makes code that takes longer to generate than to run apart."""
_LATEST: Final = 2**31


@dataclass(frozen=True, slots=True)
class Limits:
    """From what size on work goes beyond one task.

    Args:
        cores: Of the cluster.
        join_bytes: Bytes that a join may look at in one task.
        part_overhead: Seconds that a second job takes.
    """

    cores: int
    join_bytes: int = MOST_BYTES
    part_overhead: float = OVERHEAD


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the chain at a place of the unit that runs in one job; pieces of a lower level run before."""

    form: Form
    place: int
    chain: Chain
    """Its nodes; inputs are trains, and places in the list of pieces."""
    level: int = 0
    parted: bool = False
    """Whether its aggregate merges tuples in parts, and closes no window."""


class Planner:
    """Makes pieces of the chains of a unit."""

    def __init__(self, unit: Unit, forms: Forms, limits: Limits) -> None:
        self._chains = unit.chains
        self._states = {state.fold: state for state in unit.states}
        self._forms, self._limits = forms, limits

    def groups(self, parts: Sequence[Component]) -> Iterator[list[Component]]:
        """Components that run together: all that are compiled, those in Spark's own form by train, and the others."""
        groups: dict[Hashable, list[Component]] = {}
        for component in parts:
            groups.setdefault(self._kind(component), []).append(component)
        for kind, group in groups.items():
            most = len(group) if isinstance(kind, str) else MOST_CHAINS
            yield from (group[first : first + most] for first in range(0, len(group), most))

    def _kind(self, component: Component) -> Hashable:
        chains = [self._chains[place] for place in component]
        forms = [form for chain in chains for form, _ in self._forms.stages(chain.nodes)]
        if "catalyst" in forms:
            return "in stages" if len(forms) > 1 else input_key(chains[0].trains[0])
        if self._parted(component) or any(map(self._is_shuffled, chains)):
            return "beyond one task"
        return "compiled"

    def pieces(self, parts: Sequence[Component]) -> list[Piece]:
        """The pieces of some components, each after those that it reads."""
        pieces: list[Piece] = []
        last: dict[int, int] = {}
        for component in parts:
            parted = self._parted(component)
            for place in component:
                chain = self._chains[place]
                cut = self._cut(chain, parted.get(place))
                inputs = tuple([last[each] if isinstance(each, int) else each for each in chain.inputs])
                for number, (form, nodes) in enumerate(cut, 1):
                    whole = len(cut) == 1 and inputs == chain.inputs
                    some = chain if whole else Chain(nodes, inputs, chain.writes if number == len(cut) else ())
                    level = 0 if whole else _level(form, inputs, pieces)
                    pieces.append(Piece(form, place, some, level, number == 1 and place in parted))
                    inputs = (len(pieces) - 1,)
                last[place] = len(pieces) - 1
        return _late(pieces)

    def _cut(self, chain: Chain, parted: int | None) -> Sequence[Stage]:
        """The stages of a chain."""
        nodes, stages = chain.nodes, self._forms.stages
        if parted is not None:
            return [("vectorised", nodes[: parted + 1]), *stages(nodes[parted:])]
        if self._is_shuffled(chain):
            return [("shuffled", nodes[:1]), *stages(nodes[1:])]
        return stages(nodes)

    def _is_shuffled(self, chain: Chain) -> bool:
        if len(chain.inputs) < 2 or not self._forms.is_shufflable(chain.nodes[0]):
            return False
        [fold] = self._forms.folds(chain.nodes[:1])
        ranges = self._states[fold].ranges
        remembered = sum(map(_bytes, ranges))
        for port, each in enumerate(chain.inputs):
            trains = list(self._trains(each))
            rows, size = sum(train.rows for train in trains), sum(map(_bytes, trains))
            others = ranges[1 - port].rows if ranges else 0
            if rows and pays(rows + others, size + remembered, self._limits.cores, self._limits.join_bytes):
                return True
        return False

    def _parted(self, component: Component) -> dict[int, int]:
        """For each chain that runs in parts up to an aggregate the place of that; all first folds do, or none."""
        if not self._states:
            return {}
        found: dict[int, int] = {}
        behind: set[int] = set()
        for place in component:
            chain = self._chains[place]
            if not behind.isdisjoint(chain.inputs):
                behind.add(place)
            elif self._forms.folds(chain.nodes):
                at = self._forms.parted_at(chain.nodes)
                if at is None:
                    return {}
                found[place] = at
                behind.add(place)
            elif self._forms.form(chain.nodes)[0] != "vectorised":
                return {}
        return found if found and self._parts_pay(found) else {}

    def _parts_pay(self, places: Iterable[int]) -> bool:
        rows = max(sum(train.rows for train in self._trains(place)) for place in places)
        if rows < self._limits.cores:
            return False
        folding = (chain.nodes for chain in self._chains if self._forms.folds(chain.nodes))
        queries = {query for nodes in folding for query in self._forms.queries(nodes)}
        return parts_pay(rows, self._limits.cores, len(queries), self._limits.part_overhead)

    def _trains(self, each: Input) -> Iterator[Train]:
        """All that comes in there, or goes into the chain at a place; no filter is looked at."""
        if isinstance(each, Train):
            yield each
        else:
            for one in self._chains[each].inputs:
                yield from self._trains(one)


def jobs(pieces: Sequence[Piece]) -> list[tuple[Form, list[int]]]:
    """The jobs of pieces, in their order, each with the places of its pieces.

    On each level there is one for all that is compiled, one for each train in Spark's own form, and one for each join
    that is shuffled.
    """
    found: dict[Hashable, tuple[Form, list[int]]] = {}
    for number in sorted(range(len(pieces)), key=lambda number: pieces[number].level):
        piece = pieces[number]
        train = input_key(piece.chain.inputs[0]) if piece.form == "catalyst" else None
        key = (piece.level, piece.form, number if piece.form == "shuffled" else train)
        found.setdefault(key, (piece.form, []))[1].append(number)
    return [
        (form, numbers[first : first + most])
        for form, numbers in found.values()
        for most in [MOST_CHAINS if form == "catalyst" else len(numbers)]
        for first in range(0, len(numbers), most)
    ]


def _waits(form: Form, source: Piece) -> bool:
    """Whether a piece that one of a form reads must have run in a job before."""
    return source.parted or not form == source.form == "vectorised"


def _level(form: Form, inputs: Sequence[Input], pieces: Sequence[Piece]) -> int:
    """The first level at which a piece can run."""
    sources = (pieces[each] for each in inputs if isinstance(each, int))
    return max((source.level + _waits(form, source) for source in sources), default=0)


def _late(pieces: list[Piece]) -> list[Piece]:
    """The same pieces. What is compiled runs with those that read it, if it can: that saves a job and a file."""
    if not any(piece.level for piece in pieces):
        return pieces
    latest = [_LATEST] * len(pieces)
    for number in reversed(range(len(pieces))):
        piece = pieces[number]
        if piece.form == "vectorised" and piece.level < latest[number] < _LATEST:
            piece = pieces[number] = replace(piece, level=latest[number])
        for each in piece.chain.inputs:
            if isinstance(each, int):
                latest[each] = min(latest[each], piece.level - _waits(piece.form, pieces[each]))
    return pieces


def _bytes(train: Train) -> int:
    return sum(segment.length for segment in train.segments)

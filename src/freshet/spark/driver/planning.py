"""Planning: which jobs the chains of a unit make, one after the other.

A chain runs in as many pieces as it has forms. Compiled pieces run in one job with the pieces that they read; a later
job reads the files of an earlier one. Two kinds of work go beyond one task. A large join goes through a shuffle. The
tuples of a large train are merged in parts up to a sliding aggregate, which then runs a second time, to close windows.
A fold whose state lies in parts by key is run by several tasks of one job. If it comes before or behind another fold,
each of them has a job of its own: their keys differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from freshet.kernels.shuffling import MOST_BYTES, JoinSize, pays
from freshet.kernels.task_split import OVERHEAD, parts_pay
from freshet.model import Chain, Input, Train, Unit
from freshet.spark.driver.forms import Form, Forms, FormStage
from freshet.spark.worker.assignment import input_key

Component = tuple[int, ...]
"""Places of connected chains: each takes tuples from another one, or gives tuples to it."""
MOST_CHAINS: Final = 16
"""Maximum number of chains of one job in Spark's own form; generating code for more takes longer than another job."""
_LATEST: Final = 2**31


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """The limits beyond which work does not stay in one task."""

    cores: int
    join_bytes: int = MOST_BYTES
    """Maximum bytes that a join reads in one task."""
    part_overhead: float = OVERHEAD
    """Seconds that a second job takes."""
    kept_bytes: int = 2**30
    """Memory in which a worker keeps states."""


@dataclass(slots=True)  # not frozen: a unit may have a thousand of them, and that would take three times as long
class Piece:
    """The part of the chain at a place of the unit that runs in one job; pieces of lower levels run first."""

    form: Form
    place: int
    chain: Chain
    """Its nodes; inputs are trains, and places in the list of pieces."""
    level: int = 0
    parted: bool = False
    """Whether its aggregate merges tuples in parts, and closes no window."""
    apart: bool = False
    """Whether those that read it run in a later job, because its tuples meet in other tasks there."""


class Planner:
    """Makes pieces of the chains of a unit."""

    def __init__(self, unit: Unit, forms: Forms, limits: TaskLimits) -> None:
        self._chains = unit.chains
        self._states = {state.fold: state for state in unit.states}
        self._forms, self._limits = forms, limits

    def groups(self, parts: Sequence[Component]) -> Iterator[list[Component]]:
        """Components that run together: all compiled ones, those in Spark's own form by train, and the others."""
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
            if len(component) == 1 and not self._states:
                [place] = component
                [(form, nodes), *more] = self._forms.stages(self._chains[place].nodes)
                if not more:  # nothing to decide, for most of the thousand chains that a unit may have
                    last[place] = len(pieces)
                    pieces.append(Piece(form, place, self._chains[place]))
                    continue
            parted, folds = self._parted(component), self._folds_apart(component)
            for place in component:
                chain = self._chains[place]
                cut = self._cut(chain, parted.get(place), folds)
                inputs = tuple([last[each] if isinstance(each, int) else each for each in chain.inputs])
                for number, (form, nodes) in enumerate(cut, 1):
                    whole = len(cut) == 1 and inputs == chain.inputs
                    ends = (chain.writes, chain.arrival) if number == len(cut) else ((), None)
                    some = chain if whole else Chain(nodes, inputs, *ends)
                    level = 0 if whole and not folds else _level(form, inputs, pieces)
                    apart = not folds.isdisjoint(nodes)
                    pieces.append(Piece(form, place, some, level, number == 1 and place in parted, apart))
                    inputs = (len(pieces) - 1,)
                last[place] = len(pieces) - 1
        return _late(pieces)

    def _cut(self, chain: Chain, parted: int | None, apart: Set[int]) -> Sequence[FormStage]:
        """The stages of a chain; of the folds that run apart, each begins a stage."""
        nodes, stages = chain.nodes, self._forms.stages
        if parted is not None:
            return [("vectorised", nodes[: parted + 1]), *stages(nodes[parted:])]
        if self._is_shuffled(chain):
            return [("shuffled", nodes[:1]), *stages(nodes[1:])]
        if apart.isdisjoint(nodes[1:]):
            return stages(nodes)
        firsts = [0, *(at for at, node in enumerate(nodes) if at and node in apart), len(nodes)]
        return [stage for first, end in pairwise(firsts) for stage in stages(nodes[first:end])]

    def _folds_apart(self, component: Component) -> frozenset[int]:
        """The folds that run in different jobs: there are several, and the state of one lies in parts."""
        nodes = [node for place in component for node in self._chains[place].nodes] if self._states else []
        folds = {node: name for node in nodes for name in self._forms.folds((node,))}
        split = len(folds) > 1 and any(self._states[name].parts > 1 for name in folds.values())
        return frozenset(folds) if split else frozenset()

    def _is_shuffled(self, chain: Chain) -> bool:
        [first] = self._forms.operators(chain.nodes[:1])
        if first.split != "keys":
            return False
        [fold] = self._forms.folds(chain.nodes[:1])
        if self._is_split(fold):
            return False
        ranges = self._states[fold].ranges
        limits, remembered = self._limits, sum(map(_bytes, ranges))
        for port, each in enumerate(chain.inputs):
            trains = list(self._trains(each))
            rows = sum(train.rows for train in trains)
            others = sum(each.rows for other, each in enumerate(ranges) if other != port)
            size = JoinSize(rows, others, sum(map(_bytes, trains)) + remembered)
            if rows and pays(size, limits.cores, limits.kept_bytes, limits.join_bytes):
                return True
        return False

    def _is_split(self, fold: str) -> bool:
        """Whether the state of a fold lies in parts, or will after the unit: then each task has its own keys."""
        return self._states[fold].parts > 1 or self._states[fold].is_resplit

    def _parted(self, component: Component) -> dict[int, int]:
        """For each chain that runs in parts, the place of its aggregate. All first folds run in parts, or none does."""
        if not self._states:
            return {}
        found: dict[int, int] = {}
        behind: set[int] = set()
        for place in component:
            chain = self._chains[place]
            if not behind.isdisjoint(chain.inputs):
                behind.add(place)
            elif folds := self._forms.folds(chain.nodes):
                at = self._forms.parted_at(chain.nodes)
                if at is None or any(map(self._is_split, folds)):
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
        """The trains behind an input, as if no filter dropped any tuple."""
        if isinstance(each, Train):
            yield each
        else:
            for one in self._chains[each].inputs:
                yield from self._trains(one)


def jobs(pieces: Sequence[Piece]) -> list[tuple[Form, list[int]]]:
    """The jobs of pieces, in their order, each with the places of its pieces.

    Each level has one job for all compiled pieces, one for each train in Spark's own form, and one for each shuffled
    join.
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
    """Whether a piece of a form must wait until an earlier job has run the piece that it reads."""
    return source.parted or source.apart or not form == source.form == "vectorised"


def _level(form: Form, inputs: Sequence[Input], pieces: Sequence[Piece]) -> int:
    """The first level at which a piece can run."""
    sources = (pieces[each] for each in inputs if isinstance(each, int))
    return max((source.level + _waits(form, source) for source in sources), default=0)


def _late(pieces: list[Piece]) -> list[Piece]:
    """Moves compiled pieces to the level of their readers if possible: that saves a job and a file."""
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

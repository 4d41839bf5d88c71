"""Slope and slack in buckets: nearly the same order, at constant cost."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import attrgetter, itemgetter
from typing import ClassVar, Final

import numpy as np

from freshet.model import UserError, View
from freshet.policies.aurora.bucket_table import BucketTable, Floats, Grid, Numbers, Ranges, ranges_of
from freshet.policies.aurora.calendar_queue import CalendarQueue
from freshet.policies.aurora.schedule import LEVEL, SchedulePolicy, SizeOrAuto
from freshet.policies.aurora.trains import Trains
from freshet.policies.ratio.number_set import NumberSet

_MANY: Final = 96
"""From this number of operators to place on, arrays are faster than a loop."""
_DAYS: Final = 8
"""Number of calendar days in a slack bucket: the precision with which a transition is timed."""

_MEAN_ARRIVAL: Final = attrgetter("mean_arrival")
_PENDING: Final = attrgetter("pending")


class Bucketing(SchedulePolicy):
    """Slope and slack, approximately: operators lie in buckets of about equal slope and slack (CAR §4.4.2).

    The latencies at which a curve moves to another bucket are known beforehand. So an operator is placed when its queue
    changes, together with the day on which it must move on; a calendar queue finds the days that have come. The cost of
    a decision depends on how many operators are placed and taken, not on how many wait. Within a bucket, operators keep
    the order in which they came: with one bucket, this is round robin.

    Args:
        size: N, the number of operators in a schedule.
        partitions: Number of parts of the range of slopes (g) and of the range of slacks (s).

    >>> policy = Bucketing(300, 50)
    >>> policy.size, policy.partitions
    (300, 50)
    """

    name: ClassVar[str] = "bucketing"
    ranks_all: ClassVar[bool] = False
    rule = "first bucket of slope and slack"
    word: ClassVar[int] = 64
    """Number of buckets that one look passes if they are empty: a bit each of a machine word."""

    def __init__(self, size: SizeOrAuto = 10, partitions: int = 20, *, trains: Trains | None = None) -> None:
        super().__init__(size, trains=trains)
        if partitions < 1:
            raise UserError(f"{self.name}: {partitions} partitions are none: use 1 or more")
        self.partitions = partitions
        self._news: list[Iterable[int]] = []
        self._buckets: dict[int, dict[int, None]]
        self._used: NumberSet
        self._place: dict[int, int]
        self._days: CalendarQueue
        self._due: dict[int, list[int]]
        self._day_of: dict[int, int]
        self._empty()
        self._range_of: list[Ranges] = []
        self._stale = True
        self._rest: Floats
        self._rest_version = -1

    # Notices

    def arrived(self, view: View, operators: Iterable[int]) -> None:
        """Tuples came into the queues of these operators."""
        self._news.append(operators)

    def completed(self, view: View, operators: Iterable[int]) -> None:
        """These operators ran or failed; those with waiting tuples come back."""
        super().completed(view, operators)
        self._news.append(operators)

    def changed(self, view: View, query: int) -> None:
        """A query changed: curves may have come or gone."""
        super().changed(view, query)
        self._stale = True

    # Decisions

    def weighs(self, view: View, operator: int) -> dict[str, float]:
        """Its bucket, with the least slope and the least slack of that bucket."""
        bucket = self._place.get(operator)
        if bucket is None:
            bucket = self._look_up(view, operator)[0]
        figures: dict[str, float] = {"bucket": bucket, "waiting": view.operators[operator].pending}
        return figures if bucket == self.grid.late else figures | self.grid.least(bucket)

    def order(self, view: View) -> Iterator[int]:
        """The operators, bucket by bucket."""
        bucket = self._used.following(0)
        while bucket is not None:
            yield from self._buckets[bucket]
            bucket = self._used.following(bucket + 1)

    def ranked(self, view: View) -> Sequence[int]:
        """Operators bucket by bucket, the steepest and most urgent first."""
        if self._stale:
            self._lay_out(view)
        if len(view.ready) <= self.size:
            return self._all_in_order(view)
        chosen = self._place_and_choose(view)
        if not chosen:
            # No notice told of them: they were held, or could not be run.
            self._news.append(view.ready)
            chosen = self._place_and_choose(view)
        return chosen

    def _all_in_order(self, view: View) -> Sequence[int]:
        """Orders operators that all fit into the schedule, so that none needs to wait in a bucket."""
        numbers = list(view.ready)
        if len(numbers) < _MANY:
            buckets = self._buckets_of(view, numbers)
            order = sorted(range(len(numbers)), key=buckets.__getitem__)
        else:
            found = self._look_up_many(view, numbers)[0]
            buckets, order = found.tolist(), np.argsort(found, kind="stable").tolist()
        chosen = [numbers[place] for place in order]
        self.operations += 1 + 2 * len(numbers) + len(set(buckets)) + self.grid.buckets // self.word
        if self._place:
            self._empty()
        self._news = [chosen]
        return chosen

    def _place_and_choose(self, view: View) -> list[int]:
        dues = self._take_news(view)
        chosen = self._traverse(view)
        # An operator that is served now needs no day on which to move on.
        for number, due in dues:
            if due < math.inf and number in self._place:
                self._note(number, due)
        return chosen

    def _lay_out(self, view: View) -> None:
        """Computes the tables and places everything again."""
        curves = [operator.promises.curve or LEVEL for operator in view.operators]
        numbers = {curve: number for number, curve in enumerate(dict.fromkeys(curves))}
        self.grid = Grid.over(list(numbers), self.partitions, self.partitions)
        ranges = [ranges_of(curve, self.grid) for curve in numbers]
        classes = [numbers[curve] for curve in curves]
        self._class_of, self._range_of = np.array(classes, dtype=np.int64), [ranges[each] for each in classes]
        self._table = BucketTable(ranges)
        self._day = self.grid.slack_width / _DAYS
        self._empty()
        self._news.append(view.ready)
        self._stale = False

    def _empty(self) -> None:
        self._buckets, self._used, self._place = {}, NumberSet(), {}
        self._days, self._due, self._day_of = CalendarQueue(), {}, {}

    def _take_news(self, view: View) -> Iterable[tuple[int, float]]:
        """Places the operators whose queues changed or whose day has come; returns when each must move on."""
        news, self._news = self._news, []
        operators = dict.fromkeys(chain.from_iterable(news))
        operators.update(dict.fromkeys(self._come_due(view.now)))
        ready = view.ready
        placed = [number for number in operators if number in ready]
        if len(placed) != len(operators):
            # They run, are held or are empty: a notice will bring them back.
            for number in operators.keys() - set(placed):
                self._leave(number)
        self.operations += len(placed)
        return self._put_by_loop(view, placed) if len(placed) < _MANY else self._put_by_array(view, placed)

    def _come_due(self, now: float) -> list[int]:
        """Operators whose day has come."""
        came: list[int] = []
        while (best := self._days.best()) is not None and best[0] * self._day < now:
            day = best[0]
            self._days.remove(day)
            came += [number for number in self._due.pop(day) if self._day_of.get(number) == day]
        return came

    def _put_by_loop(self, view: View, numbers: Sequence[int]) -> Iterable[tuple[int, float]]:
        dues = []
        for number in numbers:
            bucket, due = self._look_up(view, number)
            self._put(number, bucket)
            dues.append((number, due))
        return dues

    def _put_by_array(self, view: View, numbers: Sequence[int]) -> Iterable[tuple[int, float]]:
        buckets, dues = self._look_up_many(view, numbers)
        for number, bucket in zip(numbers, buckets.tolist(), strict=True):
            self._put(number, bucket)
        return zip(numbers, dues.tolist(), strict=True)

    def _look_up(self, view: View, number: int) -> tuple[int, float]:
        """The bucket of an operator now, and the time at which it leaves that bucket."""
        operator = view.operators[number]
        since = operator.mean_arrival - self.computation(view, number)
        bucket, end = self._range_of[number].look_up(view.now - since)
        return bucket, since + end

    def _buckets_of(self, view: View, numbers: Sequence[int]) -> list[int]:
        """Only the buckets, for few operators: the hottest loop of a lightly loaded system."""
        if not self.push:
            return [self._look_up(view, number)[0] for number in numbers]
        every, now, ranges, rest = view.operators, view.now + view.overhead(), self._range_of, self.costs.values
        try:
            return [
                (held := ranges[number])[1][
                    bisect_left(held[0], now - (each := every[number]).mean_arrival + each.pending * rest[number])
                ]
                for number in numbers
            ]
        except KeyError:
            self.costs.look_up(view, numbers)
            return self._buckets_of(view, numbers)

    def _look_up_many(self, view: View, numbers: Sequence[int]) -> tuple[Numbers, Floats]:
        """Buckets and times for many operators. Only reading the view takes a loop, which runs in C."""
        count = len(numbers)
        places = np.array(numbers)
        operators = itemgetter(*numbers)(view.operators)
        since = np.fromiter(map(_MEAN_ARRIVAL, operators), np.float64, count)
        if self.push:
            work = np.fromiter(map(_PENDING, operators), np.float64, count) * self._rest_costs(view, places)
            since -= work + view.overhead()
        else:
            since -= np.fromiter((self.computation(view, number) for number in numbers), np.float64, count)
        buckets, ends = self._table.look_up(self._class_of[places], view.now - since)
        return buckets, since + ends

    def _rest_costs(self, view: View, places: Numbers) -> Floats:
        """C of operators, kept in an array until the costs change."""
        if self._rest_version != self.costs.version:
            self._rest, self._rest_version = np.full(len(view.operators), np.nan), self.costs.version
        found: Floats = self._rest[places]
        if np.isnan(found).any():
            for number in places[np.isnan(found)].tolist():
                self._rest[number] = self.costs.of(view, number)
            found = self._rest[places]
        return found

    def _put(self, number: int, bucket: int) -> None:
        old = self._place.get(number)
        if old == bucket:
            return
        if old is not None:
            del self._buckets[old][number]
        members = self._buckets.get(bucket)
        if not members:
            members = self._buckets[bucket] = {}
            self._used.add(bucket)
        members[number] = None
        self._place[number] = bucket

    def _note(self, number: int, due: float) -> None:
        day = math.ceil(due / self._day)
        if self._day_of.get(number) == day:
            return
        self._day_of[number] = day
        members = self._due.get(day)
        if members is None:
            self._due[day] = [number]
            self._days.put(day, -day)
        else:
            members.append(number)

    def _leave(self, number: int) -> None:
        bucket = self._place.pop(number, None)
        if bucket is not None:
            del self._buckets[bucket][number]
        self._day_of.pop(number, None)

    def _traverse(self, view: View) -> list[int]:
        chosen: list[int] = []
        used, passed, visited = self._used, self.grid.buckets, 0
        bucket = used.following(0)
        while bucket is not None:
            members = self._buckets[bucket]
            visited += 1
            if not members:
                used.discard(bucket)
            chosen += islice((number for number in members if number in view.ready), self.size - len(chosen))
            if len(chosen) == self.size:
                passed = bucket + 1
                break
            bucket = used.following(bucket + 1)
        # Empty buckets are bits of words: a word is one look.
        self.operations += 1 + visited + passed // self.word + len(chosen)
        for number in chosen:
            self._leave(number)
        # An operator that does not start is still ready next time.
        self._news.append(chosen)
        return chosen


class BucketingPush(Bucketing):
    """Bucketing with push-through (CAR §4.5.1): the policy for very many queries."""

    name: ClassVar[str] = "bucketing-push"
    push: ClassVar[bool] = True
    auto: ClassVar[tuple[str, ...]] = ("size",)


class BucketingFused(BucketingPush):
    """Bucketing with push-through, a schedule as one step."""

    name: ClassVar[str] = "bucketing-fused"
    fuse: ClassVar[bool] = True
    auto: ClassVar[tuple[str, ...]] = ()


POLICIES: Final = (Bucketing, BucketingPush, BucketingFused)

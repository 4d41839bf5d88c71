"""Dividing memory among the joins by ordered keys of an application."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from freshet.app.declared.join_memory import budgets_of
from freshet.log import Log
from freshet.model import Query, UserError
from freshet.model.join_budget import JoinBudget, divided
from freshet.model.promises.level_settings import WhenFull
from freshet.model.units import bytes_text


class MemoryDivider:
    """Gives each join by ordered keys its part of the memory. A part decides no answer by itself: what joins let go
    because of it is in the log.

    Args:
        log: The log, which reckons what they remember.
        schemas: Columns of streams.
        total: Bytes that the application has; None: it has no bound.
        when: What happens to a query that does not fit.
        notice: Is told of streams whose marks a new bound has raised: what rests may go on.
    """

    def __init__(
        self,
        log: Log,
        schemas: Mapping[str, pa.Schema],
        total: int | None,
        when: WhenFull,
        notice: Callable[[str], None],
    ) -> None:
        self._log, self._schemas, self._total, self._when = log, schemas, total, when
        self._notice = notice
        self.budgets: dict[str, JoinBudget] = {}
        """What each join has, by its name."""
        self._queries: dict[str, Query] = {}

    def divide(self, queries: Mapping[str, Query]) -> None:
        """Gives memory to the joins of these queries, and takes it from all others."""
        self._queries = dict(queries)
        found = {each.join: each for each in self._budgets(queries)}
        for join in self.budgets.keys() - found.keys():
            self._log.take_memory(join)
        for join, budget in found.items():
            if self.budgets.get(join) != budget:
                self._log.give_memory(budget, self._starts(budget))
                for stream in budget.concerned:
                    self._notice(stream)
        self.budgets = found

    def _starts(self, budget: JoinBudget) -> dict[str, int]:
        """Where the join of a query goes on to read its streams."""
        query, starts = budget.join.partition(".")[0], dict[str, int]()
        for reader in self._log.readers().values():
            if reader.owner == query and reader.kind == "operator" and reader.stream in budget.concerned:
                starts[reader.stream] = min(reader.next, starts.get(reader.stream, reader.next))
        return starts

    def check(self, queries: Mapping[str, Query]) -> None:
        """Refuses queries whose joins remember more than they may have, by what is known of their streams, if that is
        asked for."""
        if self._when != "refuse":
            return
        for budget in self._budgets(queries):
            needed = self._log.needed_bytes(budget)
            if needed > budget.size:
                raise UserError(
                    f"{budget.join} must remember {bytes_text(needed)} now, and its join_memory is "
                    f'{bytes_text(budget.size)}: give it more, or set admission = "degrade", and it lets tuples go'
                )

    def admit(self, query: Query) -> None:
        """Refuses a query that is to be added, if it does not fit beside the others."""
        self.check({**self._queries, query.name: query})

    def _budgets(self, queries: Mapping[str, Query]) -> list[JoinBudget]:
        bounded = {name: query for name, query in queries.items() if budgets_of(query, self._schemas, 0)}
        own = {name: query.join_memory for name, query in bounded.items() if query.join_memory is not None}
        others = [name for name in bounded if name not in own]
        left = 0 if self._total is None else self._total - sum(own.values())
        needs = {name: sum(map(self._log.needed_bytes, budgets_of(bounded[name], self._schemas, 0))) for name in others}
        sizes = own | divided(max(0, left), needs)
        return [each for name, query in bounded.items() for each in budgets_of(query, self._schemas, sizes[name])]

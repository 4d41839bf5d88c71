"""A chain as SQL expressions over the columns of its input, for the catalyst form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlglot

from freshet.model import ARRIVAL, Operator
from freshet.sql import error_count, flatten, safe, what_raised


@dataclass(frozen=True, slots=True)
class ChainSql:
    """Predicates in order, output columns, and for each operator an expression that counts its evaluation errors.

    ``counts`` are (lowest stage at which a tuple reaches the operator, expression). An operator answers for its own
    expressions only: those of earlier operators appear in their safe form, which has no errors.
    """

    predicates: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    counts: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, operators: Sequence[Operator], columns: Sequence[str]) -> ChainSql:
        """The expressions of a chain whose input has these columns."""
        tamed = [operator.rewritten(safe) for operator in operators]
        flat = flatten(tamed, columns)
        counts = []
        stage = 0
        for index, operator in enumerate(operators):
            own = flatten([*tamed[:index], operator], columns)
            filters = operator.keeps is not None
            texts = own.predicates[-1:] if filters else [text for _, text in own.columns]
            counts += [(stage, count) for count in map(error_count, texts) if count.strip("()") != "0"]
            stage += filters
        outputs = tuple((name, text) for name, text in flat.columns if name != ARRIVAL)
        return cls(flat.predicates, outputs, tuple(counts))

    def stage(self) -> str:
        """How many predicates a tuple passes, in order; predicates after the first failure are not evaluated."""
        tests = " ".join(
            f"WHEN NOT coalesce({predicate}, false) THEN {number}" for number, predicate in enumerate(self.predicates)
        )
        passed = len(self.predicates)
        return f"CASE {tests} ELSE {passed} END" if tests else str(passed)

    def errors(self, stage: str) -> str:
        """How many evaluation errors a tuple makes on its way, given the column that holds its stage."""
        terms = [f"CASE WHEN {stage} >= {reached} THEN {count} ELSE 0 END" for reached, count in self.counts]
        return " + ".join(terms) or "0"

    def raised(self, stage: str) -> str | None:
        """What the user's own functions raised where evaluation errors were counted, for one tuple; NULL: nothing.
        None if it calls no such function."""
        found = [
            f"CASE WHEN {stage} >= {reached} THEN {raised} END"
            for reached, count in self.counts
            for raised in what_raised(count)
        ]
        return f"coalesce({', '.join(found)})" if found else None

    def columns_used(self, columns: Sequence[str]) -> set[str]:
        """The input columns that are needed. A name counts anywhere in a text, because a field looks like a column."""
        names = {token.text.lower() for token in sqlglot.tokenize(self.all_text(), read="spark")}
        return {name for name in columns if name.lower() in names}

    def all_text(self) -> str:
        """All its expressions, to look for names in."""
        return " ".join([*self.predicates, *(text for _, text in self.columns), *(text for _, text in self.counts)])

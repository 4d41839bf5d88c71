"""The projection in front of a fold: plain columns with names."""

from __future__ import annotations

from sqlglot import exp

from freshet.sql.text import to_sql


class Inputs:
    """Collects the columns that a fold reads; equal expressions become one column.

    A column keeps its name, anything else is called ``__c1``, ``__c2`` and so on.
    """

    def __init__(self) -> None:
        self._columns: dict[str, tuple[str, exp.Expr]] = {}

    @property
    def columns(self) -> tuple[tuple[str, exp.Expr], ...]:
        """``(name, expression)`` in the order in which they were asked for."""
        return tuple(self._columns.values())

    def name(self, value: exp.Expr) -> str:
        """The name of the column with this value."""
        text = to_sql(value).lower() if isinstance(value, exp.Column) else to_sql(value)
        if text not in self._columns:
            computed = sum(1 for name, each in self._columns.values() if not isinstance(each, exp.Column))
            name = value.name if isinstance(value, exp.Column) else f"__c{computed + 1}"
            self._columns[text] = (name, value.copy())
        return self._columns[text][0]

    def copy(self) -> Inputs:
        """Another one with the same columns."""
        other = Inputs()
        other._columns = dict(self._columns)
        return other

    def add(self, columns: tuple[tuple[str, exp.Expr], ...]) -> None:
        """Takes hidden columns in under their own names."""
        for _, value in columns:
            self.name(value)

"""The stored form of operators: plain values for JSON, by the names of fields, each with the tag of its kind. A field
that a kind gets after today is declared with :func:`~freshet.model.plain_values.later`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from freshet.model.operators.base import Operator
from freshet.model.operators.filter import Filter
from freshet.model.operators.fold import Call, Lifetime
from freshet.model.operators.join import Join
from freshet.model.operators.last import Last
from freshet.model.operators.lookup import Lookup
from freshet.model.operators.marked import Marked
from freshet.model.operators.moving import Moving
from freshet.model.operators.own import Own, OwnFold
from freshet.model.operators.panes import Panes
from freshet.model.operators.project import Project
from freshet.model.operators.union import Union
from freshet.model.plain_values import named

KINDS: Final[dict[str, type[Operator]]] = {
    each.tag: each for each in (Filter, Project, Union, Lookup, Own, OwnFold, Panes, Moving, Join, Last, Marked)
}
"""Operators by the tag of their stored form; a new kind is entered here."""

_TAG: Final = "operator"
_PARTS: Final[dict[str, type]] = {"calls": Call, "validity": Lifetime}
"""Fields that hold records."""


def fields_of(operator: Operator) -> dict[str, Any]:
    """An operator as plain values.

    >>> fields_of(Filter("q.filter_1", "v > 1"))
    {'operator': 'filter', 'name': 'q.filter_1', 'predicate': 'v > 1'}
    """
    fields = named(operator)
    if isinstance(operator, Lookup):
        fields["operators"] = [fields_of(each) for each in operator.operators]
    return {_TAG: operator.tag, **fields}


def operator_of(fields: Mapping[str, Any]) -> Operator:
    """The operator of plain values.

    >>> panes = Panes("q.panes", Lifetime("ts", 60), 60, ("k",), (Call("n", "count"),))
    >>> operator_of(fields_of(panes)) == panes
    True
    """
    values = {name: _value(name, value) for name, value in fields.items() if name != _TAG}
    return KINDS[fields[_TAG]](**values)


def _value(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_value(name, each) for each in value)
    if isinstance(value, Mapping):
        return operator_of(value) if _TAG in value else _PARTS[name](**value)
    return value

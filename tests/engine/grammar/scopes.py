"""What a condition or an item may name."""

from __future__ import annotations

from collections.abc import Sequence

from tests.engine.grammar.forms import Member, Shape, Term
from tests.engine.grammar.shapes import member_shape
from tests.engine.grammar.terms import COMPARED


def scope_of(members: Sequence[Member]) -> list[Term]:
    """All columns of members; of one member without its name."""
    return [
        Term(text, text, kind, f"{member.alias}.{name}")
        for member in members
        for name, kind in member_shape(member).columns
        for text in [name if len(members) == 1 else f"{member.alias}.{name}"]
        if kind not in ("rough", "near", "bool")
    ]


def is_readable(shape: Shape) -> bool:
    """Whether it has a column that can be compared."""
    return any(kind in COMPARED for _, kind in shape.columns)


def events_of(members: Sequence[Member]) -> set[str]:
    """The columns that are event times, with the names of their members."""
    return {f"{member.alias}.{name}" for member in members for name in member_shape(member).events}


def own_name(column: Term) -> str:
    """The name of a column without that of its member."""
    return str(column.column).rpartition(".")[2]

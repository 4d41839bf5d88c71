"""Operators (boxes): one file for each kind, which answers for itself what others ask.

Expressions are Spark SQL text over the columns of the input. Text is what both physical forms start from: Spark parses
it for the catalyst form, the kernels compile it for the vectorised form, and two operators are the same work exactly if
their texts are equal.
"""

from freshet.model.operators.base import Operator, Time, Typer, earliest, latest
from freshet.model.operators.filter import Filter
from freshet.model.operators.fold import AggregateFunction, Call, Fold, Lifetime
from freshet.model.operators.join import FROM, UNTIL, Join
from freshet.model.operators.last import Last
from freshet.model.operators.lookup import Lookup
from freshet.model.operators.marked import Marked
from freshet.model.operators.moving import Moving
from freshet.model.operators.own import Own, OwnFold
from freshet.model.operators.panes import WINDOW_END, WINDOW_START, Panes
from freshet.model.operators.project import Project
from freshet.model.operators.union import Union

__all__ = [
    "FROM",
    "UNTIL",
    "WINDOW_END",
    "WINDOW_START",
    "AggregateFunction",
    "Call",
    "Filter",
    "Fold",
    "Join",
    "Last",
    "Lifetime",
    "Lookup",
    "Marked",
    "Moving",
    "Operator",
    "Own",
    "OwnFold",
    "Panes",
    "Project",
    "Time",
    "Typer",
    "Union",
    "earliest",
    "latest",
]

"""Code of one's own that an application declares: functions, and operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from freshet.app.declared.functions import Declaration, declare_function, declare_operator, packaged_function
from freshet.model.functions import Function, OwnOperator
from freshet.sql import OwnFunctions

if TYPE_CHECKING:
    from freshet.spark.session.embedded import SparkSession


class OwnCode:
    """What an application's queries may call: its own functions and operators, and the functions of the session that it
    was given."""

    def __init__(self, session: SparkSession | None = None) -> None:
        self.session = session
        self.functions: dict[str, Function] = {}
        """By name in lower case."""
        self.operators: dict[str, OwnOperator] = {}
        """By name in lower case."""

    def function(
        self,
        name: str,
        what: Callable[..., Any] | str,
        takes: str | None = None,
        *,
        returns: str | None = None,
        version: str | None = None,
    ) -> None:
        """Declares a function that queries may call: one in Python, or a SQL expression.

        A Python function gets Arrow arrays of one length, with NULLs as nulls, and returns an Arrow array of that
        length. Each value must depend on the arguments of its row alone: the function is called with any number of rows
        at a time, in any order, and again after a crash. A row for which it raises is an evaluation error.

        Args:
            name: How queries call it.
            what: The function, or the expression, which is put in the place of the call.
            takes: Types of the arguments: ``"double, string"``; of an expression with names. None: what
                :func:`freshet.function` said.
            returns: Type of the value; of an expression what Spark makes of it, if not given.
            version: Change it when values change: queries that call it then start anew. None: a hash of its content.

        >>> import pyarrow.compute as pc
        >>> from freshet import App
        >>> app = App("monitor")
        >>> app.stream("packets", "host string, size int")
        >>> app.function("site", lambda host: pc.utf8_slice_codeunits(host, 0, 3), "string", returns="string")
        >>> app.function("kilobytes", "x / 1024", "x double")
        >>> app.query("large", "SELECT site(host) AS site FROM packets WHERE kilobytes(size) > 1")
        """
        given = Declaration(takes, returns, version)
        self.functions[name.lower()] = declare_function(name, what, given, self.functions)

    def operator(
        self,
        name: str,
        what: Any,
        *,
        takes: str | None = None,
        returns: str | None = None,
        time: str | None = None,
        version: str | None = None,
    ) -> None:
        """Declares an operator that queries name in FROM: a Python function that makes rows of each tuple, or a class
        (or an object) that also remembers rows.

        A function gets an Arrow batch with the columns that it takes, and the constants that the query gives it. It
        returns a batch and, for each row of that, the number of its tuple in the first batch; rows come in the order of
        their tuples. What it makes of a tuple must depend on nothing else.

        An operator that remembers is a :class:`~freshet.kernels.folds.own.Memorable`: it has ``states`` and a method
        ``run``.

        Args:
            name: How queries call it.
            what: The function, the class or the object.
            takes: Columns of the stream that it reads, as Spark DDL. None: what :func:`freshet.operator` said.
            returns: Columns that it outputs, as Spark DDL.
            time: What becomes of event time. ``keep``: a row has that of its tuple; this is the default, and only for
                functions. ``column:X``: the column X holds it. ``none``: rows have none, and no window can go by it.
            version: Change it when the rows change: queries that name it then start anew. None: a hash of its content.

        >>> import pyarrow.compute as pc
        >>> from freshet import App
        >>> import pyarrow as pa
        >>> def words(batch):
        ...     parts = pc.split_pattern(batch["text"], " ")
        ...     return pa.record_batch({"word": pc.list_flatten(parts)}), pc.list_parent_indices(parts)
        >>> app = App("monitor")
        >>> app.stream("lines", "host string, text string")
        >>> app.operator("words", words, takes="text string", returns="word string")
        >>> app.query("errors", "SELECT word FROM words(lines) WHERE word LIKE 'E%'")
        >>> app.check()
        []
        """
        given = Declaration(takes, returns, version, time)
        self.operators[name.lower()] = declare_operator(name, what, given, self.taken())

    def names(self) -> dict[str, str]:
        """What is declared besides code, with its kind."""
        return {}

    def taken(self) -> dict[str, str]:
        """All names that FROM may have, with their kinds."""
        return self.names() | {each.name: "operator" for each in self.operators.values()}

    def own_functions(self) -> OwnFunctions:
        """What queries may call besides Spark's functions."""
        return OwnFunctions(self.functions, packaged_function, self._knows, self.operators)

    def _knows(self, function: str) -> bool:
        """Whether the session that was given has a function."""
        return self.session is not None and bool(self.session.catalog.functionExists(function))

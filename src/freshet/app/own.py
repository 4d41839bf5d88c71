"""Code of one's own that an application declares: functions, and operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from freshet.app.functions import Declaration, declare_function, declare_operator, packaged_function
from freshet.model.functions import Function, RowWise
from freshet.sql import OwnFunctions

if TYPE_CHECKING:
    from freshet.spark.session.embedded import SparkSession


class OwnCode:
    """What an application's queries may call.

    Args:
        session: The session that was given, whose functions they may call, too.
    """

    def __init__(self, session: SparkSession | None = None) -> None:
        self.session = session
        self.functions: dict[str, Function] = {}
        """By name in lower case."""
        self.operators: dict[str, RowWise] = {}
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
        length. It must depend on nothing but its arguments, row by row: it is called with as many rows at a time as
        there are, in any order, and again after a crash. A row for which it raises is an evaluation error.

        Args:
            name: How queries call it.
            what: The function, or the expression, which is put in the place of the call.
            takes: Types of the arguments: ``"double, string"``; of an expression with names. None: what
                :func:`freshet.function` said.
            returns: Type of the value; of an expression what Spark makes of it, if not given.
            version: Say another one when its values change: queries that call it then start anew. None: a hash of its
                source.

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
        what: Callable[..., Any],
        *,
        takes: str,
        returns: str,
        time: str = "keep",
        version: str | None = None,
    ) -> None:
        """Declares an operator that queries name in FROM: a Python function that makes rows of each tuple.

        It gets an Arrow batch with the columns that it takes, and the constants that the query gives it. It returns a
        batch and, for each row of that, the number of the tuple in the first batch that the row was made of; rows come
        in the order of their tuples. What it makes of a tuple must depend on nothing else.

        Args:
            name: How queries call it.
            what: The function.
            takes: Columns of the stream that it reads, as Spark DDL.
            returns: Columns that it gives out, as Spark DDL.
            time: What becomes of event time. ``keep``: a row has that of its tuple. ``column:X``: so it has, and the
                column X gives it out. ``none``: it has none, so that no window can go by it.
            version: Say another one when its rows change: queries that name it then start anew. None: a hash of its
                source.

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
        self.operators[name.lower()] = declare_operator(name, what, takes, returns, time, version, self.operators)

    def own_functions(self) -> OwnFunctions:
        """What queries may call besides Spark's functions."""
        return OwnFunctions(self.functions, packaged_function, self._knows, self.operators)

    def _knows(self, function: str) -> bool:
        """Whether the session that was given has a function."""
        return self.session is not None and bool(self.session.catalog.functionExists(function))

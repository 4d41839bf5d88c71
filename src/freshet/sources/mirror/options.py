"""The options of a mirror."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from freshet.model import UserError, parse_bytes
from freshet.sources.mirror.polling.content import ContentFormat
from freshet.sources.options import Duration, LocalPath, Options


def _bytes(value: Any) -> Any:
    if not isinstance(value, str | int) or isinstance(value, bool):
        return value
    try:
        return parse_bytes(value)
    except UserError as error:
        raise ValueError(str(error)) from None


_LARGEST: Final = 1e50
"""Products of numbers up to this one, and down to its inverse, stay within the range of a plan."""


def usable_number(value: float) -> float:
    """Refuses a worth or a rate that no plan can be made with.

    >>> usable_number(1e-60)
    Traceback (most recent call last):
    ValueError: must be 0, or between 1e-50 and 1e+50
    """
    if value != 0.0 and not 1.0 / _LARGEST <= value <= _LARGEST:
        raise ValueError(f"must be 0, or between {1.0 / _LARGEST:g} and {_LARGEST:g}")
    return value


UsableNumber = Annotated[float, AfterValidator(usable_number)]
ByteCount = Annotated[int, BeforeValidator(_bytes), Field(gt=0)]
"""Bytes, given as a number or as text such as ``"1 MB"``."""
_SPENT: Final = 0.99
"""Share of the budget that is spent: a request over a connection that the other side has just closed is sent again."""
PositiveDuration = Annotated[Duration, Field(gt=0)]
DAY: Final = 86_400.0


class ListedElement(Options):
    """An element of a list.

    Args:
        element: Its name: the address, the path or the key.
        worth: What its freshness is worth; only proportions count.
        rate: Changes a second that are assumed until polls say more.
        least_freshness: A floor: the least share of time in which its copy must be right; 0: none.
        greatest_age: A floor: how long its oldest unseen change may have waited, on average; None: none.
    """

    element: str = Field(min_length=1)
    worth: UsableNumber = Field(default=1.0, ge=0.0, allow_inf_nan=False)
    rate: UsableNumber | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    least_freshness: float = Field(default=0.0, ge=0.0, lt=1.0)
    greatest_age: PositiveDuration | None = None


class ElementsFrom(Options):
    """Where elements come from, if not from a list.

    Args:
        file: A CSV, JSON or Parquet file with a column ``element``, and perhaps others as in a list: ``worth``,
            ``rate``, ``least_freshness`` and ``greatest_age``. It is read again when it changes.
        query: A query of the application whose output has these columns. A row adds an element, or changes its worth.
        column: Name of the column with the elements.
    """

    file: LocalPath | None = None
    query: str | None = None
    column: str = "element"

    @model_validator(mode="after")
    def _one(self) -> ElementsFrom:
        if (self.file is None) == (self.query is None):
            raise ValueError("needs either file or query")
        return self


class WorthFrom(Options):
    """Accesses that say what elements are worth.

    Args:
        accesses: A stream or a query of the application; each of its rows is an access to an element.
        column: Name of the column with the elements.
        weight: Name of a column that says how much an access counts, such as the weight of the user.
        half_life: Time after which an access counts half.
    """

    accesses: str = Field(min_length=1)
    column: str = "element"
    weight: str | None = None
    half_life: PositiveDuration = DAY


class HttpOptions(Options):
    """How elements are polled by HTTP.

    Args:
        url: Address of an element, with ``{element}`` where its name goes; by default the element is the address.
        hosts: Hosts that elements from files and queries, and redirects, may lead to, as in a shell:
            ``"*.example.org"``.
        headers: Headers of every request, unless a redirect leads to another host.
        redirects: Maximum number of redirects of a poll; each counts as a poll of the budget.
    """

    url: str | None = None
    hosts: list[str] = Field(default_factory=list)
    headers: dict[str, str] = Field(default_factory=dict)
    redirects: int = Field(default=3, ge=0, le=20)


class FileOptions(Options):
    """How files are polled.

    Args:
        path: Folder that elements are paths in.
    """

    path: LocalPath


class SqlOptions(Options):
    """How rows of a database are polled.

    Args:
        database: Path of a SQLite file, or ``postgresql://...``.
        query: Rows of an element, with a ``?`` where its key goes.
        change_key: One value that differs after every change, with a ``?``: the rows are read only if it differs.
    """

    database: str
    query: str
    change_key: str | None = None

    @model_validator(mode="after")
    def _asked(self) -> SqlOptions:
        for key, text in (("query", self.query), ("change_key", self.change_key)):
            if text is not None and "?" not in text:
                raise ValueError(f"{key} has no ? where the element goes")
        return self


class MirrorOptions(Options):
    """Options of the source kind ``mirror``.

    Args:
        elements: What is polled: a list of names or of tables with ``element``, ``worth`` and ``rate``; or
            ``{file = ...}`` or ``{query = ...}``.
        http: How elements are polled by HTTP.
        file: How files are polled.
        sql: How rows of a database are polled.
        worth: What the given worth of elements is multiplied by: ``"given"`` (nothing), ``"queries"`` (the weights of
            the queries that read them), or ``{accesses = ...}`` (how often they are looked at).
        budget: Maximum number of polls a second; exploration, audits, retries and redirects count.
        budget_bytes: Instead of polls: maximum number of bytes a second.
        format: What elements hold; by default the media type says it.
        columns: Place of a column's value in the element, if it is not the column's name: ``{price = "quote.price"}``.
        element_column: Column that gets the element's name, if the stream has it.
        polled_column: Column that gets the time of the poll, if the stream has it.
        changed_column: Column that gets the estimated time of the change, if the stream has it.
        learn: Whether change rates are learned; otherwise those of the elements hold.
        change_every: Assumed time between changes of an element of which nothing is known.
        explore: Share of the budget for elements that the plan leaves out, so that none is forgotten.
        audit: Share of the budget for polls at random that measure the freshness.
        timeout: Maximum time for a poll.
        max_bytes: Maximum size of an element.
        connections: Maximum number of polls of a host at the same time; those that hang do not count.
        host_polls: Maximum number of polls a second of each host.
        back_off: Wait after a failure; it doubles with each in a row.
        longest_back_off: Maximum wait after failures.
    """

    elements: list[str | ListedElement] | ElementsFrom
    http: HttpOptions | None = None
    file: FileOptions | None = None
    sql: SqlOptions | None = None
    worth: Literal["given", "queries"] | WorthFrom = "given"
    budget: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    budget_bytes: ByteCount | None = None
    format: ContentFormat | None = None
    columns: dict[str, str] = Field(default_factory=dict)
    element_column: str = "element"
    polled_column: str = "polled"
    changed_column: str = "changed"
    learn: bool = True
    change_every: PositiveDuration = 3600.0
    explore: float = Field(default=0.02, ge=0.0, lt=1.0)
    audit: float = Field(default=0.02, ge=0.0, le=0.5)
    timeout: PositiveDuration = 10.0
    max_bytes: ByteCount = 1 << 20
    connections: int = Field(default=32, ge=1)
    host_polls: float | None = Field(default=None, gt=0.0, allow_inf_nan=False)
    back_off: PositiveDuration = 5.0
    longest_back_off: PositiveDuration = 3600.0

    @model_validator(mode="after")
    def _whole(self) -> MirrorOptions:
        if sum(kind is not None for kind in (self.http, self.file, self.sql)) != 1:
            raise ValueError("needs one of http, file and sql: how its elements are polled")
        if (self.budget is None) == (self.budget_bytes is None):
            raise ValueError("needs either budget, polls a second, or budget_bytes, bytes a second")
        return self

    @property
    def rate(self) -> float:
        """The budget in its own unit a second."""
        return float(self.budget if self.budget is not None else self.budget_bytes or 0)

    @property
    def spendable(self) -> float:
        """The part of the budget that is spent."""
        return _SPENT * self.rate

    @property
    def planned(self) -> float:
        """The part of the budget that audits leave."""
        return (1.0 - self.audit) * self.spendable

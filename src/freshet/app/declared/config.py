"""The application file: its sections and keys, each with its meaning.

The descriptions are what the configuration reference shows, and the models are what ``freshet check`` holds a
file against; nothing else knows the keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    model_validator,
)

from freshet.app.declared.fields import (
    ALWAYS_FULL,
    ByteSize,
    DurationOrUnlimited,
    DurationText,
    JoinMemory,
    LatencyCurve,
    Master,
    OptionalPath,
    Overload,
    PathText,
    PolicyName,
    Quality,
    Resident,
    ShareMode,
    SizeOrUnlimited,
    SparkSettings,
    Weight,
    above_zero,
    balanced,
    checked,
    expected,
    telling,
    within_looks,
)
from freshet.app.declared.optimizing import ranks_of
from freshet.log.segments.retention import Retention
from freshet.model import Expectation, UserError, priority_classes
from freshet.model.promises.balance import BalanceBound
from freshet.model.promises.decision_table import DecisionTable
from freshet.model.promises.level_settings import LevelAim, LevelMode, WhenFull
from freshet.model.promises.look_settings import LookSettings
from freshet.model.promises.quality_table import PROPORTIONAL
from freshet.policies.periodic import create_periodic
from freshet.sinks.place import load, load_anything

DEFAULT = Retention()
DEFAULT_LOOKS: Final = LookSettings()


class Section(BaseModel):
    """A table of the file; unknown keys and wrong types are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, arbitrary_types_allowed=True, defer_build=True)


class OpenSection(BaseModel):
    """A table whose ``kind`` says which further keys it has; the kind itself checks them."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, defer_build=True)

    kind: str = ""
    """Which one it is."""

    def declared(self) -> dict[str, Any]:
        """All keys that were given, as an application takes them."""
        return {key: value for key, value in self if value is not None}


class RetentionSection(Section):
    """How long a stream or an output keeps its tuples. What a reader still needs is kept always, up to the bound."""

    history: DurationOrUnlimited = DEFAULT.history_age
    """How long tuples stay readable after every reader has consumed them, or "unlimited"."""
    history_bytes: SizeOrUnlimited = DEFAULT.history_bytes
    """Number of bytes, or "unlimited": consumed tuples stay while they are among the newest ones of that size."""
    bound: Annotated[SizeOrUnlimited, above_zero("nothing is ever taken in")] = DEFAULT.bound_bytes
    """Maximum number of bytes that may wait for a reader, or "unlimited"; beyond it the source is held back."""

    def retention(self) -> Retention:
        """The retention as the log takes it."""
        return Retention(self.history, self.history_bytes, self.bound)


class SinkSection(OpenSection):
    """Where a query's output goes: ``jsonl``, ``parquet``, ``table``, ``memory``, ``console`` or ``callback``, with the
    keys of that kind."""

    name: str | None = None
    """Names its place in the output; its kind (with a number from the second on), if not given."""


class StreamSection(Section):
    """``[streams.NAME]``: an endless sequence of tuples of one schema."""

    columns: str = Field(alias="schema")
    """Columns and types, as Spark DDL: "ts timestamp, size int"."""
    event_time: str | None = None
    """The timestamp column that says when the event happened."""
    time_zone: str = "UTC"
    """Zone of event times that come without one."""
    validity: DurationText | None = None
    """For how long a tuple is worth answering."""
    lateness: DurationText | None = None
    """How far an event time may lie behind the newest one seen; later tuples are counted and set aside."""
    ordered_by: str | None = None
    """The column by which its tuples come in order, nearly: whole numbers, timestamps or dates. Joins without windows
    go by it."""
    disorder: str | None = None
    """How far tuples come out of that order: "500 rows", "8 s", or "measured" (the default)."""
    in_order: float | None = None
    """If it is measured, the share of the tuples that must count as in order; 0.999 by default."""
    retention: RetentionSection = RetentionSection()
    """How long its tuples are kept."""
    source: OpenSection = OpenSection(kind="push")
    """Where its tuples come from: ``generator``, ``trace``, ``files``, ``spark`` or ``push``, with their keys."""


class TableSection(Section):
    """``[tables.NAME]``: a file or a mirror that streams are joined with, and that may change while they are."""

    file: OptionalPath = None
    """The file: CSV with a header line, JSON (an array of objects, or one on each line) or Parquet."""
    source: OpenSection | None = None
    """Instead of a file: a source of kind ``mirror``, with its keys."""
    columns: str = Field(alias="schema")
    """Columns and types, as Spark DDL: "host string, owner string". The file may have others, too."""
    format: Literal["csv", "json", "parquet"] | None = None
    """Format of the file; what its suffix says, if not given."""

    @model_validator(mode="after")
    def _filled(self) -> TableSection:
        if (self.file is None) == (self.source is None):
            raise ValueError("needs either a file or a source")
        return self


class ExpectSection(Section):
    """``[queries.NAME.expect]``: what the measures of a query should be over its life, each with a class. A value such
    as "2 s" holds for ever, in the class best-effort; the long form is ``{class = "must", points = [[0, "2 s"]]}``."""

    latency: Annotated[InstanceOf[Expectation] | None, expected("latency")] = None
    """Mean age of answers, and at most the age of the oldest waiting tuple: a duration."""
    memory: Annotated[InstanceOf[Expectation] | None, expected("memory")] = None
    """Bytes that wait in its queues, on average: a size."""
    throughput: Annotated[InstanceOf[Expectation] | None, expected("throughput")] = None
    """Output tuples per second: a number, or such as "200 rows/s"."""
    every: Annotated[DurationText, Field(gt=0)] | None = None
    """Time between looks at the query; that of the application, if not given."""

    @model_validator(mode="after")
    def _names_a_measure(self) -> ExpectSection:
        if not self.given().keys() - {"every"}:
            raise ValueError("names no measure: use latency, memory or throughput, such as latency = '2 s'")
        return self

    def given(self) -> dict[str, Any]:
        """What was given, as an application takes it."""
        return {key: value for key, value in self if value is not None}


class QuerySection(Section):
    """``[queries.NAME]``: a continuous query; its output is a stream of the same name."""

    sql: str
    """The query."""
    weight: Weight = ALWAYS_FULL
    """Importance in (0, 1], or one for each time of day: {"08:00-18:00" = 1.0, else = 0.2}."""
    subscribers: bool = False
    """Whether its importance is multiplied by its popularity: the number of sinks, queries and readers that follow its
    output, as a share of the most popular one's."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where a new or changed query begins to read."""
    on_error: Literal["null", "fail"] = "null"
    """What an evaluation error does: "null" gives NULL and counts it, "fail" quarantines the query."""
    strategy: PolicyName | None = None
    """The policy that schedules it, whatever is seen; the optimizer chooses one if not given, and if it expects
    something."""
    curve: LatencyCurve | None = None
    """What its answers are worth by their latency: points [latency, utility], never rising, utilities in [0, 1]."""
    expect: ExpectSection = ExpectSection.model_construct()
    """What its measures should be over its life."""
    overload: Overload = ("defer",)
    """What may happen to it under overload: "defer" lets tuples wait, "thin" leaves some of them out."""
    value: str | None = None
    """What a tuple is worth if some are left out: a SQL expression over the columns of a stream that it reads; the
    least go first. Without it a hash decides."""
    quality: Quality = PROPORTIONAL
    """What its answers are worth by the share of the tuples kept: "tolerant", "proportional", "strict" or points
    [share kept, worth], which rise to [1, 1]."""
    late: Literal["finish", "abandon"] = "finish"
    """What becomes of an instance of a PERIOD query whose deadline passes before it runs: it runs all the same, or is
    given up."""
    missed: Literal["skip", "catch-up"] = "skip"
    """What becomes of releases of a PERIOD query at which the application did not run: they are skipped, or answered
    later."""
    join_memory: JoinMemory | None = None
    """Maximum number of bytes that its joins by ordered keys may remember; where that is not enough, tuples are let go,
    and the ledger says which."""
    join_buffer: Literal["auto", "ram", "sorted", "log", "hybrid"] = "auto"
    """How its joins by ordered keys buffer tuples: in memory ("ram"), in memory with answers in the order of the key
    ("sorted"), leading inputs in their own logs ("log"), both ("hybrid"), or "ram" or "log" as it pays ("auto")."""
    retention: RetentionSection = RetentionSection()
    """How long its output is kept."""
    sinks: list[SinkSection] = []
    """Where its output goes, besides the output log."""


def _loaded(place: str, import_: Callable[[str], Any] = load) -> Any:
    try:
        return import_(place)
    except ValueError as error:
        raise UserError(str(error)) from None


class OperatorSection(Section):
    """``[operators.NAME]``: what queries may name in FROM: a Python function on Arrow batches, or a class that
    remembers."""

    call: str
    """Its place: "package.module:name"."""
    takes: str | None = None
    """Columns that it reads: "text string"."""
    returns: str | None = None
    """Columns that it outputs: "word string"."""
    time: str | None = None
    """What becomes of event time: "keep", "none" or "column:X"."""
    version: str | None = None
    """Change it when its rows change; a hash of its content, if not given."""

    def what(self) -> Any:
        """Imports what is there."""
        return _loaded(self.call, load_anything)


class FunctionSection(Section):
    """``[functions.NAME]``: what queries may call: a Python function (``call``) or a SQL expression (``sql``)."""

    call: str | None = None
    """Place of a Python function on Arrow arrays: "package.module:name"."""
    sql: str | None = None
    """A SQL expression over the parameters."""
    takes: str | None = None
    """Types of the arguments: "double, string"; of an expression with names: "x double, y double"."""
    returns: str | None = None
    """Type of the value."""
    version: str | None = None
    """Change it when its values change; a hash of its content, if not given."""

    def what(self) -> Callable[..., Any] | str:
        """The Python function, which is imported, or the expression."""
        if (self.call is None) == (self.sql is None):
            raise UserError("needs either call, the place of a Python function, or sql, an expression")
        return self.sql if self.sql is not None else _loaded(str(self.call))


class AppSection(Section):
    """``[app]``: the run as a whole."""

    name: str | None = None
    """Name of the application; the file's name without its suffix, if not given."""
    state: PathText = "state"
    """Folder of the state: logs, cursors, positions of sources and sinks."""
    policy: PolicyName = "everything"
    """Scheduling policy (see `freshet policies`)."""
    periodic: Annotated[str, checked(create_periodic)] = "edf"
    """Which instances of PERIOD queries run first: "edf", "edf-fused", "rm", "dm" or "llf"; before continuous
    queries."""
    reserve: float = Field(default=0.1, ge=0.0, lt=1.0)
    """Share of the time that continuous queries keep while PERIOD queries have work, too."""
    levels: LevelMode = "predicted"
    """Who says how much of its windows an instance of a PERIOD query reads, if the query may be thinned: "predicted",
    "feedback" or "off"."""
    aim: LevelAim = "fair"
    """Whether levels make the worst answer or the average as good as possible, or what lies between: "fair", "average"
    or "balanced"."""
    ahead: bool = False
    """Whether levels leave time for releases that come before the last deadline."""
    admission: WhenFull = "degrade"
    """What happens to queries that do not fit, by what earlier runs have learned: levels of PERIOD queries fall and
    joins by ordered keys let tuples go ("degrade"), or the application or the added query is refused ("refuse")."""
    workers: int = Field(default=2, ge=1, le=64)
    """How many units may run at once."""
    max_train_rows: int = Field(default=500_000, ge=1)
    """Maximum number of tuples that a unit takes from a queue at once."""
    unit_timeout: Annotated[DurationOrUnlimited, above_zero("nothing could ever run")] = 600.0
    """How long a job of a unit may take, or "unlimited"; the query that takes longer is found and quarantined."""
    max_rows_out_per_row: int = Field(default=10_000, ge=1)
    """Maximum number of rows that a unit may output for each row that it reads; else the query is quarantined."""
    kept_state: ByteSize = 2**30
    """Maximum memory in which each worker keeps what it has made of the states of windows and joins; 0 keeps none."""
    join_memory: JoinMemory | None = None
    """Maximum number of bytes that the joins by ordered keys of all queries may remember together; divided among those
    that declare none."""
    share: ShareMode = "never"
    """Whether operators that several queries begin with run once for all of them: "never", "auto" (if earlier runs have
    measured that it saves time) or "always"; true means "always" and false "never"."""
    classes: Annotated[dict[str, float], checked(priority_classes)] = {}
    """Further classes of expectations, each with its weight; "must", "best-effort" and "dont-care" may have others."""
    look_every: Annotated[DurationText, Field(gt=0)] = DEFAULT_LOOKS.every
    """Time between two looks at the measures of a query with expectations."""
    look_ahead: Annotated[DurationText, AfterValidator(within_looks)] = DEFAULT_LOOKS.ahead
    """How far ahead expectations are read to find violations: less than the time between looks; 0: now."""
    optimizer: Literal["act", "advise", "off"] = "act"
    """Whether the strategies of queries with expectations are changed ("act"), or only advised ("advise")."""
    ranks: Annotated[InstanceOf[DecisionTable] | str, BeforeValidator(telling(ranks_of, "ranks "))] = "shipped"
    """Decision table of the optimizer: "shipped", "measured" (by `freshet calibrate`), "predict", or a table of ranks
    by measure and strategy."""
    expect: Annotated[InstanceOf[BalanceBound], BeforeValidator(balanced)] | None = None
    """What all outputs together should keep, for which fas-mcq finds beta: {response = "500 ms"} (they are as fresh as
    that allows) or {freshness = 0.9} (answers are as quick)."""
    ageing: Annotated[DurationText, Field(gt=0)] | None = None
    """How long a tuple may wait until it comes first, whatever the policy prefers; no limit, if not given."""
    least_stay: DurationText | None = None
    """How long a query stays with a new strategy at least; twice the time between looks, if not given."""
    report: PathText = "report.json"
    """File of the report, refreshed while running."""


class SparkSection(Section):
    """``[spark]``: the Spark that executes."""

    master: Master | None = None
    """Master of a cluster, or "local[N]"; the environment's SPARK_MASTER or all cores, if not given."""
    settings: SparkSettings = {}
    """Spark settings by name; they override Freshet's own, except those that answers depend on."""
    resident: Resident = "auto"
    """How many Spark tasks stay and are handed steps over a connection: "auto", "off" or a number."""
    resident_port: int = Field(default=0, ge=0, le=65535)
    """Port of the driver that residents on other machines connect to; 0: any."""


def _long_form(value: Any) -> Any:
    """For a function or an operator that carries its declaration, its place alone is enough."""
    if isinstance(value, str):
        return {"call": value}
    if isinstance(value, dict):
        return value
    raise ValueError(f"must be 'package.module:name' or a table, not {value!r}")


class AppFile(Section):
    """The whole file."""

    app: AppSection = AppSection()
    spark: SparkSection = SparkSection()
    streams: dict[str, StreamSection] = {}
    tables: dict[str, TableSection] = {}
    functions: dict[str, Annotated[FunctionSection, BeforeValidator(_long_form)]] = {}
    operators: dict[str, Annotated[OperatorSection, BeforeValidator(_long_form)]] = {}
    queries: dict[str, QuerySection] = {}

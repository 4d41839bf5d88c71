"""What an application declares, before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, Unpack, cast, get_args

import pyarrow as pa

from freshet.app.declared.optimizing import Ranks, check_ranked, check_strategy
from freshet.log import Retention
from freshet.model import (
    Curve,
    Expectation,
    Expectations,
    KeyOrder,
    PriorityClass,
    Promises,
    Stream,
    UserError,
    parse_bytes,
    parse_duration,
    priority_classes,
)
from freshet.model.join_buffer import JOIN_BUFFERS, JoinBuffer
from freshet.model.promises.balance import BalanceBound
from freshet.model.promises.level_settings import LevelSettings
from freshet.model.promises.look_settings import LookSettings, OptimizerMode
from freshet.model.promises.promise import Late, Missed, overload_of
from freshet.model.promises.quality_table import QualityTable
from freshet.model.promises.weight_plan import WeightPlan, WeightRule
from freshet.policies import FreshnessAware, create
from freshet.policies.sharing import Mode as ShareMode
from freshet.sinks import Sink, Token
from freshet.sources import Source
from freshet.spark.session.residency import ResidentSetting
from freshet.sql.parse.text import stands_in_from

if TYPE_CHECKING:
    from freshet.spark.session.embedded import SparkSession

SourceLike = Source | Mapping[str, Any]
"""A source, or the options of one: ``{"kind": "generator", ...}``."""
SinkLike = Sink | Mapping[str, Any] | Callable[[pa.Table, Token], object]
"""A sink, the options of one (``{"kind": "jsonl", "path": ...}``), or a function as of a callback sink."""
WeightLike = float | Mapping[str, float] | WeightPlan
"""A weight in (0, 1], or one for each time of day: ``{"08:00-18:00": 1.0, "else": 0.2}``."""
CurveLike = Curve | Sequence[tuple[str | float, float]]
"""A latency curve, or its points: (latency as a duration, utility)."""
ExpectationLike = Expectation | str | float | Sequence[tuple[str | float, str | float]] | Mapping[str, Any]
"""What is expected of a measure: a value, points (time of the query's life, value), or a mapping of ``class`` and of
``points`` or ``intervals``."""
QualityLike = QualityTable | str | Sequence[tuple[float, float]] | Mapping[str, Any]
"""A quality table, the name of a preset, or points: (share kept, worth)."""

_MASTER: Final = re.compile(
    r"local|local\[(?:[1-9]\d*|\*)(?:\s*,\s*[1-9]\d*)?\]|local-cluster\[\s*[1-9]\d*\s*,\s*[1-9]\d*\s*,\s*[1-9]\d*\s*\]"
    r"|spark://[^\s:,/]+:\d+(?:,[^\s:,/]+:\d+)*|yarn|k8s://\S+"
)
_MASTERS: Final = ("local", "local-cluster", "spark", "yarn", "k8s")
_LEAST_JOIN_MEMORY: Final = 2**16
MOST_NAME: Final = 200
"""Maximum length of a name: it names files of the state folder, and a file's name has at most 255 characters."""
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A declared stream, where its tuples come from and how long they are kept."""

    stream: Stream
    source: SourceLike = field(default_factory=lambda: {"kind": "push"})
    retention: Retention = field(default_factory=Retention)


class KeyOptions(TypedDict, total=False):
    """What a stream may declare about the order of its tuples."""

    ordered_by: str | None
    disorder: str | None
    in_order: float | None


def key_order(stream: str, source: SourceLike | None, **given: Unpack[KeyOptions]) -> KeyOrder | None:
    """What a stream declares about the order of its tuples; None: nothing."""
    column, disorder, in_order = given.get("ordered_by"), given.get("disorder"), given.get("in_order")
    if column is None:
        about = "disorder" if disorder is not None else "in_order"
        if disorder is not None or in_order is not None:
            raise UserError(f"stream {stream}: {about} is about an ordered key: say which column, as ordered_by = 'ts'")
        return None
    if isinstance(source, Mapping) and source.get("kind") == "spark":
        raise UserError(
            f"stream {stream}: ordered_by is not for a source of kind spark: its tasks write rows side by side, in no "
            "order; use kind files, or push the rows"
        )
    try:
        return KeyOrder.of(column, "measured" if disorder is None else disorder, in_order)
    except UserError as error:
        raise UserError(f"stream {stream}: {error}") from None


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A declared table: its file with its format if the suffix does not tell it, or its source; and its columns."""

    name: str
    file: Path | None
    schema: pa.Schema
    format: str | None = None
    source: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """A declared query, where its output goes and how long that is kept."""

    name: str
    sql: str
    promises: Promises = field(default_factory=Promises)
    start: Literal["earliest", "latest"] = "earliest"
    on_error: Literal["null", "fail"] = "null"
    sinks: tuple[SinkLike, ...] = ()
    retention: Retention = field(default_factory=Retention)
    strategy: str | None = None
    """The policy that schedules it, whatever is seen; None: any."""
    join_memory: int | None = None
    """Maximum number of bytes that its joins by ordered keys may remember; None: it declares none."""
    is_bounded: bool = False
    """Whether there is a bound, declared by it or by the application."""
    join_buffer: JoinBuffer = "auto"
    """How its joins by ordered keys buffer tuples."""
    weighing: WeightRule = field(default_factory=lambda: WeightRule(WeightPlan.parse(1.0)))
    """Where its weight comes from while it runs."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How an application runs. See the ``[app]`` and ``[spark]`` tables of the file for what each means."""

    policy: str = "everything"
    workers: int = 2
    max_train_rows: int = 500_000
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)
    share: ShareMode = "never"
    unit_timeout: float | None = 600.0
    max_rows_out_per_row: int = 10_000
    resident: ResidentSetting = "auto"
    resident_port: int = 0
    kept_state: int = 2**30
    classes: Mapping[str, PriorityClass] = field(default_factory=lambda: priority_classes({}))
    looks: LookSettings = field(default_factory=LookSettings)
    optimizer: OptimizerMode = "act"
    ranks: Ranks = "shipped"
    ageing: float | None = None
    balance: BalanceBound | None = None
    periodic: str = "edf"
    reserve: float = 0.1
    levels: LevelSettings = field(default_factory=LevelSettings)
    join_memory: int | None = None


def check_free(name: str, kind: str, taken: Mapping[str, str]) -> None:
    """Refuses a name that cannot be used in SQL and in the names of operators, or that is taken: names that
    differ by case only are one name in SQL. What is taken comes with its kind.

    >>> check_free("2fast", "query", {})
    Traceback (most recent call last):
    freshet.model.errors.UserError: '2fast' cannot name a query: use letters, digits and _, beginning with a letter
    >>> check_free("Packets", "query", {"packets": "stream"})
    Traceback (most recent call last):
    freshet.model.errors.UserError: query Packets: there is a stream packets already; choose another name
    """
    if not NAME.fullmatch(name):
        raise UserError(f"{name!r} cannot name a {kind}: use letters, digits and _, beginning with a letter")
    if len(name) > MOST_NAME:
        raise UserError(f"{name[:40]}... cannot name a {kind}: it has {len(name):,} characters, at most {MOST_NAME}")
    if not stands_in_from(name):
        raise UserError(f"{name!r} cannot name a {kind}: it is a word of SQL; choose another, such as {name}_1")
    for other, what in taken.items():
        if other.lower() == name.lower():
            article = "an" if what[0] in "aeiou" else "a"
            raise UserError(f"{kind} {name}: there is {article} {what} {other} already; choose another name")


class QueryOptions(TypedDict, total=False):
    """What can be said of a query besides its name and its text; see :meth:`App.query`."""

    weight: WeightLike
    subscribers: bool
    start: Literal["earliest", "latest"]
    on_error: Literal["null", "fail"]
    sinks: Sequence[SinkLike]
    retention: Retention | None
    curve: CurveLike | None
    expect: Mapping[str, ExpectationLike | float | None] | None
    overload: Sequence[str]
    value: str | None
    quality: QualityLike
    strategy: str | None
    late: Late
    missed: Missed
    join_memory: str | int | None
    join_buffer: JoinBuffer


def declare_query(
    taken: Mapping[str, str],
    name: str,
    sql: str,
    settings: Settings | None = None,
    *,
    weight: WeightLike = 1.0,
    subscribers: bool = False,
    start: Literal["earliest", "latest"] = "earliest",
    on_error: Literal["null", "fail"] = "null",
    sinks: Sequence[SinkLike] = (),
    retention: Retention | None = None,
    curve: CurveLike | None = None,
    expect: Mapping[str, ExpectationLike | float | None] | None = None,
    overload: Sequence[str] = ("defer",),
    value: str | None = None,
    quality: QualityLike = "proportional",
    strategy: str | None = None,
    late: Late = "finish",
    missed: Missed = "skip",
    join_memory: str | int | None = None,
    join_buffer: JoinBuffer = "auto",
) -> QuerySpec:
    """What :meth:`App.query` and :meth:`Run.add_query` declare; it checks what does not depend on other queries. The
    settings are those of the application.

    >>> declare_query({}, "q", "SELECT v FROM s", start="newest")
    Traceback (most recent call last):
    freshet.model.errors.UserError: query q: start must be 'earliest' or 'latest', not 'newest'
    """
    check_free(name, "query", taken)
    if not isinstance(subscribers, bool):
        raise UserError(f"query {name}: subscribers must be true or false, not {subscribers!r}")
    for key, given, words in (
        ("start", start, ("earliest", "latest")),
        ("on_error", on_error, ("null", "fail")),
        ("late", late, get_args(Late)),
        ("missed", missed, get_args(Missed)),
        ("join_buffer", join_buffer, JOIN_BUFFERS),
    ):
        if given not in words:
            raise UserError(f"query {name}: {key} must be {' or '.join(map(repr, words))}, not {given!r}")
    if isinstance(sinks, str | Mapping) or not isinstance(sinks, Sequence):
        raise UserError(f"query {name}: sinks must be a list, such as [{{'kind': 'memory'}}], not {sinks!r}")
    worth = None if curve is None else Curve.for_query(name, curve)
    try:
        kept = check_retention(retention)
        wishes = Expectations() if expect is None else _expectations(expect, settings or Settings())
        under_load, worth_kept = overload_of(overload), QualityTable.parse(quality)
        if value is not None and "thin" not in under_load:
            raise UserError(
                'value says which tuples are left out first, but none may be: add overload = ["defer", "thin"]'
            )
        plan, memory = WeightPlan.parse(weight), join_memory_of(join_memory)
        promises = Promises(
            plan.other,
            worth,
            expect=wishes,
            overload=under_load,
            value=value,
            quality=worth_kept,
            late=late,
            missed=missed,
        )
    except UserError as error:
        raise UserError(f"query {name}: {error}") from None
    check_ranked(name, promises, (settings or Settings()).ranks)
    if strategy is not None:
        check_strategy(name, strategy)
    weighing, of_app = WeightRule(plan, subscribers), None if settings is None else settings.join_memory
    is_bounded = memory is not None or of_app is not None
    more = memory, is_bounded, join_buffer, weighing
    return QuerySpec(name, sql, promises, start, on_error, tuple(sinks), kept, strategy, *more)


def join_memory_of(given: str | int | None) -> int | None:
    """How much joins by ordered keys may remember, in bytes; None: there is no bound.

    >>> join_memory_of("1 MiB"), join_memory_of(None)
    (1048576, None)
    >>> join_memory_of(100)
    Traceback (most recent call last):
    freshet.model.errors.UserError: join_memory must be at least 64 KiB, not 100 bytes: it would hold hardly any tuple
    """
    size = None if given is None else parse_bytes(given)
    if size is not None and size < _LEAST_JOIN_MEMORY:
        raise UserError(f"join_memory must be at least 64 KiB, not {size} bytes: it would hold hardly any tuple")
    return size


def _expectations(given: object, settings: Settings) -> Expectations:
    """The expectations of a query, whose looks must suit those of the application."""
    expectations = Expectations.parse(given, settings.classes)
    if not expectations:
        raise UserError("expect names no measure: use latency, memory or throughput, such as {'latency': '2 s'}")
    settings.looks.of_query(expectations)
    return expectations


def share_mode(share: object) -> ShareMode:
    """When queries share work, from a word or from whether they always do.

    >>> share_mode(True), share_mode("auto")
    ('always', 'auto')
    >>> share_mode("sometimes")
    Traceback (most recent call last):
    freshet.model.errors.UserError: share must be 'never', 'auto' or 'always', not 'sometimes'
    """
    if isinstance(share, bool):
        return "always" if share else "never"
    if share not in get_args(ShareMode):
        raise UserError(f"share must be 'never', 'auto' or 'always', not {share!r}")
    return cast(ShareMode, share)


def check_master(text: str) -> str:
    """Refuses a Spark master of the wrong form; whether there is a Spark turns out when it starts.

    >>> check_master("local[2]"), check_master("spark://host:7077")
    ('local[2]', 'spark://host:7077')
    >>> check_master("lcal[2]")
    Traceback (most recent call last):
    freshet.model.errors.UserError: 'lcal[2]' is not a Spark master: use local[*], ... (did you mean 'local[2]'?)
    """
    if _MASTER.fullmatch(text):
        return text
    word = re.split(r"[^\w-]", text, maxsplit=1)[0]
    close = get_close_matches(word, _MASTERS, n=1)
    meant = close[0] + text.removeprefix(word) if close else ""
    hint = f" (did you mean {meant!r}?)" if _MASTER.fullmatch(meant) else ""
    raise UserError(
        f"{text!r} is not a Spark master: use local[*], local[N], local[N,FAILURES], local-cluster[N,CORES,MB], "
        f"spark://HOST:PORT, yarn or k8s://URL{hint}"
    )


def check_given(session: SparkSession, master: str | None) -> SparkSession:
    """Refuses what is no session, and a session whose driver is not in this process."""
    if not hasattr(session, "catalog") or not hasattr(session, "udf"):
        raise UserError(f"spark must be Spark settings or a SparkSession, not {session!r}")
    if not hasattr(session, "_jsparkSession"):
        raise UserError("spark: the driver of a Spark Connect session is elsewhere: give one that runs in this process")
    if master is not None:
        raise UserError("a session has its master already: leave out the master, or give settings instead of a session")
    return session


def check_retention(given: object) -> Retention:
    """A retention under which a stream can take something in; the default, if none is given."""
    retention = Retention() if given is None else given
    if not isinstance(retention, Retention):
        example = "freshet.Retention(history_age=3600.0)"
        raise UserError(f"retention must be a freshet.Retention, such as {example}, not {given!r}")
    if retention.bound_bytes is not None and retention.bound_bytes <= 0:
        raise UserError(f"retention: a bound of {retention.bound_bytes} bytes would never take anything in: use more")
    return retention


def balance_of(given: object, policy: str) -> BalanceBound | None:
    """The balance of response time and freshness that is declared, for a policy that has one.

    >>> balance_of({"response": "1 s"}, "fcfs")
    Traceback (most recent call last):
    freshet.model.errors.UserError: expect: only the policy fas-mcq has a beta to find, and this is fcfs
    """
    if given is None:
        return None
    bound = BalanceBound.parse(given)
    if not isinstance(create(policy), FreshnessAware):
        raise UserError(f"expect: only the policy fas-mcq has a beta to find, and this is {policy}")
    return bound


def age_limit(given: str | float | None) -> float | None:
    """How long a tuple may wait until it comes first, in seconds.

    >>> age_limit("30 s"), age_limit(None)
    (30.0, None)
    """
    limit = None if given is None else parse_duration(given)
    if limit is not None and limit <= 0.0:
        raise UserError("ageing must be above 0: it is how long a tuple may wait until it comes first")
    return limit

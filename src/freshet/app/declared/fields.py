"""Kinds of values in the application file, each with what makes it from what a user writes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final, cast

from pydantic import AfterValidator, BeforeValidator, Field, InstanceOf, ValidationInfo

from freshet.app.declared.spec import balance_of, check_master, join_memory_of, share_mode
from freshet.model import Curve, Expectation, UserError, parse_bytes, parse_duration, priority_classes
from freshet.model.places import check_local
from freshet.model.promises.balance import BalanceBound
from freshet.model.promises.look_settings import LookSettings
from freshet.model.promises.promise import overload_of
from freshet.model.promises.quality_table import QualityTable
from freshet.model.promises.weight_plan import WeightPlan
from freshet.policies import create
from freshet.policies.sharing import Mode
from freshet.spark.session.residency import ResidentSetting, check_resident
from freshet.spark.session.settings import check_settings


def telling(function: Callable[[Any], Any], prefix: str = "") -> Callable[[Any], Any]:
    """A function whose errors are problems at the place of the value; a prefix of their text is left out."""

    def told(value: Any) -> Any:
        try:
            return function(value)
        except UserError as error:
            raise ValueError(str(error).removeprefix(prefix)) from None

    return told


def checked(check: Callable[[Any], object], prefix: str = "") -> AfterValidator:
    """Refuses what a check refuses."""

    def passed(value: Any) -> Any:
        check(value)
        return value

    return AfterValidator(telling(passed, prefix))


def quantity(parse: Callable[[Any], Any], kind: str, whole: bool = False) -> BeforeValidator:
    """A number, or a text that says how much."""

    def check(value: Any) -> Any:
        wrong = isinstance(value, bool) or not isinstance(value, str | int | float)
        if wrong or (isinstance(value, float) and (whole or not math.isfinite(value))):
            raise ValueError(f"must be a {kind}, not {str(value).lower() if isinstance(value, bool) else repr(value)}")
        return telling(parse)(value)

    return BeforeValidator(check)


def above_zero(otherwise: str) -> AfterValidator:
    """Refuses 0 and less; ``otherwise`` is what would be."""

    def check(value: float | None) -> float | None:
        if value is not None and value <= 0:
            raise ValueError(f"must be above 0 (else {otherwise}) or 'unlimited', not {value:g}")
        return value

    return AfterValidator(check)


def expected(measure: str) -> BeforeValidator:
    """An expectation; the context of the validation has the classes of the application."""

    def parse(value: Any, info: ValidationInfo) -> Expectation:
        classes = priority_classes({}) if info.context is None else info.context["classes"]
        return cast(Expectation, telling(lambda given: Expectation.parse(measure, given, classes))(value))

    return BeforeValidator(parse)


def balanced(value: Any, info: ValidationInfo) -> BalanceBound | None:
    """A balance of response time and freshness, for a policy that has one."""
    policy = info.data.get("policy", "fas-mcq")
    return cast("BalanceBound | None", telling(lambda given: balance_of(given, policy), "expect: ")(value))


def within_looks(value: float, info: ValidationInfo) -> float:
    """Refuses a look-ahead that does not fit the interval of looks."""
    telling(lambda ahead: LookSettings(info.data.get("look_every", math.inf), ahead))(value)
    return value


def or_unlimited(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """None for "unlimited"."""
    return lambda value: None if value == "unlimited" else parse(value)


DurationText = Annotated[float, quantity(parse_duration, "duration such as '10 s'")]
DurationOrUnlimited = Annotated[float | None, quantity(or_unlimited(parse_duration), "duration such as '10 s'")]
ByteSize = Annotated[int, quantity(parse_bytes, "size such as '512 MB'", whole=True), Field(ge=0)]
JoinMemory = Annotated[int, quantity(join_memory_of, "size such as '64 MiB'", whole=True)]
SizeOrUnlimited = Annotated[int | None, quantity(or_unlimited(parse_bytes), "size such as '512 MB'", whole=True)]
LatencyCurve = Annotated[Curve, BeforeValidator(telling(Curve.parse))]
Weight = Annotated[InstanceOf[WeightPlan], BeforeValidator(telling(WeightPlan.parse, "weight "))]
ALWAYS_FULL: Final = WeightPlan.parse(1.0)
Overload = Annotated[tuple[str, ...], BeforeValidator(telling(overload_of, "overload "))]
Quality = Annotated[QualityTable, BeforeValidator(telling(QualityTable.parse, "quality "))]
PolicyName = Annotated[str, checked(create)]
ShareMode = Annotated[Mode, BeforeValidator(telling(share_mode, "share "))]
PathText = Annotated[str, checked(partial(check_local, what="path"), "path: ")]
OptionalPath = Annotated[str | None, checked(partial(check_local, what="path"), "path: ")]
Master = Annotated[str, checked(check_master)]
Resident = Annotated[ResidentSetting, BeforeValidator(telling(check_resident, "resident "))]
SparkSettings = Annotated[dict[str, str], checked(check_settings)]

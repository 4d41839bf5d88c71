"""What the options of sources and sinks have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from freshet.model import UserError, parse_duration
from freshet.model.places import why_not_local


class Options(BaseModel):
    """Base of all options: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def _seconds(value: Any) -> Any:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return value
    try:
        return parse_duration(value)
    except UserError as error:
        raise ValueError(str(error)) from None


Duration = Annotated[float, BeforeValidator(_seconds)]
"""Seconds, given as a number or as text such as ``"250 ms"``."""


def _local(value: Any) -> Any:
    reason = why_not_local(value) if isinstance(value, str | Path) else None
    if reason is not None:
        raise ValueError(reason)
    return value


LocalPath = Annotated[Path, BeforeValidator(_local)]
"""A path on this machine; an address such as ``s3a://bucket`` is refused."""

Chosen = TypeVar("Chosen", bound=Options)


def is_kind(value: Any) -> bool:
    """Whether something is a kind of source or sink: the class of its options, and what makes one from them."""
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    model, make = value
    return isinstance(model, type) and issubclass(model, Options) and callable(make)


def parse(model: type[Chosen], options: Any, what: str) -> Chosen:
    """Parses the options of a kind; a mistake becomes one sentence that names the key.

    >>> class Example(Options):
    ...     rate: float
    >>> parse(Example, {"rate": 5}, "source example").rate
    5.0
    >>> parse(Example, {"rate": "many"}, "source example")
    Traceback (most recent call last):
    freshet.model.errors.UserError: source example: rate: input should be a valid number...
    """
    if isinstance(options, model):
        return options
    try:
        return model.model_validate(options)
    except ValidationError as error:
        raise UserError(f"{what}: {first_mistake(error)}") from None


def first_mistake(error: ValidationError) -> str:
    """The first mistake of a validation as ``key: what would be right``."""
    mistake = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in mistake["loc"])
    text = mistake["msg"].removeprefix("Value error, ")
    text = text[:1].lower() + text[1:]
    if mistake["type"] == "extra_forbidden":
        return f"{key} is not a known key"
    return f"{key}: {text}" if key else text

"""From what pydantic says to what a person wants to read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from freshet.app.declared.meanings import meaning
from freshet.app.declared.problems import Problem, did_you_mean
from freshet.model.messages import masked_value

Location = tuple[str | int, ...]

_TIME: Final = "a time such as '2024-01-01T00:00:00Z'"
_TYPES: Final = {
    "string_type": "a text in quotes",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    "finite_number": "a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a table"),
    "path_type": "a path in quotes",
    **dict.fromkeys(("datetime_type", "datetime_parsing", "datetime_from_date_parsing"), _TIME),
}
_BOUNDS: Final = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}
_QUOTED: Final = re.compile(r"'([^']*)'")


def problems_of(error: ValidationError, model: type[BaseModel], data: Any, place: str = "") -> list[Problem]:
    """The mistakes of data that does not fit a model: for each place below ``place``, what would be right there."""
    found: dict[Location, list[ErrorDetails]] = {}
    for detail in error.errors():
        found.setdefault(location(detail, data), []).append(detail)
    found = {where: details for where, details in found.items() if not _beside(where, details, found)}
    return [Problem(place_text(where, place), _text(details, where, model)) for where, details in found.items()]


def _beside(where: Location, details: Sequence[ErrorDetails], found: Collection[Location]) -> bool:
    """Whether a mistake is only that of another member of a union: the one that fits found mistakes within it."""
    within = any(len(other) > len(where) and other[: len(where)] == where for other in found)
    return within and all(detail["type"] in _TYPES or detail["type"] == "literal_error" for detail in details)


def location(detail: ErrorDetails, data: Any) -> Location:
    """Where a mistake is: pydantic's place without the names of union members, which nobody wrote."""
    parts: list[str | int] = []
    current = data
    *_, last = detail["loc"] or ("",)
    for part in detail["loc"]:
        if _holds(current, part):
            current = current[part]
        elif not (part == last and detail["type"] in ("missing", "extra_forbidden")):
            continue
        parts.append(part)
    if detail["type"] in ("union_tag_invalid", "union_tag_not_found"):
        parts.append("kind")
    return tuple(parts)


def _holds(value: Any, part: str | int) -> bool:
    if isinstance(value, list | tuple):
        return isinstance(part, int) and part < len(value)
    return isinstance(value, Mapping) and part in value


def place_text(where: Location, above: str = "") -> str:
    """A place for people.

    >>> place_text(("queries", "hot", "sinks", 0))
    'queries.hot.sinks[0]'
    """
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in where)
    return (above + "".join(parts)).removeprefix(".")


def _text(details: Sequence[ErrorDetails], where: Location, model: type[BaseModel]) -> str:
    kinds = {detail["type"] for detail in details}
    *parents, key = where or ("",)
    if "extra_forbidden" in kinds:
        return f"unknown key{did_you_mean(str(key), [name for name, _ in _fields(model, parents)])}"
    if "missing" in kinds:
        meanings = [meaning(each, name) for each, name, field in _keys(model, parents) if key in (name, field.alias)]
        told = next((each.splitlines()[0].rstrip(".") for each in meanings if each), None)
        return "is missing" if told is None else f"is missing ({told})"
    if "union_tag_not_found" in kinds:
        tags = [tag for name, field in _fields(model, parents) if name == "kind" for tag in get_args(field.annotation)]
        return f"is missing: use one of {', '.join(tags)}"
    stated = [str(detail["ctx"]["error"]) for detail in details if detail["type"] == "value_error"]
    if stated:
        return stated[0]
    # Each member of a union says what it wants.
    wanted = " or ".join(dict.fromkeys(_wanted(detail) for detail in details))
    given = details[0]["ctx"]["tag"] if "union_tag_invalid" in kinds else details[0]["input"]
    known = [word for detail in details for word in _words(detail)]
    hint = did_you_mean(given, known) if isinstance(given, str) else ""
    return f"must be {wanted}, not {_given(masked_value(str(key), given))}{hint}"


def _wanted(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in _TYPES:
        return _TYPES[kind]
    if kind in _BOUNDS:
        word, key = _BOUNDS[kind]
        return f"{word} {context[key]:g}"
    if kind == "literal_error":
        return str(context["expected"])
    if kind == "union_tag_invalid":
        return f"one of {', '.join(_words(detail))}"
    if kind == "too_short":
        return f"a list with at least {context['min_length']} in it"
    text = detail["msg"].removeprefix("Input should be ").removeprefix("Input should ")
    return text[:1].lower() + text[1:]


def _words(detail: ErrorDetails) -> list[str]:
    """The words that would be right."""
    context = detail.get("ctx", {})
    return _QUOTED.findall(str(context.get("expected_tags") or context.get("expected") or ""))


def _given(value: Any) -> str:
    """A value as TOML writes it, at most a line of it.

    >>> _given(True), _given("x"), _given({"a": 1})
    ('true', "'x'", 'a table')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a table"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fields(model: type[BaseModel], where: Sequence[str | int]) -> list[tuple[str, FieldInfo]]:
    """The keys that a place can have."""
    return [(field.alias or name, field) for _, name, field in _keys(model, where)]


def _keys(model: type[BaseModel], where: Sequence[str | int]) -> Iterator[tuple[type[BaseModel], str, FieldInfo]]:
    """The same, each with the model that has it and its name there."""
    for each in _models(model, where):
        yield from ((each, name, field) for name, field in each.model_fields.items())


def _models(annotation: Any, where: Sequence[str | int]) -> Iterator[type[BaseModel]]:
    """The models that are allowed at a place: a field's type, a value of a table, an item of a list, any of a union."""
    origin = get_origin(annotation)
    if origin in (dict, list):
        if where:
            yield from _models(get_args(annotation)[-1], where[1:])
    elif origin is Annotated:
        yield from _models(get_args(annotation)[0], where)
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _models(member, where)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not where:
            yield annotation
            return
        for name, field in annotation.model_fields.items():
            if where[0] in (name, field.alias):
                yield from _models(field.annotation, where[1:])

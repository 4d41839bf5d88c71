"""From what pydantic says to what a person wants to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from freshet.app.problems import Problem, did_you_mean

Location = Sequence[str | int]

_TYPES: Final = {
    "string_type": "a text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
}


def problems_of(error: ValidationError, model: type[BaseModel], place: str = "") -> list[Problem]:
    """Every mistake with its place below ``place``, and what would be right."""
    return [Problem(_place(place, detail["loc"]), _text(detail, model)) for detail in error.errors()]


def _place(above: str, location: Location) -> str:
    """``("queries", "hot", "sinks", 0)`` as ``queries.hot.sinks[0]``."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return (above + "".join(parts)).removeprefix(".")


def _text(detail: ErrorDetails, model: type[BaseModel]) -> str:
    kind, given = detail["type"], detail["input"]
    context = detail.get("ctx", {})
    if kind == "extra_forbidden":
        *parents, key = detail["loc"]
        return f"unknown key{did_you_mean(str(key), _keys(model, parents))}"
    if kind == "missing":
        return f"is missing{_meaning(model, detail['loc'])}"
    if kind == "literal_error":
        return f"must be {context['expected']}, not {given!r}"
    if kind == "value_error":
        return str(context["error"])
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}, not {given!r}"
    text = detail["msg"].replace("Input should be", "must be")
    return f"{text[:1].lower()}{text[1:]}, not {given!r}"


def _meaning(model: type[BaseModel], location: Location) -> str:
    *parents, key = location
    found = _model(model, parents)
    for name, field in found.model_fields.items() if found else ():
        if key in (name, field.alias) and field.description:
            return f" ({field.description.splitlines()[0].rstrip('.')})"
    return ""


def _keys(model: type[BaseModel], location: Location) -> list[str]:
    found = _model(model, location)
    return [field.alias or name for name, field in found.model_fields.items()] if found else []


def _model(annotation: Any, location: Location) -> type[BaseModel] | None:
    """The model at a place: a field's type, a value of a table, an item of a list."""
    if get_origin(annotation) in (dict, list):
        return _model(get_args(annotation)[-1], location[1:]) if location else None
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return None
    if not location:
        return annotation
    field = annotation.model_fields.get(str(location[0]))
    return _model(field.annotation, location[1:]) if field else None

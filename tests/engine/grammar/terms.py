"""Expressions and aggregates at random, in both languages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from tests.engine.grammar.forms import Kind, Term

T = TypeVar("T")
Scope = Sequence[Term]
"""The columns that an expression may name."""
COMPARED: tuple[Kind, ...] = ("int", "float", "text", "time")


def pick(draw: random.Random, choices: Sequence[T]) -> T:
    return draw.choice(choices)


def chance(draw: random.Random, in_ten: int) -> bool:
    """True in so many cases of ten."""
    return draw.random() * 10 < in_ten


def of_kind(scope: Scope, *kinds: Kind) -> list[Term]:
    return [term for term in scope if term.kind in kinds]


def _make(form: str, kind: Kind, *parts: Term | str | int, duck: str | None = None) -> Term:
    texts = [part.text if isinstance(part, Term) else str(part) for part in parts]
    ducks = [part.duck if isinstance(part, Term) else str(part) for part in parts]
    return Term(form.format(*texts), (duck or form).format(*ducks), kind)


def literal(draw: random.Random, kind: Kind) -> Term:
    match kind:
        case "int":
            return _make("{0}", kind, pick(draw, [0, 1, 2, 3, -1]))
        case "float":
            return _make("CAST({0} AS DOUBLE)", kind, pick(draw, ["0", "1", "0.5", "2.25"]))
        case _:
            return _make("'{0}'", "text", pick(draw, ["a", "b", "ab"]))


def term(draw: random.Random, scope: Scope, kind: Kind, depth: int = 2) -> Term:
    """An expression of a type over at least one column."""
    columns = of_kind(scope, kind)
    if depth == 0 or kind == "time" or (columns and not chance(draw, 3)):
        return pick(draw, columns) if columns else _converted(draw, scope, kind)
    return _composed(draw, scope, kind, depth - 1)


def _converted(draw: random.Random, scope: Scope, kind: Kind) -> Term:
    """A column of another type, cast."""
    column = pick(draw, of_kind(scope, *COMPARED))
    if column.kind == "time":
        floor = "(({0} % 60000000 + 60000000) % 60000000) // 1000000"
        column = _make("second({0})", "int", column, duck=f"({floor})")
    if column.kind == kind:
        return column
    return _cast(column, kind)


def _cast(value: Term, kind: Kind) -> Term:
    match kind, value.kind:
        case "text", "float":
            return _cast(_cast(value, "int"), "text")
        case "text", _:
            return _make("CAST({0} AS STRING)", kind, value, duck="CAST({0} AS VARCHAR)")
        case "float", "text":
            return _cast(_cast(value, "int"), "float")
        case "float", _:
            return _make("CAST({0} AS DOUBLE)", kind, value)
        case _, "float":
            return _make("CAST({0} AS INT)", kind, value, duck="TRY_CAST(trunc({0}) AS INT)")
    return _make("CAST({0} AS INT)", kind, value, duck="TRY_CAST({0} AS INT)")


def _composed(draw: random.Random, scope: Scope, kind: Kind, depth: int) -> Term:
    def some(other: Kind) -> Term:
        return term(draw, scope, other, depth)

    shared = ["case", "coalesce"]
    match kind:
        case "int":
            form = pick(draw, ["plus", "minus", "times", "modulo", "cast", "length", "whole", "abs", "flag", *shared])
        case "float":
            form = pick(draw, ["plus", "half", "cast", "times", "divide", *shared])
        case "text":
            form = pick(draw, ["upper", "concat", "first", "cast", *shared])
        case _:
            return _condition(draw, scope, depth)
    match form:
        case "case":
            form = "(CASE WHEN {0} THEN {1} ELSE {2} END)" if chance(draw, 7) else "(CASE WHEN {0} THEN {1} END)"
            return _make(form, kind, _condition(draw, scope, depth), some(kind), some(kind))
        case "coalesce":
            return _make("coalesce({0}, {1})", kind, some(kind), some(kind))
        case "plus":
            return _make("({0} + {1})", kind, some(kind), some(kind))
        case "minus":
            return _make("({0} - {1})", kind, some(kind), some(kind))
        case "times":
            return _make("({0} * 2)", kind, some(kind))
        case "modulo":
            return _make("({0} % 3)", kind, some(kind))
        case "abs":
            return _make("abs({0})", kind, some(kind))
        case "length":
            return _make("length({0})", kind, some("text"))
        case "flag":
            return _make("CAST({0} AS INT)", kind, _condition(draw, scope, depth))
        case "whole":
            return _cast(some("float"), kind)
        case "half":
            return _make("({0} / 2)", kind, some("int"))
        case "divide":
            number = some("int")
            guarded = "(CASE WHEN {1} = 0 THEN NULL ELSE {0} / {1} END)"
            quotient = _make(
                "(({0} * 6) / {1})", kind, some("int"), number, duck=f"({guarded.replace('{0}', '({0} * 6)')})"
            )
            # Quotients are rounded, and so their sums would depend on the order: halves of whole numbers are not.
            return _make("({0} / 2)", kind, _cast(quotient, "int"))
        case "upper":
            return _make("upper({0})", kind, some("text"))
        case "concat":
            return _make("({0} || '7')", kind, some("text"))
        case "first":
            return _make("substring({0}, 1, 1)", kind, some("text"))
    others: dict[Kind, Kind] = {"text": "int", "float": "int", "int": "text"}
    return _cast(some(others[kind]), kind)


def condition(draw: random.Random, scope: Scope) -> Term:
    """A condition on the columns of a scope."""
    return _condition(draw, scope, pick(draw, (0, 1, 1, 2)))


def condition_value(draw: random.Random, scope: Scope) -> Term:
    """A number that depends on aggregates."""
    made = condition(draw, scope)
    form = "(CASE WHEN {} THEN 1 ELSE 0 END)"
    return Term(form.format(made.text), form.format(made.duck), "int")


def _condition(draw: random.Random, scope: Scope, depth: int) -> Term:
    if depth > 0 and chance(draw, 2):
        joined = pick(draw, ["({0} OR {1})", "({0} OR {1})", "({0} AND {1})", "(NOT {0})"])
        return _make(joined, "bool", _condition(draw, scope, depth - 1), _condition(draw, scope, depth - 1))
    kind = pick(draw, of_kind(scope, *COMPARED)).kind
    if kind == "time" and len(set(of_kind(scope, "time"))) == 1:
        # There is no other time to compare it with.
        kind = "int"
    value = term(draw, scope, kind, depth)
    forms = ["compare", "compare", "null", "in"] + (["like", "like"] if kind == "text" else [])
    match pick(draw, forms):
        case "null":
            return _make(pick(draw, ["({0} IS NOT NULL)", "({0} IS NOT NULL)", "({0} IS NULL)"]), "bool", value)
        case "in" if kind != "time":
            word = pick(draw, ["NOT IN", "NOT IN", "IN"])
            return _make(f"({{0}} {word} ({{1}}, {{2}}))", "bool", value, literal(draw, kind), literal(draw, kind))
        case "like":
            pattern = pick(draw, ["a%", "%b", "_", "%7%", "A_%"])
            return _make(f"({{0}} {pick(draw, ['LIKE', 'NOT LIKE', 'NOT LIKE'])} '{pattern}')", "bool", value)
    columns = [column for column in of_kind(scope, kind) if column != value]
    other = pick(draw, columns) if columns and (kind == "time" or chance(draw, 4)) else literal(draw, kind)
    word = pick(draw, [">=", "<>", "<=", "<>", "<", ">", "=", "<=>"])
    duck = "({0} IS NOT DISTINCT FROM {1})" if word == "<=>" else None
    return _make(f"({{0}} {word} {{1}})", "bool", value, other, duck=duck)


def call(draw: random.Random, scope: Scope, exact: bool = False, bounded: bool = True) -> Term:
    """An aggregate; exact: one whose value can be compared; not bounded: one that remembers a few numbers only."""
    names = ["count", "total", "sum", "min", "max", "count_if"]
    names += ["distinct"] if bounded else []
    names += [] if exact else ["avg", "stddev"]
    names += [] if exact or not bounded else ["percentile"]
    name = pick(draw, names)
    filtered = _condition(draw, scope, 1) if name != "percentile" and chance(draw, 2) else None
    made = _call(draw, scope, name)
    return made if filtered is None else _make("{0} FILTER (WHERE {1})", made.kind, made, filtered)


def _call(draw: random.Random, scope: Scope, name: str) -> Term:
    kinds = sorted({column.kind for column in of_kind(scope, *COMPARED)})
    numbers: list[Kind] = ["int", "float"]
    match name:
        case "count":
            return Term("count(*)", "count(*)", "int")
        case "total":
            return _make("count({0})", "int", term(draw, scope, pick(draw, kinds), 1))
        case "count_if":
            return _make("count_if({0})", "int", _condition(draw, scope, 1), duck="count(CASE WHEN {0} THEN 1 END)")
        case "distinct":
            return _make("count(DISTINCT {0})", "int", term(draw, scope, pick(draw, kinds), 1))
        case "sum":
            kind = pick(draw, numbers)
            return _make("sum({0})", kind, term(draw, scope, kind, 1))
        case "min" | "max":
            kind = pick(draw, kinds)
            return _make(f"{name}({{0}})", kind, term(draw, scope, kind, 1))
        case "avg":
            return _make("avg({0})", "rough", term(draw, scope, pick(draw, numbers), 1))
        case "stddev":
            function = pick(draw, ["stddev", "stddev_pop", "variance", "var_pop"])
            return _make(f"{function}({{0}})", "rough", term(draw, scope, "int", 1))
    share = pick(draw, ["0.5", "0", "0.25", "0.75", "1"])
    duck = "list_sort(list({0}) FILTER ({0} IS NOT NULL))[greatest(1, ceil({1} * count({0})))::INT]"
    value = _make("({0} * 100)", "int", term(draw, scope, "int", 1))
    if chance(draw, 4):
        value = term(draw, scope, "float", 1)
    return _make("approx_percentile({0}, {1})", "near", value, share, duck=duck)

"""Functions of text. Positions count Unicode characters; all arguments but the text itself are literals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from freshet.kernels.expressions.arrow import decode
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import FunctionRule, Node, Rule, RuleScope, fixed
from freshet.kernels.expressions.types import INT, STRING, is_integral, name
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Value, total
from freshet.kernels.superbox.text_tests import text_test

ArrowFunction = Callable[[pa.Array], pa.Array]

_COST: Final = 30.0
_LONGEST: Final = 2**31 - 1


def _text(node: Node, label: str) -> Node:
    if node.kind != STRING:
        raise Unsupported(f"{label} of {name(node.kind)}")
    return node


def _word(node: Node, label: str) -> str:
    if _text(node, label).is_constant and not node.is_null:
        return str(node.constant)
    raise Unsupported(f"{label} with anything but a literal")


def _whole(node: Node, label: str) -> int:
    if is_integral(node.kind) and node.is_constant and not node.is_null and abs(node.constant) <= 2**31:
        return int(node.constant)
    raise Unsupported(f"{label} with anything but a literal number")


def mapped(key: str, node: Node, kind: pa.DataType, function: ArrowFunction) -> Node:
    """An Arrow function of each string."""

    def evaluate(frame: Frame) -> Value:
        value = node(frame)
        made = decode(value.values.map(function))
        return Value(made.values, made.valid, value.errors, made.array)

    return Node(kind, key, evaluate, (node,), _COST)


def _is_ascii(array: pa.Array) -> bool:
    return pc.all(pc.string_is_ascii(array)).as_py() is not False


_SMALL: Final = "\u019b\u0264\u1c8a\ua7cd\ua7cf\ua7d3\ua7d5\ua7db" + "".join(
    map(chr, [*range(0x10D70, 0x10D86), *range(0x16EBB, 0x16ED4)])
)
_CAPITAL: Final = "\ua7dc\ua7cb\u1c89\ua7cc\ua7ce\ua7d2\ua7d4\ua7da" + "".join(
    map(chr, [*range(0x10D50, 0x10D66), *range(0x16EA0, 0x16EB9)])
)
"""Letters whose other case Spark knows, but not a Python with an older Unicode."""


def _case(label: str, ascii_only: ArrowFunction, full: Callable[[str], str], newer: dict[int, int]) -> FunctionRule:
    """Either case; Arrow maps one character to one, while ß has the capital form SS."""

    def change(array: pa.Array) -> pa.Array:
        if _is_ascii(array):
            return ascii_only(array)
        return pa.array([None if word is None else full(word.translate(newer)) for word in array.to_pylist()], STRING)

    return _simple(label, STRING, change)


def _simple(label: str, kind: pa.DataType, function: ArrowFunction) -> FunctionRule:
    return fixed(1, lambda node: mapped(f"{label}({node.key})", _text(node, label), kind, function))


def part(node: Node, start: int, length: int = _LONGEST) -> Node:
    """``substring``: counts from 1, or from the end if the start is negative; positions before the text are empty."""
    first = start - 1 if start > 0 else start
    stop: int | None = first + length
    if length <= 0:
        first, stop = 0, 0
    elif start < 0 <= first + length:
        stop = None

    def cut(array: pa.Array) -> pa.Array:
        return pc.utf8_slice_codeunits(array, first, stop)

    return mapped(f"substring({node.key},{first},{stop})", _text(node, "substring"), STRING, cut)


def _substring(scope: RuleScope, nodes: Sequence[Node]) -> Node:
    if len(nodes) not in (2, 3):
        raise Unsupported("substring without two or three arguments")
    return part(nodes[0], *(_whole(node, "substring") for node in nodes[1:]))


def _left(node: Node, count: Node) -> Node:
    return part(node, 1, _whole(count, "left"))


def _right(node: Node, count: Node) -> Node:
    length = _whole(count, "right")
    return part(node, -length) if length > 0 else part(node, 1, 0)


def concat(nodes: Sequence[Node]) -> Node:
    """NULL where any part is NULL."""
    for node in nodes:
        _text(node, "concat")
    if all(node.is_constant for node in nodes):
        raise Unsupported("concat of literals")

    def evaluate(frame: Frame) -> Value:
        arrays, errors = [], None
        for node in nodes:
            if node.is_constant:
                arrays.append(pa.scalar(node.constant, STRING))
                continue
            value = node(frame)
            arrays.append(value.values.array)
            errors = total(errors, value.errors)
        made = decode(pc.binary_join_element_wise(*arrays, "", null_handling="emit_null"))
        return Value(made.values, made.valid, errors, made.array)

    return Node(STRING, f"concat({','.join(node.key for node in nodes)})", evaluate, nodes, _COST * len(nodes))


def _replace(node: Node, old: Node, new: Node) -> Node:
    one, two = _word(old, "replace"), _word(new, "replace")

    def change(array: pa.Array) -> pa.Array:
        return pc.replace_substring(array, one, two) if one else array

    return mapped(f"replace({node.key},{one!r},{two!r})", _text(node, "replace"), STRING, change)


def position(node: Node, part_of_it: Node) -> Node:
    """``instr``: the position, from 1, at which a part first begins; 0 if it does not occur."""
    word = _word(part_of_it, "instr")

    def find(array: pa.Array) -> pa.Array:
        if _is_ascii(array):
            return pc.add(pc.find_substring(array, word), pa.scalar(1, INT))
        return pa.array([None if text is None else text.find(word) + 1 for text in array.to_pylist()], INT)

    return mapped(f"instr({node.key},{word!r})", _text(node, "instr"), INT, find)


def _test_of(label: str, answer: Callable[[pa.Array, str], pa.Array]) -> FunctionRule:
    def function(scope: RuleScope, nodes: Sequence[Node]) -> Node:
        if len(nodes) != 2:
            raise Unsupported(f"{label} without two arguments")
        word = _word(nodes[1], label)
        key = f"{label}({nodes[0].key},{word!r})"
        return text_test(scope, key, _text(nodes[0], label), lambda array: answer(array, word))

    return function


def _trim_rule(scope: RuleScope, expression: exp.Trim) -> Node:
    side, characters = expression.args.get("position"), expression.args.get("expression")
    function = {"LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim}.get(str(side or "").upper(), pc.utf8_trim)
    word = " " if characters is None else _word(scope.compile(characters), "trim")
    node = _text(scope.compile(expression.this), "trim")
    if not word:
        return node
    return mapped(f"trim({side},{word!r},{node.key})", node, STRING, lambda array: function(array, word))


def _substring_rule(scope: RuleScope, expression: exp.Substring) -> Node:
    parts = [expression.this, expression.args.get("start"), expression.args.get("length")]
    return _substring(scope, [scope.compile(each) for each in parts if each is not None])


def _position_rule(scope: RuleScope, expression: exp.StrPosition) -> Node:
    if expression.args.get("position") is not None or expression.args.get("occurrence") is not None:
        raise Unsupported("position from a place on")
    return position(scope.compile(expression.this), scope.compile(expression.args["substr"]))


def _joined_rule(scope: RuleScope, expression: exp.DPipe) -> Node:
    return concat([scope.compile(expression.this), scope.compile(expression.expression)])


def _spaces(function: Any) -> ArrowFunction:
    return lambda array: function(array, " ")


_UPPER: Final = _case("upper", pc.ascii_upper, str.upper, str.maketrans(_SMALL, _CAPITAL))
_LOWER: Final = _case("lower", pc.ascii_lower, str.lower, str.maketrans(_CAPITAL, _SMALL))
_LENGTH: Final = _simple("length", INT, pc.utf8_length)

RULES: Final[dict[type[exp.Expression], Rule]] = {
    exp.Trim: _trim_rule,
    exp.Substring: _substring_rule,
    exp.StrPosition: _position_rule,
    exp.DPipe: _joined_rule,
}
FUNCTIONS: Final[dict[str, FunctionRule]] = {
    "upper": _UPPER,
    "ucase": _UPPER,
    "lower": _LOWER,
    "lcase": _LOWER,
    "length": _LENGTH,
    "len": _LENGTH,
    "char_length": _LENGTH,
    "character_length": _LENGTH,
    "ltrim": _simple("ltrim", STRING, _spaces(pc.utf8_ltrim)),
    "rtrim": _simple("rtrim", STRING, _spaces(pc.utf8_rtrim)),
    "substr": _substring,
    "left": fixed(2, _left),
    "right": fixed(2, _right),
    "concat": lambda scope, nodes: concat(nodes),
    "replace": fixed(3, _replace),
    "instr": fixed(2, position),
    "locate": fixed(2, lambda word, node: position(node, word)),
    "startswith": _test_of("startswith", pc.starts_with),
    "endswith": _test_of("endswith", pc.ends_with),
    "contains": _test_of("contains", pc.match_substring),
}

"""What keys mean: the docstrings below the fields of a model.

Pydantic can collect them, too (``use_attribute_docstrings``). It then reads the source of every model whenever the
module is imported, which takes a sixth of the time of ``freshet check``. They are needed only when a key is missing.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise

from pydantic import BaseModel


def meaning(model: type[BaseModel], field: str) -> str | None:
    """The docstring of a field; None if it has none.

    >>> from freshet.app.declared.config import StreamSection
    >>> meaning(StreamSection, "columns").splitlines()[0]
    'Columns and types, as Spark DDL: "ts timestamp, size int".'
    """
    for each in model.__mro__:
        if field in vars(each).get("__annotations__", {}):
            return _docstrings(each).get(field)
    return None


def _docstrings(model: type) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text)
        for field, below in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        if isinstance(text := below.value.value, str)
    }

"""Spark's analysis: which columns an operator makes, without running anything."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from freshet.model import Operator, UserError, parse_schema, schema_text
from freshet.model.schema import with_arrival
from freshet.spark.driver.failures import message
from freshet.spark.worker.functions import register_functions
from freshet.sql import safe


class Analysis:
    """Asks Spark's analyser about expressions over given columns."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._empty = lru_cache(maxsize=64)(self._make_empty)

    def plain(self, operator: Operator, schema: pa.Schema) -> pa.Schema:
        """The columns behind a plain operator over tuples of a schema.

        Raises:
            UserError: Spark does not accept an expression.
        """
        rows = self._empty(schema)
        register_functions(self._session, " ".join(operator.expressions))
        try:
            if operator.keeps is not None:
                _ = rows.where(safe(operator.keeps)).schema
            if operator.makes is None:
                return schema
            made = [F.expr(safe(text)).alias(name) for name, text in operator.makes]
            return _arrow(rows.select(*made).schema, operator.name)
        except PySparkException as error:
            raise UserError(f"operator {operator.name}: {message(error)}") from None

    def _make_empty(self, schema: pa.Schema) -> DataFrame:
        return self._session.createDataFrame([], schema_text(with_arrival(schema)))


def _arrow(schema: StructType, operator: str) -> pa.Schema:
    """By way of DDL, so that a type that Spark computed and the same type that a user declared are equal."""
    for field in schema:
        if field.dataType.typeName() == "void":
            raise UserError(f"operator {operator}: column {field.name} is only NULL: CAST it to a type")
    return parse_schema(", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema), own=True)

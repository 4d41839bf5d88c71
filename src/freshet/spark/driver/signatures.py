"""Which arguments Spark's functions take, asked of Spark: makes ``freshet/sql/check/signatures.txt``.

``python -m freshet.spark.driver.signatures > src/freshet/sql/check/signatures.txt`` after another version of Spark.
"""

from __future__ import annotations

from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from freshet.sql.check.functions import IN_GRAMMAR, functions
from freshet.sql.check.signatures import LETTERS, LOOKED_AT, Signature

MOST: Final = 9
"""Maximum number of arguments tried; a function that takes them all takes any number."""
_MISMATCH: Final = "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"
# A letter stands for several types: a function may accept arrays of one type and refuse those of another.
_EXAMPLES: Final = {
    "array": ("array<int>", "array<string>", "array<array<int>>", "array<struct<a:int,b:int>>", "array<double>"),
    "map": ("map<string,int>", "map<string,string>"),
    "struct": ("struct<a:int>", "struct<a:timestamp,b:timestamp>"),
    "decimal": ("decimal(10,2)",),
}


def signature(session: SparkSession, name: str) -> Signature:
    """What a function takes."""
    conditions = [_condition(session, name, ["NULL"] * count) for count in range(MOST + 1)]
    counts = [count for count, condition in enumerate(conditions) if condition != "WRONG_NUM_ARGS"]
    # If Spark refuses a call for the type of a NULL, the call says nothing about other types.
    tried = [count for count in counts if 0 < count <= LOOKED_AT and conditions[count] != _MISMATCH]
    refused = []
    for place in range(max(tried, default=0)):
        letters = frozenset(LETTERS)
        for count in (count for count in tried if count > place):
            letters = _refused(session, name, count, place, letters)
        refused.append(letters)
    return Signature(frozenset(counts), tuple(refused), unbounded=bool({MOST, MOST - 1} & set(counts)))


def _refused(session: SparkSession, name: str, count: int, place: int, letters: frozenset[str]) -> frozenset[str]:
    """The letters whose types are not allowed at a place, whatever is at the other places."""
    return frozenset(
        letter
        for letter in letters
        if all(
            _condition(session, name, [f"CAST(NULL AS {each})" if at == place else "NULL" for at in range(count)])
            == _MISMATCH
            for each in _EXAMPLES.get(LETTERS[letter], (LETTERS[letter],))
        )
    )


def _condition(session: SparkSession, name: str, arguments: list[str]) -> str | None:
    """Why Spark refuses a call; None: it does not."""
    try:
        # Parsing and analysis happen at once; nothing is run.
        session.sql(f"SELECT {name}({', '.join(arguments)})")
    except PySparkException as error:
        condition = error.getCondition() or ""
        return "WRONG_NUM_ARGS" if condition.startswith("WRONG_NUM_ARGS") else condition
    return None


if __name__ == "__main__":
    from freshet.spark.session.session import open_session

    spark = open_session("signatures", "local[1]")
    for function, kind in functions().items():
        if kind in ("scalar", "aggregate") and function not in (*IN_GRAMMAR, "cast"):
            print(function, signature(spark, function).text(), flush=True)

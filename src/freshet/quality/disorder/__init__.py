"""The order of a stream by a key: how far rows come out of order, how far streams lie behind each other, and how many
rows a join must remember because of it (WU ch. 3).

Functions over arrays say what the words mean, over a whole log. Classes estimate the same in constant memory, row by
row, and the answer does not depend on how the rows are divided into batches.
"""

from freshet.quality.disorder.buffer import (
    JoinInput,
    corrected_rows,
    joined_dependent,
    joined_input,
    log_rows,
    other_factor,
    published_rows,
    sorted_lag,
    sorted_rows,
    worth_resting,
)
from freshet.quality.disorder.dependent import dependent_scrambling
from freshet.quality.disorder.dependent_order import DependentOrder
from freshet.quality.disorder.disorder import Disorder, Judged
from freshet.quality.disorder.heights import KeyHeights
from freshet.quality.disorder.held import predicted_rows, rows_ahead
from freshet.quality.disorder.integer_sketch import IntegerSketch
from freshet.quality.disorder.key_counts import KeyCounts
from freshet.quality.disorder.lag import lag
from freshet.quality.disorder.scrambling import displacements, distances, scrambling_factor
from freshet.quality.disorder.virtual_index import last_index, multiplicity, virtual_index

__all__ = [
    "DependentOrder",
    "Disorder",
    "IntegerSketch",
    "JoinInput",
    "Judged",
    "KeyCounts",
    "KeyHeights",
    "corrected_rows",
    "dependent_scrambling",
    "displacements",
    "distances",
    "joined_dependent",
    "joined_input",
    "lag",
    "last_index",
    "log_rows",
    "multiplicity",
    "other_factor",
    "predicted_rows",
    "published_rows",
    "rows_ahead",
    "scrambling_factor",
    "sorted_lag",
    "sorted_rows",
    "virtual_index",
    "worth_resting",
]

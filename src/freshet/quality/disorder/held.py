"""How many rows a join by ordered keys remembers of an input at most, from the order of its inputs alone."""

from __future__ import annotations

from collections.abc import Sequence

from freshet.quality.disorder.disorder import Disorder


def predicted_rows(own: Disorder, others: Sequence[Disorder]) -> int:
    """Rows of an input that must be remembered for the others at most: all that came since its keys had first passed
    the lowest mark of the others (WU Eq. 3.7 and 3.8, corrected).

    The equation has the scrambling factor, the lag when the row came whose place the latest row of the other takes, and
    the rows since then. Counted from the log, the last two are one number: the rows since the keys had come as far as
    the other's mark. They are counted in the order of arrival, so the factor is in that number, too.

    >>> import numpy as np
    >>> from freshet.model import KeyOrder
    >>> ahead = Disorder().judge(np.arange(100), KeyOrder("k", rows=2)).disorder
    >>> behind = Disorder().judge(np.arange(50), KeyOrder("k", rows=2)).disorder
    >>> predicted_rows(ahead, [behind]), predicted_rows(behind, [ahead])
    (52, 0)
    """
    reached = [own.heights.reached(each.mark + 1) if each.mark is not None else 0 for each in others]
    return own.heights.rows - min(reached, default=own.heights.rows)


def rows_ahead(own: Disorder, others: Sequence[Disorder]) -> int:
    """How many rows an input runs ahead of the one that lags most, disorder included (WU Def. 3.2.6).

    >>> rows_ahead(Disorder(), [])
    0
    """
    newest = [each.heights.newest for each in others]
    reached = [0 if key is None else own.heights.reached(key + 1) for key in newest]
    return own.heights.rows - min(reached, default=own.heights.rows)

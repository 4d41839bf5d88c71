"""What an application declares of the optimizer."""

from __future__ import annotations

from typing import Any, Final, Literal, cast, get_args

from freshet.model import Promises, UserError
from freshet.model.promises.decision_table import DecisionTable
from freshet.model.promises.look_settings import OptimizerMode
from freshet.policies import create

RanksName = Literal["shipped", "measured", "predict"]
Ranks = RanksName | DecisionTable
"""Where the ranks of strategies come from: MavStream's table, the one that ``freshet calibrate`` has measured, what
each strategy is predicted to bring about, or a table of the user's."""
_WORDS: Final = get_args(RanksName)


def ranks_of(given: Any) -> Ranks:
    """The ranks that a user writes: a word, or a table by measure.

    >>> ranks_of("shipped"), ranks_of({"latency": {"pcs": 2, "fcfs": 1}}).strategies
    ('shipped', ('pcs', 'fcfs'))
    >>> ranks_of("guessed")
    Traceback (most recent call last):
    freshet.model.errors.UserError: ranks must be 'shipped', 'measured', 'predict' or a table of ranks, not 'guessed'
    """
    if isinstance(given, DecisionTable):
        return given
    if isinstance(given, str):
        if given not in _WORDS:
            words = ", ".join(map(repr, _WORDS))
            raise UserError(f"ranks must be {words} or a table of ranks, not {given!r}")
        return cast(RanksName, given)
    try:
        return DecisionTable.parse(given, create)
    except UserError as error:
        raise UserError(f"ranks {error}") from None


def check_mode(given: Any) -> OptimizerMode:
    """Refuses what the optimizer cannot do.

    >>> check_mode("on")
    Traceback (most recent call last):
    freshet.model.errors.UserError: optimizer must be 'act', 'advise' or 'off', not 'on'
    """
    if given not in get_args(OptimizerMode):
        raise UserError(f"optimizer must be 'act', 'advise' or 'off', not {given!r}")
    return cast(OptimizerMode, given)


def check_strategy(query: str, given: Any) -> str:
    """Refuses a strategy that is no policy.

    >>> check_strategy("q", "pcs(500)")
    'pcs(500)'
    """
    if not isinstance(given, str):
        raise UserError(f"query {query}: a strategy is the name of a policy, such as 'pcs', not {given!r}")
    try:
        create(given)
    except UserError as error:
        raise UserError(f"query {query}: strategy: {error}") from None
    return given


def check_ranked(query: str, promises: Promises, ranks: Ranks) -> None:
    """Refuses a table of the user's that has no ranks for a measure of which a query expects something."""
    if isinstance(ranks, DecisionTable):
        try:
            ranks.check_measures([wish.measure for wish in promises.expected])
        except UserError as error:
            raise UserError(f"query {query}: {error} in [app] ranks") from None

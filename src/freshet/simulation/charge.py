"""What scheduling itself costs in simulated time."""

from __future__ import annotations

from freshet.policies import Policy, RatioPolicy


class Charge:
    """Seconds for the operations on a policy's calendar queue since the last step (FAS §6).

    The paper charges each operation like the cheapest operator, without saying which operations those are, so both
    kinds have their own price. Policies without a calendar queue cost nothing.

    Args:
        policy: Whose queue it is.
        extract: Seconds for taking an entry out.
        insert: Seconds for putting an entry in or changing its priority.

    >>> from freshet.policies import RateBased
    >>> policy = RateBased()
    >>> charge = Charge(policy, extract=1.0, insert=0.5)
    >>> policy.queue.put(7, priority=0.1); policy.queue.put(8, priority=0.2); _ = policy.queue.remove(7)
    >>> charge.due(), charge.due()
    (2.0, 0.0)
    """

    def __init__(self, policy: Policy, extract: float = 0.0, insert: float = 0.0) -> None:
        self._queue = policy.queue if isinstance(policy, RatioPolicy) else None
        self._extract, self._insert = extract, insert
        self._paid = 0.0

    def due(self) -> float:
        """Seconds that the next step begins later."""
        if self._queue is None:
            return 0.0
        total = self._extract * self._queue.extracts + self._insert * self._queue.inserts
        due, self._paid = total - self._paid, total
        return due

"""Overlapping queries: work that several queries need runs once for all of them (CAR §6.3.1-6.3.2).

A shared operator has the same name in the graph of each of these queries; the name says what the operator does. So the
network has one node for it, and the queries read it. Tuples keep their arrival, so latencies, ``now()`` and the answers
stay the same.
"""

from freshet.policies.sharing.reasons import why_not
from freshet.policies.sharing.sharing import Mode, Sharing, share, shared_by
from freshet.policies.sharing.worth import OperatorFigures

__all__ = ["Mode", "OperatorFigures", "Sharing", "share", "shared_by", "why_not"]

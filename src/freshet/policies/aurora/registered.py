"""The schedulers of Aurora (CAR ch. 3 and 4), for the registry."""

from __future__ import annotations

from typing import Final

from freshet.policies.aurora.bucketing import Bucketing, BucketingFused, BucketingPush
from freshet.policies.aurora.fixed_priority import FixedPriority, FixedPriorityFused, FixedPriorityPush
from freshet.policies.aurora.slope_slack import SlopeSlack, SlopeSlackFused, SlopeSlackPush
from freshet.policies.aurora.two_level import AutoTraversal, BoxAtATime, MinCost, MinLatency, MinMemory, TupleAtATime
from freshet.policies.base import Policy

AURORA: Final[tuple[type[Policy], ...]] = (
    FixedPriority, FixedPriorityPush, FixedPriorityFused,
    SlopeSlack, SlopeSlackPush, SlopeSlackFused,
    Bucketing, BucketingPush, BucketingFused,
    AutoTraversal, MinCost, MinLatency, MinMemory, BoxAtATime, TupleAtATime,
)  # fmt: skip
"""All of them; their names are in the classes."""

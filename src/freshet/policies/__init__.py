"""Scheduling policies: which operators run next, over which waiting tuples. One file each.

Policies are pure: they see a read-only :class:`~freshet.model.View`, get notices of what changed and return
a :class:`~freshet.model.Decision`. The same object schedules simulated time and Spark.
"""

from freshet.policies.aurora.bucketing import Bucketing, BucketingFused, BucketingPush
from freshet.policies.aurora.fixed_priority import FixedPriority, FixedPriorityFused, FixedPriorityPush
from freshet.policies.aurora.slope_slack import SlopeSlack, SlopeSlackFused, SlopeSlackPush
from freshet.policies.aurora.trains import QueueShare, RowLimit, TimeQuantum, Trains, WholeQueue
from freshet.policies.aurora.two_level import BoxAtATime, TupleAtATime, TwoLevel
from freshet.policies.base import Policy
from freshet.policies.everything import Everything
from freshet.policies.fcfs import FirstComeFirstServed
from freshet.policies.mavstream.master import MasterScheduler
from freshet.policies.mavstream.pcs import PathCapacity
from freshet.policies.mavstream.segment import SegmentScheduling
from freshet.policies.mavstream.simplified_segment import SimplifiedSegment
from freshet.policies.mavstream.wrr import WeightedRoundRobin
from freshet.policies.ratio.base import RatioPolicy
from freshet.policies.ratio.fas_mcq import FreshnessAware
from freshet.policies.ratio.price import BusyPrice, FixedPrice, LoadPrice, OverheadPrice, Price
from freshet.policies.ratio.rb_mcq import RateBased
from freshet.policies.ratio.set_step import SetStep
from freshet.policies.ratio.steps import OneQuery, StepChooser
from freshet.policies.reason import Candidate, Reason
from freshet.policies.registry import create, forms, names
from freshet.policies.round_robin import RoundRobin
from freshet.policies.weights import weights_from_subscribers

__all__ = [
    "BoxAtATime",
    "Bucketing",
    "BucketingFused",
    "BucketingPush",
    "BusyPrice",
    "Candidate",
    "Everything",
    "FirstComeFirstServed",
    "FixedPrice",
    "FixedPriority",
    "FixedPriorityFused",
    "FixedPriorityPush",
    "FreshnessAware",
    "LoadPrice",
    "MasterScheduler",
    "OneQuery",
    "OverheadPrice",
    "PathCapacity",
    "Policy",
    "Price",
    "QueueShare",
    "RateBased",
    "RatioPolicy",
    "Reason",
    "RoundRobin",
    "RowLimit",
    "SegmentScheduling",
    "SetStep",
    "SimplifiedSegment",
    "SlopeSlack",
    "SlopeSlackFused",
    "SlopeSlackPush",
    "StepChooser",
    "TimeQuantum",
    "Trains",
    "TupleAtATime",
    "TwoLevel",
    "WeightedRoundRobin",
    "WholeQueue",
    "create",
    "forms",
    "names",
    "weights_from_subscribers",
]

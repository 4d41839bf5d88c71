"""Periodic queries with deadlines (RT §4): what they cost, and how good their answers can be in time.

Nothing here has a clock: whoever asks says when. The same code decides in simulated time and on Spark.
"""

from freshet.model.promises.level_settings import LevelAim, LevelMode, LevelSettings, WhenFull
from freshet.quality.periodic.answer_quality import answer_quality, kept_along, kept_at
from freshet.quality.periodic.create import create_levels
from freshet.quality.periodic.error_bounds import Estimate, avg_estimate, count_estimate, sum_estimate
from freshet.quality.periodic.feasible import Fit, PeriodicLoad, fit
from freshet.quality.periodic.feedback import FeedbackController, FeedbackLevels, Gains
from freshet.quality.periodic.instance_meter import InstanceFigures, InstanceMeter
from freshet.quality.periodic.level_rule import BestEffort, LevelRule, PlannedLevel, ReadyInstance, uniform
from freshet.quality.periodic.levels import (
    LevelDemand,
    average_levels,
    balanced_levels,
    fair_levels,
    pseudo_deadlines,
)
from freshet.quality.periodic.managed import InstanceSampler, ManagedLevels, Sampled
from freshet.quality.periodic.operator_cost import OperatorCost
from freshet.quality.periodic.plan_time import PlanStep, PlanTime
from freshet.quality.periodic.predicted import PredictedLevels
from freshet.quality.periodic.query_model import PlannedOperator, ProfiledRun, QueryModel
from freshet.quality.periodic.refinement import largest_ratio
from freshet.quality.periodic.sample_sizes import Sampling, aims, dynamic_sizes, fixed_sizes
from freshet.quality.periodic.sampling_error import selectivity_error, time_error

__all__ = [
    "BestEffort",
    "Estimate",
    "FeedbackController",
    "FeedbackLevels",
    "Fit",
    "Gains",
    "InstanceFigures",
    "InstanceMeter",
    "InstanceSampler",
    "LevelAim",
    "LevelDemand",
    "LevelMode",
    "LevelRule",
    "LevelSettings",
    "ManagedLevels",
    "OperatorCost",
    "PeriodicLoad",
    "PlanStep",
    "PlanTime",
    "PlannedLevel",
    "PlannedOperator",
    "PredictedLevels",
    "ProfiledRun",
    "QueryModel",
    "ReadyInstance",
    "Sampled",
    "Sampling",
    "WhenFull",
    "aims",
    "answer_quality",
    "average_levels",
    "avg_estimate",
    "balanced_levels",
    "count_estimate",
    "create_levels",
    "dynamic_sizes",
    "fair_levels",
    "fit",
    "fixed_sizes",
    "kept_along",
    "kept_at",
    "largest_ratio",
    "pseudo_deadlines",
    "selectivity_error",
    "sum_estimate",
    "time_error",
    "uniform",
]

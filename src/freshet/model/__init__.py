"""The vocabulary of Freshet: what every other package speaks about, and nothing that runs.

Times inside decisions are seconds as ``float``; times inside the log are microseconds as ``int``
(Spark's resolution). A tuple's place is its *offset* in a log; everything that waits is a range of offsets.
"""

from freshet.model.errors import FreshetError, UserError
from freshet.model.graph import QueryGraph
from freshet.model.key_order import KeyOrder
from freshet.model.names import state_stream, version_stream
from freshet.model.network import Edge, Network, NetworkNode
from freshet.model.operators import (
    Call,
    Filter,
    Fold,
    Join,
    Lifetime,
    Lookup,
    Moving,
    Operator,
    Panes,
    Project,
    Union,
)
from freshet.model.promises.curve import Curve
from freshet.model.promises.expectation import Expectation, Expectations
from freshet.model.promises.keep import Keep, Missing, MissingKind
from freshet.model.promises.measure import MEASURES, QosMeasure
from freshet.model.promises.priority import PriorityClass, priority_classes
from freshet.model.promises.promise import Promises
from freshet.model.query import Query, Start
from freshet.model.scheduling.instance import InputWindow, Instance, InstanceInput, releases_between
from freshet.model.scheduling.paths import lead_to, paths_to, push_through
from freshet.model.scheduling.plan import (
    NOTHING,
    Abandon,
    Action,
    Decision,
    InstanceRun,
    LeaveBehind,
    Preempt,
    RunInstances,
    RunStep,
    Shed,
    Step,
)
from freshet.model.scheduling.train import Segment, SegmentFile, Train
from freshet.model.scheduling.unit import Chain, ChainResult, Commit, Input, OperatorRun, State, Unit, UnitResult
from freshet.model.scheduling.view import InstanceView, OperatorView, QueryView, View
from freshet.model.schema import ARRIVAL, parse_schema, schema_text
from freshet.model.stream import Stream
from freshet.model.units import duration_text, parse_bytes, parse_duration

__all__ = [
    "ARRIVAL",
    "MEASURES",
    "NOTHING",
    "Abandon",
    "Action",
    "Call",
    "Chain",
    "ChainResult",
    "Commit",
    "Curve",
    "Decision",
    "Edge",
    "Expectation",
    "Expectations",
    "Filter",
    "Fold",
    "FreshetError",
    "Input",
    "InputWindow",
    "Instance",
    "InstanceInput",
    "InstanceRun",
    "InstanceView",
    "Join",
    "Keep",
    "KeyOrder",
    "LeaveBehind",
    "Lifetime",
    "Lookup",
    "Missing",
    "MissingKind",
    "Moving",
    "Network",
    "NetworkNode",
    "Operator",
    "OperatorRun",
    "OperatorView",
    "Panes",
    "Preempt",
    "PriorityClass",
    "Project",
    "Promises",
    "QosMeasure",
    "Query",
    "QueryGraph",
    "QueryView",
    "RunInstances",
    "RunStep",
    "Segment",
    "SegmentFile",
    "Shed",
    "Start",
    "State",
    "Step",
    "Stream",
    "Train",
    "Union",
    "Unit",
    "UnitResult",
    "UserError",
    "View",
    "duration_text",
    "lead_to",
    "parse_bytes",
    "parse_duration",
    "parse_schema",
    "paths_to",
    "priority_classes",
    "push_through",
    "releases_between",
    "schema_text",
    "state_stream",
    "version_stream",
]

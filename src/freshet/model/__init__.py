"""The vocabulary of Freshet: what every other package speaks about, and nothing that runs.

Times inside decisions are seconds as ``float``; times inside the log are microseconds as ``int``
(Spark's resolution). A tuple's place is its *offset* in a log; everything that waits is a range of offsets.
"""

from freshet.model.curve import Curve
from freshet.model.errors import FreshetError, NotRunnable, UserError
from freshet.model.fold import Call, Fold, Moving, Panes, Side, Validity, is_state, is_state_of, state_stream
from freshet.model.lookup import Lookup, is_version_stream, version_stream
from freshet.model.network import Network, Node
from freshet.model.operator import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Operator,
    Project,
    SetOperation,
    Union,
    Window,
)
from freshet.model.plan import Chain, Plan, Step
from freshet.model.query import Path, PathOperator, Query, QueryGraph
from freshet.model.schema import ARRIVAL, parse_schema, schema_text
from freshet.model.stream import Stream
from freshet.model.train import Segment, SegmentFile, Train
from freshet.model.unit import ChainResult, Commit, OperatorRun, State, Unit, UnitResult, Work
from freshet.model.units import duration_text, parse_bytes, parse_duration
from freshet.model.view import OperatorView, QueryView, View

__all__ = [
    "ARRIVAL",
    "Aggregate",
    "Call",
    "Chain",
    "ChainResult",
    "Commit",
    "Curve",
    "Distinct",
    "Filter",
    "Fold",
    "FreshetError",
    "Join",
    "Lookup",
    "Moving",
    "Network",
    "Node",
    "NotRunnable",
    "Operator",
    "OperatorRun",
    "OperatorView",
    "Panes",
    "Path",
    "PathOperator",
    "Plan",
    "Project",
    "Query",
    "QueryGraph",
    "QueryView",
    "Segment",
    "SegmentFile",
    "SetOperation",
    "Side",
    "State",
    "Step",
    "Stream",
    "Train",
    "Union",
    "Unit",
    "UnitResult",
    "UserError",
    "Validity",
    "View",
    "Window",
    "Work",
    "duration_text",
    "is_state",
    "is_state_of",
    "is_version_stream",
    "parse_bytes",
    "parse_duration",
    "parse_schema",
    "schema_text",
    "state_stream",
    "version_stream",
]

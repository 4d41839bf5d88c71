"""The vocabulary of Freshet: what every other package speaks about, and nothing that runs.

Times inside decisions are seconds as ``float``; times inside the log are microseconds as ``int``
(Spark's resolution). A tuple's place is its *offset* in a log; everything that waits is a range of offsets.
"""

from freshet.model.curve import Curve
from freshet.model.errors import FreshetError, NotRunnable, UserError
from freshet.model.graph import QueryGraph
from freshet.model.names import is_state, is_state_of, is_version_stream, state_stream, version_stream
from freshet.model.network import Network, Node
from freshet.model.operators import (
    Call,
    Filter,
    Fold,
    Join,
    Lookup,
    Moving,
    Operator,
    Panes,
    Project,
    Side,
    Union,
    Validity,
)
from freshet.model.paths import Path
from freshet.model.plan import Chain, Plan, Step
from freshet.model.query import Query
from freshet.model.schema import ARRIVAL, parse_schema, schema_text
from freshet.model.stream import Stream
from freshet.model.train import Segment, SegmentFile, Train
from freshet.model.unit import ChainResult, Commit, OperatorRun, State, Unit, UnitResult, Work
from freshet.model.units import duration_text, parse_bytes, parse_duration
from freshet.model.view import OperatorView, QueryView, View

__all__ = [
    "ARRIVAL",
    "Call",
    "Chain",
    "ChainResult",
    "Commit",
    "Curve",
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
    "Plan",
    "Project",
    "Query",
    "QueryGraph",
    "QueryView",
    "Segment",
    "SegmentFile",
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

"""Testing an application without Spark: the real log, engine and kernels in this process, on a simulated clock.

>>> from freshet import App
>>> from freshet.testing import answers
>>> app = App("shop")
>>> app.stream("orders", "id int, amount double")
>>> app.query("large", "SELECT id FROM orders WHERE amount > 100")
>>> answers(app, {"orders": [{"id": 1, "amount": 250.0}, {"id": 2, "amount": 50.0}]})
{'large': [{'id': 1}]}
"""

from freshet.testing.answers import answers, check_invariant
from freshet.testing.compare import assert_same, difference
from freshet.testing.executor import InProcessExecutor
from freshet.testing.faults import Faults, Killed
from freshet.testing.ledger import remaining
from freshet.testing.local_run import LocalRun
from freshet.testing.policies import OneBox, RandomSteps, RandomStrategies
from freshet.testing.schedule import Schedule
from freshet.testing.script import Heartbeat, Push, Put

__all__ = [
    "Faults",
    "Heartbeat",
    "InProcessExecutor",
    "Killed",
    "LocalRun",
    "OneBox",
    "Push",
    "Put",
    "RandomSteps",
    "RandomStrategies",
    "Schedule",
    "answers",
    "assert_same",
    "check_invariant",
    "difference",
    "remaining",
]

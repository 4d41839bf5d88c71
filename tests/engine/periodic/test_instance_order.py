"""In which order instances of periodic queries run and are committed."""

from __future__ import annotations

from freshet import App
from freshet.engine.events import Committed, Event, Submitted
from freshet.model import Decision, Step, View
from freshet.policies import Policy
from freshet.testing import LocalRun
from freshet.testing.local_run import START


class UnitOrder:
    """Notes the order in which units of queries begin and are committed."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def tell(self, event: Event) -> None:
        if isinstance(event, Submitted | Committed):
            unit = event.unit if isinstance(event, Submitted) else event.result.unit
            names = [stream for chain in unit.chains for stream in chain.writes]
            self.order.append(f"{type(event).__name__} {' '.join(names)}")


def test_the_next_instance_runs_while_one_is_committed() -> None:
    app = App("p")
    app.stream("s", "k string, v int")
    for name in ("a", "b"):
        app.query(name, "SELECT k, v FROM s [RANGE 2 s] PERIOD 2 s")
    with LocalRun(app, workers=1) as run:
        run.engine.observers.append(seen := UnitOrder())
        run.push("s", [{"k": "x", "v": 1}], at=START + 0.5)
        run.heartbeat("s", START + 2.0)
        assert run.drain()
        first, second = (each.split()[1] for each in seen.order if each.startswith("Submitted"))
        wanted = [f"Submitted {first}", f"Submitted {second}", f"Committed {first}", f"Committed {second}"]
        assert seen.order == wanted
        assert [len(run.rows(name)) for name in ("a", "b")] == [1, 1]


class Stubborn(Policy):
    """Asks for a step of all operators, always."""

    name = "stubborn"

    def decide(self, view: View) -> Decision:
        return Decision.run(Step(tuple(range(len(view.operators)))))


def test_a_step_runs_no_operator_of_a_periodic_query() -> None:
    app = App("p")
    app.stream("s", "k string, v int")
    app.query("twice", "SELECT a.v FROM s [PARTITION BY k ROWS 1] a JOIN s [RANGE 2 s] b ON a.k = b.k PERIOD 2 s")
    app.query("each", "SELECT v FROM s")
    with LocalRun(app, policy=Stubborn()) as run:
        run.engine.observers.append(seen := UnitOrder())
        for number in range(1, 4):
            run.push("s", [{"k": "x", "v": number}], at=START + 2 * number - 0.5)
            run.heartbeat("s", START + 2 * number)
        assert run.drain()
        assert sorted(each for each in seen.order if each.startswith("Submitted")) == [
            "Submitted each",
            *["Submitted twice"] * 3,
        ]
        assert [row["v"] for row in run.rows("twice")] == [1, 2, 3]

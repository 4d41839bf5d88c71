"""Everything at once: one superbox of all that waits."""

from __future__ import annotations

from typing import ClassVar

from freshet.model import Plan, Step, View
from freshet.policies.base import Policy, rest_of_path


class Everything(Policy):
    """Runs all waiting tuples through all queries in one step.

    The right choice while the overhead of a step outweighs its work, and the baseline to beat where it
    does not: there the cheapest query waits for the dearest one.
    """

    name: ClassVar[str] = "everything"

    def decide(self, view: View) -> Plan:
        """One step with the rest of the path of every ready operator."""
        chains = tuple(rest_of_path(view, operator) for operator in view.ready)
        return (Step(chains),) if chains else ()

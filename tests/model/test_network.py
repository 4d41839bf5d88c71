"""Numbers of operators, names of queues."""

from __future__ import annotations

import pytest

from freshet.model import Filter, Network, NotRunnable, Project, Query, QueryGraph, Union, UserError


def union() -> Query:
    graph = QueryGraph(
        {
            "q.left": Filter("q.left", "v > 1"),
            "q.right": Filter("q.right", "v > 2"),
            "q.union": Union("q.union"),
            "q.project": Project("q.project", (("v", "v"),)),
        },
        {"q.left": ("s",), "q.right": ("t",), "q.union": ("q.left", "q.right"), "q.project": ("q.union",)},
        "q.project",
    )
    return Query("q", "", graph)


def test_a_union_has_a_path_for_each_branch_and_names_stay_unique() -> None:
    network = Network()
    assert network.add(union()) == ((0, 1), (2, 3))
    assert [node.name for node in network.nodes] == ["q.left@1", "q.project@1", "q.right@2", "q.project@2"]
    assert [node.reads for node in network.nodes] == ["s", "q.project@1", "t", "q.project@2"]
    assert [node.writes for node in network.nodes] == ["q.project@1", "q", "q.project@2", "q"]
    assert [node.is_first for node in network.nodes] == [True, False, True, False]
    assert [node.is_last for node in network.nodes] == [False, True, False, True]


def test_numbers_are_never_used_again() -> None:
    network = Network()
    network.add(union())
    with pytest.raises(UserError, match="query q is there already"):
        network.add(union())
    network.drop("q")
    assert "q" not in network
    assert network.add(union()) == ((4, 5), (6, 7))


def test_what_is_not_run_yet_is_said() -> None:
    with pytest.raises(NotRunnable, match="PERIOD"):
        _ = Query("p", "", union().graph, period=10.0).paths


def test_a_weight_is_a_share() -> None:
    with pytest.raises(UserError, match="outside"):
        Query("q", "", union().graph, weight=0.0)

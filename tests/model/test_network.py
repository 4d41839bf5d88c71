"""One node for each operator, an edge for each input, names of cursors and queues."""

from __future__ import annotations

import pytest

from freshet.model import Filter, Network, Project, Promises, Query, QueryGraph, Union, UserError


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


def sharing(name: str, *more: str) -> Query:
    operators = [
        Filter("shared:1", "v > 1"),
        *(Filter(f"{name}.filter_{place + 2}", text) for place, text in enumerate(more)),
        Project(f"{name}.project", (("v", "v"),)),
    ]
    return Query(name, "", QueryGraph.straight("s", operators))


def test_a_union_is_one_node_with_an_edge_for_each_input() -> None:
    network = Network()
    network.add(union())
    nodes = {node.name: node for node in network.nodes}
    assert list(nodes) == ["q.left", "q.right", "q.union", "q.project"]
    assert [(edge.kind, edge.stream, edge.reader) for edge in nodes["q.union"].edges] == [
        ("queue", "q.union:0", "q.union:0"),
        ("queue", "q.union:1", "q.union:1"),
    ]
    assert [edge.reader for edge in nodes["q.left"].edges] == ["q.left"]
    assert nodes["q.union"].inputs == (nodes["q.left"].number, nodes["q.right"].number)
    assert network.root("q") == nodes["q.project"].number
    assert network.writes(network.root("q")) == ("q",)


def test_a_node_that_queries_share_is_there_once() -> None:
    network = Network()
    assert network.add(sharing("a", "v < 9")) == (0, 1, 2)
    assert network.add(sharing("b")) == (0, 3)
    assert network.queries(0) == ("a", "b")
    assert network.writes(0) == ("a.filter_2", "b.project")
    assert network.drop("a") == (1, 2)
    assert network.writes(0) == ("b.project",)
    assert network.drop("b") == (0, 3)


def test_an_output_that_is_read_is_an_edge_of_its_own_kind() -> None:
    network = Network()
    network.add(sharing("a"))
    network.add(Query("b", "", QueryGraph.straight("a", [Filter("b.filter_1", "v > 3")])))
    [edge] = network.nodes[-1].edges
    assert (edge.kind, edge.stream, edge.source) == ("output", "a", None)


def test_numbers_are_used_again_once_they_are_free() -> None:
    network = Network()
    network.add(union())
    with pytest.raises(UserError, match="query q already exists"):
        network.add(union())
    gone = network.drop("q")
    assert "q" not in network
    assert network.add(union()) == (4, 5, 6, 7)
    network.free(gone)
    network.drop("q")
    assert network.add(union()) == (0, 1, 2, 3)


def test_a_node_has_a_greater_number_than_those_that_it_reads() -> None:
    network = Network()
    network.add(union())
    network.add(sharing("a"))
    network.free(network.drop("q"))
    assert network.add(sharing("b")) == (4, 6)
    assert network.add(union()) == (0, 1, 2, 3)


def test_what_was_dropped_leaves_no_trace() -> None:
    network = Network()
    network.add(sharing("a"))
    network.add(sharing("b", "v < 9"))
    network.free(network.drop("b"))
    assert [node.name for node in network.nodes] == ["shared:1", "a.project", "", ""]
    assert network.writes(0) == ("a.project",)
    assert network.add(sharing("c")) == (0, 2)
    assert [node.name for node in network.nodes] == ["shared:1", "a.project", "c.project", ""]


def test_a_weight_is_a_share() -> None:
    with pytest.raises(UserError, match="outside"):
        Promises(weight=0.0)

"""Each bug of irregular graph codes is found where two invocations meet, and nothing is found in the right codes."""

from collections import Counter

import pytest

import bankshot
from tests.findings.irregular_graphs import BUGS, Kernel, bindings, graphs, kernels, meets, render, workgroups

CASES = [(kernel, graph) for kernel in kernels() if kernel.bug != "guard" for graph in ("ring", "star", "random")]
GRAPHS = {**graphs("usual"), **graphs("tiny")}  # two have the same name: the star is the tiny one
ORDERED = ("worklist", "paths")  # whose right results depend on the order of atomics


@pytest.mark.parametrize(("kernel", "name"), CASES, ids=[f"{kernel}, {name}" for kernel, name in CASES])
def test_each_bug_is_found_and_nothing_else(kernel: Kernel, name: str) -> None:
    graph = GRAPHS[name]
    run = bankshot.simulate(
        bankshot.check(render(kernel), uniformity="off"),
        grid=workgroups(kernel, graph),
        bindings=bindings(kernel, graph),
        overrides={"N": len(graph[0]) - 1},
        replay=False,
    )
    wanted = {BUGS[kernel.bug]} if kernel.bug and meets(kernel, graph) else set()
    allowed = {"atomic-order"} if kernel.pattern in ORDERED else set()
    assert {finding.code for finding in run.findings} - allowed == wanted


@pytest.mark.parametrize("sizes", ["usual", "tiny"])
@pytest.mark.parametrize("kernel", [kernel for kernel in kernels() if kernel.bug == "guard"], ids=str)
def test_a_check_apart_from_its_store_is_found_exactly_where_an_order_changes_an_output(
    kernel: Kernel, sizes: str
) -> None:
    module = bankshot.check(render(kernel), uniformity="off")
    for name, graph in graphs(sizes).items():
        size = {"grid": workgroups(kernel, graph), "overrides": {"N": len(graph[0]) - 1}}
        run = bankshot.simulate(module, bindings=bindings(kernel, graph), probes="races", **size)
        assert {finding.code for finding in run.findings} == ({"atomic-order"} if meets(kernel, graph) else set()), name


def test_few_graphs_are_too_simple_for_an_order_to_change_an_output() -> None:
    cases = [
        (kernel, graph, sizes)
        for kernel in kernels()
        if kernel.bug == "guard"
        for sizes in ("usual", "tiny")
        for graph in graphs(sizes).values()
    ]
    harmless = Counter(sizes for kernel, graph, sizes in cases if not meets(kernel, graph))
    assert (len(cases), harmless) == (96, {"usual": 4, "tiny": 13})


def test_the_cases_have_every_bug_on_every_mapping() -> None:
    kinds = {(kernel.mapping, kernel.bug) for kernel, name in CASES if meets(kernel, GRAPHS[name])}
    assert kinds == {
        (mapping, bug)
        for mapping in ("invocation", "subgroup", "workgroup")
        for bug in ("", *BUGS)
        if bug != "guard" and (bug != "sync" or mapping == "workgroup")
    }

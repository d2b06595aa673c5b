"""Schedules of loops: optimal ones against enumeration, refuted ones, bounds at a time-out."""

import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.kernels.pipelining.loop_files import load_loop, shipped_loops
from dse_evaluators.kernels.pipelining.loop_graph import Dependence, LoopGraph, LoopOperation
from dse_evaluators.kernels.pipelining.modulo_scheduling import (
    LeastInterval,
    Machine,
    ModuloSchedule,
    find_least_interval,
    solve_interval,
)
from dse_evaluators.kernels.pipelining.software_pipeline import SoftwarePipeline

pytest.importorskip("ortools")
LIMIT_S = 60.0


def violations(graph, machine, made: ModuloSchedule) -> list[str]:
    """Return what a schedule violates, computed cycle by cycle."""
    found = [f"{key} is used twice" for key, count in uses(graph, machine, made) if count > 1]
    registers: dict[int, int] = {}
    for place, one in enumerate(graph.operations):
        lives = []
        for d in (each for each in graph.dependences if each.source == place):
            lives.append(made.starts[d.use] + made.interval * d.distance - made.starts[place])
            crosses = bool(machine.warps) and made.warps[place] != made.warps[d.use]
            found += ["too early"] * (lives[-1] < graph.delay(d) + machine.spill * crosses)
        warp = made.warps[place] if machine.warps else 0
        copies = max(1, -(-max(lives, default=0) // made.interval)) if lives else 0
        registers[warp] = registers.get(warp, 0) + copies * one.registers
    if machine.registers and max(registers.values()) > machine.registers:
        found.append(f"registers {registers}")
    return found


def uses(graph, machine, made: ModuloSchedule):
    """Return how often each unit and warp is used in each cycle of an interval."""
    used: dict[tuple[str, int], int] = {}
    for place, (one, start) in enumerate(zip(graph.operations, made.starts, strict=True)):
        lanes = [(one.unit, one.occupancy)]
        lanes += [(f"warp {made.warps[place]}", one.blocks)] if machine.warps else []
        for name, cycles in lanes:
            for cycle in range(cycles):
                key = name, (start + cycle) % made.interval
                used[key] = used.get(key, 0) + 1
    return used.items()


@st.composite
def small_loops(draw):
    """Return a loop of three operations, one of whose results is used in a later iteration."""
    operations = tuple(
        LoopOperation(
            name=name,
            unit=draw(st.sampled_from("xy")),
            latency=draw(st.integers(0, 3)),
            occupancy=draw(st.integers(0, 2)),
            blocks=draw(st.integers(0, 2)),
            registers=draw(st.integers(0, 2)),
        )
        for name in "abc"
    )
    pairs = draw(st.sets(st.sampled_from([(0, 1), (0, 2), (1, 2)])))
    back = draw(st.sampled_from([(2, 0), (1, 1), (2, 1)]))
    dependences = [Dependence(source=s, use=u, distance=0) for s, u in sorted(pairs)]
    last = Dependence(source=back[0], use=back[1], distance=draw(st.integers(1, 2)))
    return LoopGraph(operations=operations, dependences=(*dependences, last))


machines = st.builds(
    Machine,
    warps=st.integers(0, 2),
    registers=st.integers(0, 5),
    spill=st.integers(0, 1),
)


def enumerate_intervals(graph, machine, last):
    """Return the least interval with a schedule that ends within its bound; ``None``: there is none.

    The first operation begins in one of the first intervals, and every warp is tried.
    """
    warps = list(product(range(max(machine.warps, 1)), repeat=3)) if machine.warps else [()]
    for interval in range(1, last + 1):
        for starts in product(range(4 * interval + 3), repeat=3):
            for chosen in warps:
                made = ModuloSchedule(interval=interval, starts=starts, warps=chosen)
                if not violations(graph, machine, made):
                    return interval
    return None


@given(graph=small_loops(), machine=machines)
@settings(max_examples=10, deadline=None)
def test_a_schedule_keeps_its_constraints_and_no_smaller_interval_has_one(graph, machine):
    found = find_least_interval(graph, machine, LIMIT_S)
    if found.schedule is not None:
        assert violations(graph, machine, found.schedule) == []
        assert found.ended == "optimal"
    tried = min(found.schedule.interval if found.schedule else 3, 3)
    best = enumerate_intervals(graph, machine, tried)
    wanted = found.schedule.interval if found.schedule else None
    assert best == wanted or (best is None and (wanted is None or wanted > tried))


def test_an_iteration_of_three_cycles_starts_every_second_one():
    """The example of figure 1 of Twill: two products on one unit, a softmax on another one."""
    found = find_least_interval(load_loop("attention"), Machine(), LIMIT_S)
    assert (found.schedule.interval, found.bound, found.ended) == (2, 2, "optimal")
    assert load_loop("attention").sequential == 3


def test_more_warps_reach_the_lower_bound():
    graph = load_loop("flash-attention-blackwell-waiting")
    found = [
        find_least_interval(graph, Machine(warps=warps), LIMIT_S).schedule.interval
        for warps in (1, 2, 3)
    ]
    assert found[0] > found[1] > found[2] == max(graph.resource_bound, graph.recurrence_bound)


def test_a_published_loop_has_its_published_interval_and_no_smaller_one():
    """FlashAttention on Blackwell: Triton's modulo scheduler states 1,325 cycles, 1,199 of a unit."""
    graph = load_loop("flash-attention-blackwell")
    assert (graph.recurrence_bound, graph.resource_bound) == (1325, 1199)
    assert solve_interval(graph, Machine(), 1324, LIMIT_S)[0] == "infeasible"
    answer, made = solve_interval(graph, Machine(), 1325, LIMIT_S)
    assert answer == "feasible"
    assert violations(graph, Machine(), made) == []


def test_a_recurrence_bounds_the_interval():
    """Three operations of 5 + 7 + 4 cycles, whose result is used two iterations later: 8 cycles."""
    operations = tuple(
        LoopOperation(name=n, unit=n, latency=c, occupancy=1, blocks=1, registers=0)
        for n, c in (("a", 5), ("b", 7), ("c", 4))
    )
    chain = ((0, 1, 0), (1, 2, 0), (2, 0, 2))
    graph = LoopGraph(
        operations=operations,
        dependences=tuple(Dependence(source=s, use=u, distance=d) for s, u, d in chain),
    )
    assert (graph.recurrence_bound, graph.resource_bound) == (8, 1)
    assert solve_interval(graph, Machine(), 7, LIMIT_S)[0] == "infeasible"
    assert solve_interval(graph, Machine(), 8, LIMIT_S)[0] == "feasible"


def test_too_few_registers_make_a_design_infeasible():
    made = SoftwarePipeline(loop="flash-attention", warps=2)
    metrics = made.evaluate(Batch.of([{"registers": 10}, {"registers": 1000}]))
    assert metrics.failures.keys() == {0}
    assert metrics.failures[0].kind == "infeasible"
    assert (metrics.columns["interval"][1], metrics.columns["proven"][1]) == (8, 1)
    assert metrics.columns["speedup"][1] == 23 / 8


def test_without_time_there_is_a_bound_and_no_schedule():
    graph = load_loop("flash-attention")
    found = find_least_interval(graph, Machine(warps=2), 0.0)
    assert found == LeastInterval(schedule=None, bound=8, ended="time-out")
    made = SoftwarePipeline(loop="flash-attention", limit=1e-9)
    failure = made.evaluate(Batch.of([{}])).failures[0]
    assert failure.kind == "raised"
    assert "its interval is at least 8 cycles" in failure.reason


def test_a_loop_of_the_user_has_defaults(tmp_path):
    file = tmp_path / "loop.csv"
    file.write_text("operation,unit,latency,after\nload,copy,9,\nsum,alu,2,load sum/1\n")
    graph = load_loop(str(file))
    first, second = graph.operations
    assert (first.blocks, first.occupancy, first.registers, second.latency) == (9, 1, 0, 2)
    assert find_least_interval(graph, Machine(), LIMIT_S).schedule.interval == 2
    assert find_least_interval(graph, Machine(warps=1), LIMIT_S).schedule.interval == 11


def test_a_use_can_have_a_latency_of_its_own(tmp_path):
    """An accumulator is ready for its next sum after 4 of the 9 cycles of its latency."""
    file = tmp_path / "loop.csv"
    file.write_text("operation,unit,latency,after\nsum,alu,9,sum/1:4\n")
    assert find_least_interval(load_loop(str(file)), Machine(), LIMIT_S).schedule.interval == 4
    file.write_text("operation,unit,latency,after\nsum,alu,9,sum/1\n")
    assert find_least_interval(load_loop(str(file)), Machine(), LIMIT_S).schedule.interval == 9


def triton_file(tmp_path, **changes):
    """Write a graph of Triton's modulo scheduler: a load, and a product that adds to itself."""
    load = {"id": 7, "op_kind": "load", "pipeline": "TMA", "latency": 90}
    product = {"id": 8, "op_kind": "mma", "pipeline": "TC", "latency": 60}
    nodes = [each | {"self_latency": 5, "occupancy": 20} for each in (load, product)]
    edges = [
        {"src": 7, "dst": 8, "distance": 0, "latency": 90},
        {"src": 8, "dst": 8, "distance": 1, "latency": 25},
    ]
    inner = {"is_outer": False, "ddg": {"nodes": nodes, "edges": edges}} | changes
    file = tmp_path / "ddg.json"
    file.write_text(json.dumps({"loops": [inner, {**inner, "is_outer": True}]}))
    return str(file)


def test_a_graph_of_triton_is_read(tmp_path):
    graph = load_loop(triton_file(tmp_path))
    assert [one.unit for one in graph.operations] == ["TMA", "TC"]
    assert (graph.resource_bound, graph.recurrence_bound) == (20, 25)
    assert find_least_interval(graph, Machine(warps=1), LIMIT_S).schedule.interval == 25


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"is_outer": True}, "has 0 inner loops"),
        ({"ddg": {"nodes": [], "edges": []}}, "loops.0.ddg.nodes: List should have at least 1"),
        ({"ddg": 3}, "loops.0.ddg: "),
    ],
)
def test_graphs_of_triton_with_mistakes_are_refused(tmp_path, changes, message):
    with pytest.raises(SpecError, match=message):
        load_loop(triton_file(tmp_path, **changes))


def test_a_file_that_is_no_json_is_refused_with_its_line(tmp_path):
    file = tmp_path / "ddg.json"
    file.write_text('{"loops": [\n}')
    with pytest.raises(SpecError, match="the file is no JSON") as caught:
        load_loop(str(file))
    assert str(caught.value.where).endswith("ddg.json:2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("operation,unit\na,x\n", "no column 'latency'"),
        ("operation,unit,latency\n", "there are no rows"),
        ("operation,unit,latency\na,x,1\na,x,1\n", "two operations 'a'"),
        ("operation,unit,latency\na,x,-1\n", "latency '-1' is no number"),
        ("operation,unit,latency,after\na,x,1,b\n", "no operation 'b'"),
        ("operation,unit,latency,after\na,x,1,a/x\n", "distance 'x' is no number"),
        ("operation,unit,latency,after\na,x,1,a/1:x\n", "latency 'x' is no number"),
        ("operation,unit,latency,after\na,x,1,b\nb,x,1,a\n", "wait for one another"),
    ],
)
def test_files_with_mistakes_are_refused(tmp_path, text, message):
    file = tmp_path / "loop.csv"
    file.write_text(text)
    with pytest.raises(SpecError, match=message):
        load_loop(str(file))


def test_names_and_limits_with_mistakes_are_refused():
    blackwell = {"flash-attention-blackwell", "flash-attention-blackwell-waiting"}
    assert set(shipped_loops()) == {"attention", "flash-attention"} | blackwell
    with pytest.raises(SpecError, match="no loop 'atention'"):
        SoftwarePipeline(loop="atention")
    with pytest.raises(PluginError, match="limit is 0"):
        SoftwarePipeline(loop="attention", limit=0)

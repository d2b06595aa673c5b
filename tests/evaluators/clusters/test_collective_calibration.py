"""Constants of collectives are recovered from the output of NCCL's tests, and used by studies."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import dse
from dse.cli.app import app
from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.collective_rows import read_measured_collectives
from dse_evaluators.clusters.collective_time import CollectiveTime
from dse_evaluators.clusters.collectives import CollectiveConstants, seconds
from dse_evaluators.clusters.own_system import system_from
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.clusters.training.training import Training

TRUE = CollectiveConstants(latency_s=2.4e-5, bytes_per_s=2.1e11, pipelining=0.3)
SIZES = [1 << power for power in range(10, 31)]
COLUMNS = (
    "#       size         count      type   redop    root     time   algbw   busbw #wrong"
    "     time   algbw   busbw #wrong"
)


def printed(program="all_reduce_perf", collective="all_reduce", ranks=8, hosts=1, constants=TRUE):
    """Output of NCCL's tests for collectives of known constants, times within 2 % of them."""
    rng = np.random.default_rng(0)
    took_s = seconds(collective, np.array(SIZES, dtype=float), ranks, constants)
    took_s = took_s * rng.uniform(0.98, 1.02, len(SIZES))
    lines = [
        "# nccl-tests version 2.17.6 nccl-headers=22501 nccl-library=22501",
        f"# Collective test starting: {program}",
        "# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824 step: 2(factor) warmup iters: 5",
        "#",
        "# Using devices",
        *(
            f"#  Rank {rank:2d} Group  0 Pid {900 + rank} on  node{rank * hosts // ranks} device "
            f" {rank} [0000:0{rank}:00] NVIDIA H100 80GB HBM3"
            for rank in range(ranks)
        ),
        "#",
        "#                                        out-of-place                       in-place",
        COLUMNS,
        "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)         (us)  (GB/s)",
    ]
    for size, one in zip(SIZES, took_s, strict=True):
        rate = size / one / 1e9
        cells = f"{one * 1e6:.2f} {rate:.2f} {rate:.2f} 0"
        lines.append(f"{size:12d} {size // 4:12d} float sum -1 {cells} 1.00 {rate:.2f} 1.0 N/A")
    return "\n".join([*lines, "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 99.9", ""])


@pytest.fixture
def node(tmp_path, monkeypatch):
    """Folder with the output of an all-reduce of 8 ranks and of an all-to-all of 4."""
    monkeypatch.chdir(tmp_path)
    both = printed() + printed("alltoall_perf", "all_to_all", ranks=4)
    (tmp_path / "nccl.txt").write_text(both)
    return tmp_path


def test_constants_are_recovered_and_errors_are_on_held_out_sizes(node):
    found = dse.calibrate_collectives("nccl.txt", "mine.yaml", like="h100-dgx")
    kept = yaml.safe_load((node / "mine.yaml").read_text())
    assert kept["like"] == "h100-dgx"
    first, second = kept["fabric"]["collectives"]
    assert (first["collective"], first["ranks"]) == ("all_reduce", 8)
    assert (second["collective"], second["ranks"]) == ("all_to_all", 4)
    for row in (first, second):
        assert row["latency"] == pytest.approx(TRUE.latency_s, rel=0.05)
        assert row["bandwidth"] == pytest.approx(TRUE.bytes_per_s, rel=0.05)
        assert (row["smallest"], row["largest"]) == (1 << 10, 1 << 30)
    assert [one.points for one in found.errors] == [10, 10]
    assert all(one.mean < 0.03 < one.naive_mean for one in found.errors)


def test_evaluators_use_the_fitted_collectives(node):
    dse.calibrate_collectives("nccl.txt", "mine.yaml", like="h100-dgx")
    size = 64 << 20
    design = Batch.of([{"size": size, "ranks": 8}])
    mine = CollectiveTime(system="./mine.yaml", collective="all_reduce").evaluate(design).columns
    expected = seconds("all_reduce", np.array([float(size)]), 8, TRUE)[0]
    assert mine["time"][0] == pytest.approx(expected, rel=0.05)
    assert mine["extrapolated"][0] == 0.0
    wide = Batch.of([{"size": 4 << 30, "ranks": 8}])
    wider = CollectiveTime(system="./mine.yaml", collective="all_reduce").evaluate(wide).columns
    assert wider["extrapolated"][0] == 1.0
    ours = CollectiveTime(system="h100-dgx", collective="all_gather").evaluate(design).columns
    other = CollectiveTime(system="./mine.yaml", collective="all_gather").evaluate(design).columns
    assert other["time"][0] == ours["time"][0]
    plan = Batch.of([{"tp": 8, "batch": 64}])
    times = [
        Serving(model="llama3-70b", system=one).evaluate(plan).columns["tpot"][0]
        for one in ("h100-dgx", "./mine.yaml")
    ]
    assert times[1] > times[0]
    step = Batch.of([{"tp": 8, "pp": 1, "dp": 8, "microbatch": 1, "zero": 1}])
    steps = [
        Training(model="llama3-8b", global_batch=64, system=one).evaluate(step).columns["step_time"]
        for one in ("h100-dgx", "./mine.yaml")
    ]
    assert steps[0][0] != steps[1][0]


def test_a_list_of_systems_is_an_input(node):
    dse.calibrate_collectives("nccl.txt", "mine.yaml", like="h100-dgx")
    evaluator = CollectiveTime(
        system=["h100-dgx", "./mine.yaml"], collective="all_reduce", ranks=8, size="64 MB"
    )
    assert "system" in evaluator.reads
    batch = Batch.of([{"system": "h100-dgx"}, {"system": "mine"}])
    times = evaluator.evaluate(batch).columns["time"]
    assert times[1] > times[0]
    assert evaluator.version != CollectiveTime(system="h100-dgx").version
    with pytest.raises(SpecError, match="'h100-dgx' twice"):
        CollectiveTime(system=["h100-dgx", "h100-dgx"])
    with pytest.raises(SpecError, match="an empty list"):
        CollectiveTime(system=[])


def test_csv_has_the_same_series(node):
    (node / "rows.csv").write_text(
        "collective,ranks,size_bytes,time_us\n"
        + "".join(
            f"{one.collective},{one.ranks},{one.size_bytes},{one.seconds * 1e6!r}\n"
            for one in read_measured_collectives(node / "nccl.txt")
        )
    )
    a, b = (
        dse.calibrate_collectives(name, "mine.yaml", like="h100-dgx").contents["fabric"]
        for name in ("nccl.txt", "rows.csv")
    )
    assert a == b


def test_series_that_do_not_determine_constants_are_left_out(node):
    lines = printed("all_gather_perf", "all_gather", hosts=2).splitlines(keepends=True)
    (node / "nccl.txt").write_text(printed() + "".join(lines))
    words = ["calibrate", "collectives", "nccl.txt", "--like", "h100-dgx", "-o", "mine.yaml"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "all_gather, 8 ranks: constants between nodes are not fitted" in result.output
    head = printed().splitlines(keepends=True)
    (node / "few.txt").write_text("".join(head[:22]))
    with pytest.raises(SpecError, match=r"all_reduce, 8 ranks: 5 sizes, of at least 6"):
        dse.calibrate_collectives("few.txt", "mine.yaml", like="h100-dgx")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("# Collective test starting: all_reduce_perf\n", ""), "nothing names the program"),
        (("all_reduce_perf", "broadcast_perf"), "the program is broadcast_perf"),
        (("#  Rank  7", "#  Rank  0"), "8 processes were 7 ranks"),
        ((" 0 1.00", " 3 1.00"), "3 results of all_reduce_perf were wrong"),
        ((" sum -1 ", " sum -1 x"), "time is 'x"),
    ],
)
def test_damaged_output_is_one_error_with_its_line(node, change, problem):
    (node / "bad.txt").write_text(printed().replace(*change))
    with pytest.raises(SpecError, match=problem) as caught:
        dse.calibrate_collectives("bad.txt", "mine.yaml", like="h100-dgx")
    assert "bad.txt:" in str(caught.value)
    assert caught.value.hint
    assert not (node / "mine.yaml").exists()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("collective,ranks,size_bytes,time\n", "unit of column 'time' is missing"),
        ("collective,ranks,size_bytes,time_us\nall_reduc,8,1024,9\n", "cannot be 'all_reduc'"),
        ("collective,ranks,size_bytes,time_us\nall_reduce,8,1 KB,9\n", "size_bytes is '1 KB'"),
        ("collective,ranks,size_bytes,time_us\nall_reduce,16,1024,9\n", "16 ranks on 1 node"),
        ("collective,ranks,size_bytes,time_us\n", "there are no rows"),
        ("collective,ranks,size_bytes,time_us,x\n", "a column cannot be 'x'"),
    ],
)
def test_wrong_rows_are_one_error(node, text, problem):
    (node / "bad.csv").write_text(text)
    with pytest.raises(SpecError, match=problem):
        dse.calibrate_collectives("bad.csv", "mine.yaml", like="h100-dgx")


def test_times_in_another_unit_are_refused(node):
    rows = read_measured_collectives(node / "nccl.txt")
    (node / "ms.csv").write_text(
        "collective,ranks,size_bytes,time_ms\n"
        + "".join(f"{r.collective},{r.ranks},{r.size_bytes},{r.seconds * 1e6}\n" for r in rows)
    )
    with pytest.raises(SpecError, match="times that of the shipped system"):
        dse.calibrate_collectives("ms.csv", "mine.yaml", like="h100-dgx")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"collective": "all_reduce"}, "has no key 'ranks'"),
        ({"collective": "all_reduc", "ranks": 8}, "has no key 'latency'"),
        ("all_reduce", "cannot be 'all_reduce'"),
        ({"colective": "all_reduce"}, "has no key 'colective'"),
    ],
)
def test_a_malformed_fabric_is_refused(row, problem):
    with pytest.raises(SpecError, match=problem):
        system_from({"like": "h100-dgx", "fabric": {"collectives": [row]}})

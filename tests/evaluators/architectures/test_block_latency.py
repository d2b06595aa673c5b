"""The work of blocks is PyTorch's count, and a network's time is the sum over its table."""

import csv

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.architectures.block_latency import BlockLatency
from dse_evaluators.architectures.block_modules import build_module
from dse_evaluators.architectures.blocks import parse_block

TEXTS = (
    "conv inputs=3 outputs=8 side=15 kernel=5 stride=2",
    "mbconv inputs=8 outputs=12 side=9 kernel=3 stride=2 ratio=3",
    "mbconv inputs=8 outputs=8 side=8",
    "attention width=32 tokens=12 heads=4",
    "ffn width=32 tokens=12 ratio=2",
    "moe width=16 tokens=20 experts=5 active=3 ratio=2",
    "patches inputs=3 side=16 patch=4 width=24",
    "classifier inputs=12 side=4 outputs=10",
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_block_has_the_work_and_the_shape_of_its_module(text):
    block, inputs = parse_block(text), torch.randn(1, *parse_block(text).takes)
    module = build_module(block).eval()
    plain = sdpa_kernel(SDPBackend.MATH)  # of attention, only its products are counted
    with FlopCounterMode(display=False) as counter, torch.no_grad(), plain:
        output = module(inputs)
    weights = sum(one.numel() for one in module.parameters())
    assert block.gives == tuple(output.shape[1:])
    assert block.work == (counter.get_total_flops() // 2, weights)


def test_a_block_of_your_own_table_needs_no_module(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("block,latency\nstem,0.001\nmixer a,0.002\nmixer b,0.004\n")
    made = BlockLatency(blocks=["stem", "{one}", "{one}"], table=str(table), measure="nothing")
    found = made.evaluate(Batch.of([{"one": "mixer  b"}, {"one": "skip"}, {"one": "mixer c"}]))
    assert found.columns["latency"][:2] == pytest.approx([0.009, 0.001])
    assert "mixer c" in found.failures[2].reason


def test_a_cell_of_a_table_that_is_no_time_is_reported_with_its_line(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("block,latency\nstem,0.001\nhead,fast\n")
    with pytest.raises(SpecError, match=r"mine\.csv:3: latency is 'fast'"):
        BlockLatency(blocks=["stem"], table=str(table))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mbconf inputs=8", "no block 'mbconf'"),
        ("conv inputs=8 outputs=8 sides=4", "no size 'sides'"),
        ("conv inputs=8 outputs=8", "has no side"),
        ("conv inputs=8 outputs=8 side=0", "no whole number above 0"),
        ("attention width=30 tokens=4 heads=4", "heads does not fit width"),
    ],
)
def test_a_block_that_cannot_be_is_refused(text, problem):
    with pytest.raises(SpecError, match=problem):
        parse_block(text)


def test_blocks_are_timed_once_and_kept(tmp_path):
    table = tmp_path / "blocks.csv"
    texts = ["conv inputs=1 outputs=4 side=8", "conv inputs=4 outputs=4 side=8"]
    options = {"table": str(table), "limit": "0.02 s", "precision": 0.5}
    first = BlockLatency(blocks=texts, **options).evaluate(Batch.of([{}]))
    again = BlockLatency(blocks=[*texts, texts[1]], **options).evaluate(Batch.of([{}]))
    rows = list(csv.DictReader(table.read_text().splitlines()))
    times = [float(row["latency"]) for row in rows]
    assert len(rows) == 2
    assert again.columns["latency"][0] == pytest.approx(times[0] + 2 * times[1])
    assert first.columns["macs"][0] == 9 * 64 * (4 + 16)


def test_blocks_that_do_not_follow_one_another_are_infeasible(tmp_path):
    texts = ["conv inputs=1 outputs=4 side=8", "classifier inputs=5 side=8 outputs=2"]
    made = BlockLatency(blocks=texts, table=str(tmp_path / "none.csv"))
    assert made.evaluate(Batch.of([{}])).failures[0].kind == "infeasible"

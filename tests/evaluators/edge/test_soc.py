"""A network on a system on chip: its three parts by hand, and both interfaces."""

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.edge.soc import Soc

CHIP = {
    "latency": 0.010,
    "energy": 0.005,
    "transferred": 6e6,
    "software_time": 0.009,
    "dma_bandwidth": 2e9,
    "acp_bandwidth": 6e9,
    "flush_bandwidth": 3e9,
    "accelerator_scaling": 0.85,
    "thread_scaling": 0.75,
    "core_power": 0.5,
    "transfer_energy": 1e-10,
}


def run(**design):
    found = Soc(**CHIP).evaluate(Batch.of([{"threads": 1} | design])).columns
    return {name: column[0] for name, column in found.items()}


def test_a_frame_by_dma_is_the_sum_of_its_parts_with_the_flush():
    found = run()
    assert found["total_latency"] == pytest.approx(0.010 + 0.003 + 0.002 + 0.009)
    assert found["accelerator_share"] == pytest.approx(10 / 24)
    assert found["total_energy"] == pytest.approx(0.005 + 6e-4 + 0.5 * 0.009)


def test_a_coherent_port_needs_no_flush():
    assert run(interface="acp")["transfer_time"] == pytest.approx(0.001)


def test_accelerators_and_threads_shorten_their_own_parts_by_their_scaling():
    found = run(accelerators=8, threads=8)
    assert found["accelerator_time"] == pytest.approx(0.010 / (1 + 7 * 0.85))
    assert found["software_part"] == pytest.approx(0.009 / (1 + 7 * 0.75))


@pytest.mark.parametrize(
    ("design", "part"), [({}, 0), ({"accelerators": 8}, 2), ({"accelerators": 8, "threads": 8}, 1)]
)
def test_the_bottleneck_is_the_longest_part(design, part):
    assert run(**design)["bottleneck"] == part


def test_an_interface_without_bandwidth_or_of_another_name_is_refused():
    with pytest.raises(SpecError, match="dma_bandwidth cannot be 0"):
        Soc(dma_bandwidth="0 B/s")
    with pytest.raises(SpecError, match="interface cannot be 'axi'"):
        Soc(interface="axi")

"""Systems are rows: what joins their devices is known, and how far it can be trusted."""

from __future__ import annotations

import pytest

from dse.errors import SpecError
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.collectives import constants_of
from dse_evaluators.clusters.fabrics import get_check_status, within
from dse_evaluators.clusters.systems import SYSTEMS, network_of, system_of


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_has_a_known_device_and_links(name):
    system = system_of(name)
    assert device_of(system.device).dram_bytes > 0
    assert system.within("all_reduce", 2).bytes_per_s > 0
    assert system.between().bytes_per_s > 0
    assert set(system.checked) <= {"measured", "fitted", "scaled", "assumed", "hand-set"}


def test_devices_of_a_node_are_faster_together_than_over_its_adapters():
    slower = [
        name
        for name, system in SYSTEMS.items()
        if system.within("send_recv", 2).bytes_per_s < system.between().bytes_per_s
    ]
    assert slower == []


def test_adapters_of_half_the_rate_carry_half_of_a_message():
    whole, half = network_of("infiniband-400"), network_of("infiniband-200")
    assert half.message_bytes_per_s == pytest.approx(whole.message_bytes_per_s / 2)
    assert half.latency_s == whole.latency_s


def test_a_lone_message_is_slower_than_what_a_collective_makes_of_the_adapter():
    network = network_of("infiniband-400")
    assert network.message_share(8) < network.share(8)


def test_halves_of_an_all_reduce_that_nobody_measured_start_twice_as_soon():
    whole = constants_of("a100-dgx", "all_reduce", 8)
    half = within("a100-dgx", "all_gather", 8)
    assert half.latency_s == whole.latency_s / 2
    assert half.bytes_per_s == whole.bytes_per_s


def test_measured_halves_are_as_they_were_measured():
    assert within("h100-nccl", "all_gather", 8) == constants_of("h100-nccl", "all_gather", 8)


def test_dies_of_one_package_are_closer_than_those_of_a_node():
    frontier = system_of("frontier")
    rates = [frontier.within("all_reduce", ranks).bytes_per_s for ranks in (2, 4, 8)]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(
    ("ask", "word"),
    [(system_of, "h100-dgx"), (network_of, "slingshot-11"), (get_check_status, "mi250x-if")],
)
def test_an_unknown_name_is_told_with_the_nearest(ask, word):
    with pytest.raises(SpecError) as told:
        ask(word[:-1])
    assert word in str(told.value.hint)

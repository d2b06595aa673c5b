"""Language models on a phone: bytes of a token, heat, and what does not fit."""

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.edge.phone import Phone
from dse_evaluators.workloads.catalogue import table_of

PHONE = {
    "weight_bits": 4.0,
    "bandwidth": 3e10,
    "mac_rate": 1e15,
    "memory": 8e9,
    "power": 8.0,
    "throttled_power": 2.0,
    "throttled_speed": 0.5,
    "thermal_resistance": 5.0,
    "time_constant": 300.0,
    "heating_limit": 25.0,
    "battery": 6e4,
}


def run(**design):
    made = Phone(**{name: one for name, one in PHONE.items() if name not in design})
    return made.evaluate(Batch.of([{"cache_bits": 16.0} | design]))


def test_a_token_reads_all_weights_and_the_keys_and_values_of_512_tokens():
    found = run().columns
    cache = 2 * 32 * 512 * 4096 * 2  # keys and values, layers, tokens, width, bytes
    assert found["read_bytes"][0] == table_of("llama2-7b:decode=512").weights / 2 + cache
    assert found["speed"][0] == pytest.approx(3e10 / found["read_bytes"][0])


def test_slow_units_make_products_the_limit():
    found = run(mac_rate=1e10).columns
    assert found["bottleneck"][0] == 1
    assert found["speed"][0] == pytest.approx(1e10 / table_of("llama2-7b:decode=512").macs)


def test_a_warm_phone_stays_at_its_limit():
    # 25 K allow 5 W: half of the time at 8 W, half at 2 W
    found = run().columns
    assert found["sustained_share"][0] == pytest.approx(0.5 + 0.5 * 0.5)
    assert found["energy_per_token"][0] == pytest.approx(5.0 / found["sustained_speed"][0])


def test_the_time_until_the_limit_follows_a_simulation_of_the_warming():
    warming, seconds, step = 0.0, 0.0, 0.01
    while warming < 25.0:
        warming += (8.0 * 5.0 - warming) / 300.0 * step
        seconds += step
    assert run().columns["cool_time"][0] == pytest.approx(seconds, rel=1e-3)


@pytest.mark.parametrize(
    ("design", "share"),
    [({"power": 4.0}, 1.0), ({"throttled_power": 6.0}, 0.5), ({"thermal_resistance": 0.0}, 1.0)],
)
def test_a_cool_phone_never_throttles_and_one_that_stays_too_warm_always_does(design, share):
    assert run(**design).columns["sustained_share"][0] == pytest.approx(share)


def test_a_phone_that_never_throttles_has_no_time_until_then():
    found = run(power=4.0)
    assert np.isinf(found.columns["cool_time"][0])
    assert found.undefined["cool_time"] == {0: "the phone never throttles"}


def test_seven_billion_weights_of_16_bits_do_not_fit_into_8_gb():
    failures = run(weight_bits=16.0).failures
    assert failures[0].reason.startswith("it needs 1.37e+10 B of the 8e+09 B")


def test_a_workload_that_is_none_and_a_bandwidth_of_zero_are_refused():
    with pytest.raises(SpecError, match="workload cannot be"):
        Phone(workload="llama2-8b:decode=512")
    with pytest.raises(SpecError, match="bandwidth cannot be 0"):
        Phone(bandwidth="0 B/s")

"""What is worked out once for many designs is what each would get alone, to the last bit."""

import numpy as np
import pytest

from dse.core.batch import Batch, Column
from dse_evaluators.accelerators.systolic.systolic import Systolic

DOMAINS = {
    "rows": (4, 8, 64, 256),
    "cols": (8, 16, 32),
    "dataflow": ("os", "ws", "is"),
    "ifmap_sram": (512.0, 4096.0, 65536.0),
    "filter_sram": (1024.0, 16384.0),
    "clock": (0.0, 2e8, 7e8),
    "voltage": (0.5, 0.9),
    "filter_keep": (0.5, 1.0),
}


@pytest.fixture(scope="module")
def batch():
    """4,000 designs, few of which differ in more than one knob from the one before."""
    grid = np.stack(np.meshgrid(*(np.arange(len(d)) for d in DOMAINS.values()), indexing="ij"))
    codes = grid.reshape(len(DOMAINS), -1)[:, :4000].astype(np.int32)
    columns = {
        name: Column.coded(domain, row)
        for (name, domain), row in zip(DOMAINS.items(), codes, strict=True)
    }
    return Batch(columns, codes.shape[1])


@pytest.mark.parametrize("options", [{}, {"workload": "resnet18", "resident": True}])
def test_designs_that_share_stages_get_what_they_get_alone(batch, options):
    evaluator = Systolic(**options)
    bare = Batch({n: Column(c.values) for n, c in batch.columns.items()}, len(batch))
    together, alone = evaluator.evaluate(batch), evaluator.evaluate(bare)
    assert batch.distinct(DOMAINS.keys() - {"voltage"}).place is not None
    assert together.failures == alone.failures
    assert 0 < len(alone.failures) < len(batch)
    possible = np.setdiff1d(np.arange(len(batch)), list(alone.failures))
    assert {n: v[possible].tobytes() for n, v in together.columns.items()} == {
        n: v[possible].tobytes() for n, v in alone.columns.items()
    }


def test_designs_of_which_none_can_exist_all_say_why():
    batch = Batch(
        {"rows": Column.coded((0,), np.zeros(9, dtype=np.int32)), "cols": Column(np.ones(9))}, 9
    )
    assert set(Systolic().evaluate(batch).failures) == set(range(9))


def test_no_designs_are_no_trouble():
    batch = Batch({"rows": Column(np.zeros(0)), "cols": Column(np.zeros(0))}, 0)
    assert Systolic().evaluate(batch).failures == {}

"""Keys and values in a format: the bits of a window, by hand."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import PluginError
from dse_evaluators.compression.cache_size import CacheSize


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("keep", 32),
        ("fp16", 16),
        ("int8:channel", 8 + 16 / 32),  # an fp16 scale for each key of 32 numbers
        ("int4:group=16,asym", 4 + (16 + 4) / 16),
        ("mx:e2m1", 4 + 8 / 32),
    ],
)
def test_scales_are_counted_with_the_numbers(text, bits):
    got = CacheSize().evaluate(Batch.of([{"kv_format": text}]))
    assert got.columns["bits_per_number"][0] == bits
    assert got.columns["cache"][0] == 2 * 3 * 3 * 128 * 32 * bits / 8


def test_a_format_that_is_none_is_the_fault_of_its_row():
    got = CacheSize().evaluate(Batch.of([{"kv_format": "int0"}, {"kv_format": "keep"}]))
    assert set(got.failures) == {0}


def test_a_cache_of_nothing_is_told():
    with pytest.raises(PluginError, match="context cannot be 0"):
        CacheSize(context=0)

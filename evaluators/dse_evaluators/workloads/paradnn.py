"""Parameterized dense, convolutional and recurrent networks of the ParaDNN generator.

The shapes are those of the published generator, except at the end of a convolutional network: here
the last image is averaged to one pixel whatever its size, there over windows of 7 x 7.

Source:
    Wang, Wei, Brooks: Benchmarking TPU, GPU, and CPU Platforms for Deep Learning, 2019, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping

from dse_evaluators.workloads.layer_table import LayerTable, Lookup, add_biases, join_tables
from dse_evaluators.workloads.layers import Layer, product, stack
from dse_evaluators.workloads.residual import Residual, residual
from dse_evaluators.workloads.workload_text import (
    NumberKey,
    WordKey,
    WorkloadFamily,
    WorkloadOptions,
)

_GATES: Mapping[str, int] = {"lstm": 4, "rnn": 1, "gru": 3}
_STAGES = 4
_WIDEST = 2**20
_BATCH = NumberKey(least=1, most=2**16, default=1)


def _dense(options: WorkloadOptions) -> LayerTable:
    """Build an MLP of ``input`` features, ``layers`` hidden layers of ``nodes``, and ``output``."""
    found = options.numbers
    widths = [found["input"], *[found["nodes"]] * found["layers"], found["output"]]
    return add_biases(*stack("fc", widths, found["batch"]))


def _convolutional(options: WorkloadOptions) -> LayerTable:
    """Build a residual network of four stages with ``blocks`` blocks each.

    The first stage has ``filters`` filters; each further stage doubles them.
    """
    found = options.numbers
    return residual(
        Residual(
            blocks=(found["blocks"],) * _STAGES,
            bottleneck=options.words["block"] == "bottleneck",
            filters=found["filters"],
            side=found["input"],
            classes=found["output"],
            always_projects=True,
        )
    )


def _recurrent(options: WorkloadOptions) -> LayerTable:
    """Build ``layers`` recurrent layers of width ``embed`` on sequences of ``length`` tokens.

    Every step predicts a token. The steps of a layer are rows of one matrix product, although each
    step depends on the step before.
    """
    found = options.numbers
    width, rows = found["embed"], found["length"] * found["batch"]
    gates = _GATES[options.words["cell"]] * width
    cells: list[Layer] = []
    for layer in range(found["layers"]):
        cells += [
            product(f"cell{layer}-inputs", rows, width, gates),
            product(f"cell{layer}-recurrent", rows, width, gates),
        ]
    biases = found["layers"] * gates  # one for both products
    words = Lookup(name="words", rows=found["vocabulary"], width=width, picked=rows)
    return join_tables(
        LayerTable(layers=tuple(cells), lookups=(words,), others=biases),
        add_biases(product("output", rows, width, found["vocabulary"])),
    )


PARADNN: Mapping[str, WorkloadFamily] = {
    "paradnn-fc": WorkloadFamily(
        make=_dense,
        keys={
            "layers": NumberKey(least=1, most=1024, default=8),
            "nodes": NumberKey(least=1, most=_WIDEST, default=512),
            "input": NumberKey(least=1, most=_WIDEST, default=2000),
            "output": NumberKey(least=1, most=_WIDEST, default=200),
            "batch": _BATCH,
        },
    ),
    "paradnn-cnn": WorkloadFamily(
        make=_convolutional,
        keys={
            "block": WordKey(words=("residual", "bottleneck")),
            "blocks": NumberKey(least=1, most=64, default=2),
            "filters": NumberKey(least=1, most=4096, default=32),
            "input": NumberKey(least=8, most=4096, default=200),
            "output": NumberKey(least=1, most=_WIDEST, default=1000),
        },
    ),
    "paradnn-rnn": WorkloadFamily(
        make=_recurrent,
        keys={
            "cell": WordKey(words=tuple(_GATES)),
            "layers": NumberKey(least=1, most=1024, default=5),
            "embed": NumberKey(least=1, most=2**16, default=500),
            "length": NumberKey(least=1, most=_WIDEST, default=50),
            "vocabulary": NumberKey(least=1, most=_WIDEST, default=128),
            "batch": _BATCH,
        },
    ),
}
"""Families of ParaDNN by name, used as in ``paradnn-fc:layers=8,nodes=512``."""

"""Catalogue of the layer tables of workloads, looked up by names such as ``resnet50``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from dse.errors import SpecError, nearest
from dse_evaluators.workloads.diffusion_config import diffusion_family
from dse_evaluators.workloads.layer_table import LayerTable, Lookup, add_biases, join_tables
from dse_evaluators.workloads.layers import DIGITS_CNN, MNIST_CNN, MOVIELENS_MLP, Layer, stack
from dse_evaluators.workloads.mobilenet import MOBILENET_V1, MOBILENET_V2
from dse_evaluators.workloads.onnx_graph import OpenAxes
from dse_evaluators.workloads.onnx_import import read_onnx_layers
from dse_evaluators.workloads.paradnn import PARADNN
from dse_evaluators.workloads.resnet import RESNETS
from dse_evaluators.workloads.transformer import families
from dse_evaluators.workloads.unet import UNET
from dse_evaluators.workloads.vgg import ALEXNET, VGG16
from dse_evaluators.workloads.vit import VIT_B16
from dse_evaluators.workloads.workload_text import (
    WorkloadFamily,
    pairs_of,
    parse_keys,
    whole,
    wrap_table,
)

_MOVIELENS_ROWS = {"user": 943, "movie": 1682, "occupation": 21, "decade": 8, "region": 19}

_TABLES = tuple(Lookup(name=name, rows=rows, width=32) for name, rows in _MOVIELENS_ROWS.items())

SMALL_NETWORKS: Mapping[str, LayerTable] = {
    "digits-cnn": add_biases(*DIGITS_CNN),
    "mnist-cnn": add_biases(*MNIST_CNN),
    "movielens-dlrm": join_tables(
        add_biases(*MOVIELENS_MLP), LayerTable(layers=(), lookups=_TABLES)
    ),
}


def _recommender(layers: int, width: int, tables: Lookup) -> LayerTable:
    """Build a recommender with two MLPs of ``layers`` layers of ``width``, without biases.

    The pairwise products of vectors (feature interactions) are left out, as they are in the source.

    Source:
        Hsia et al.: MAD Max Beyond Single-Node, 2024, with its published configurations.
    """
    widths = [width] * (layers + 1)
    both = (*stack("bottom", widths), *stack("top", widths))
    return LayerTable(layers=both, lookups=(tables,))


# The published configurations name the second one DLRM-I; that the paper's DLRM-B is the same one
# is recalled from its 332e9 parameters and 60 MFLOP, which these sizes give.
DLRM: Mapping[str, LayerTable] = {
    "dlrm-a": _recommender(
        10, 3994, Lookup(name="tables", rows=2_080_000, width=94, tables=4096, picked=15)
    ),
    "dlrm-b": _recommender(
        22, 826, Lookup(name="tables", rows=7_050_000, width=92, tables=512, picked=70)
    ),
}

_DIFFUSION = json.loads(
    Path(__file__).with_name("diffusion_models.json").read_text(encoding="utf-8")
)

FAMILIES: Mapping[str, WorkloadFamily] = {
    **{name: wrap_table(table) for name, table in SMALL_NETWORKS.items()},
    **{name: wrap_table(table) for name, table in RESNETS.items()},
    "mobilenetv1": wrap_table(MOBILENET_V1),
    "mobilenetv2": wrap_table(MOBILENET_V2),
    "vgg16": wrap_table(VGG16),
    "alexnet": wrap_table(ALEXNET),
    "vit-b16": wrap_table(VIT_B16),
    **families(),
    "sd-unet": UNET,
    **{name: diffusion_family(row["config"], name) for name, row in _DIFFUSION.items()},
    **{name: wrap_table(table) for name, table in DLRM.items()},
    **PARADNN,
}
"""Maker of the layer table for each workload name; its keys follow the name in a text."""

ONNX = "onnx"
"""Prefix of a workload that is an ONNX file: ``onnx:model.onnx,batch=1``."""

_AXIS = (1, 2**31 - 1)


def table_of(text: str) -> LayerTable:
    """Return the layer table of a workload name such as ``llama2-7b:decode=4096``.

    Raises:
        SpecError: there is no such workload, it cannot have these keys, or its file cannot be read.
        PluginError: it is an ONNX file, and onnx is not installed.
    """
    name, _, rest = text.strip().partition(":")
    if name.lower() == ONNX:
        return _of_file(text, rest)
    return _build_table(re.sub(r"\s", "", text).lower())


@lru_cache(maxsize=256)
def _build_table(text: str) -> LayerTable:
    name = text.partition(":")[0]
    if name not in FAMILIES:
        raise SpecError(f"workload cannot be {text!r}", hint=nearest(name, (*FAMILIES, ONNX)))
    family = FAMILIES[name]
    return family.make(parse_keys(text, family.keys))


def _of_file(text: str, rest: str) -> LayerTable:
    """Return the layer table of an ONNX file, given as ``onnx:file,axis=size,...`` (``text``).

    ``rest`` is the part of ``text`` after ``onnx:``.
    """
    folder, slash, last = rest.rpartition("/")  # a comma may be part of a folder's name
    name, *items = last.split(",")
    if not name:
        raise SpecError(f"workload cannot be {text!r}", hint="as in 'onnx:model.onnx,batch=1'")
    axes = OpenAxes(sizes=axis_sizes(text, items))
    return read_onnx_layers(Path(f"{folder}{slash}{name}"), axes).table


def axis_sizes(text: str, items: Iterable[str]) -> dict[str, int]:
    """Return the sizes of axes by name, from items such as ``batch=1``.

    Args:
        text: the complete name of the workload, for messages.
        items: the items.

    Raises:
        SpecError: an axis occurs twice, or a size is no whole number from 1.
    """
    return {axis: whole(text, axis, size, _AXIS) for axis, size in pairs_of(text, items).items()}


def layers_of(text: str) -> tuple[Layer, ...]:
    """Return the layers of a workload name such as ``resnet50`` or ``llama2-7b:decode=4096``.

    Raises:
        SpecError: there is no such workload, it cannot have these keys, or its file cannot be read.
        PluginError: it is an ONNX file, and onnx is not installed.
    """
    return table_of(text).layers


WORKLOADS: Mapping[str, tuple[Layer, ...]] = {name: layers_of(name) for name in FAMILIES}
"""Layers of each workload with the default values of its keys."""

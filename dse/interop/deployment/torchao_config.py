"""Configuration of torchao that quantizes a model's original weights as the study did."""

from __future__ import annotations

import json
from typing import Any

from dse.interop.deployment.deployed_files import (
    DeployedFiles,
    check_element,
    modules,
    refuse_tensor,
)
from dse.protocols import DeployedModel, DeployedTensor, Quantization

TARGET = "torchao"
_ELEMENTS = tuple(f"int{bits}" for bits in range(2, 9))


def write_torchao_config(model: DeployedModel) -> DeployedFiles:
    """Return the ``FqnToConfig`` of a model as JSON, which ``config_from_dict`` reads.

    ``quantize_(module, config, filter_fn=None)`` computes the quantized weights from the original
    ones. In float32 and for formats that follow torchao's rule, they equal those of the study.

    Raises:
        StudyError: a tensor is not a matrix, or its weights are not those that torchao computes.

    Source:
        torchao 0.18, ``torchao.core.config`` and ``IntxWeightOnlyConfig``.
    """
    found: dict[str, Any] = {}
    for name, module, tensor in modules(model):
        stored = check_element(name, tensor, TARGET, _ELEMENTS)
        if isinstance(stored, str):
            _check_unchanged(name, tensor, stored)
            continue
        _check_rule(name, tensor, stored)
        found[module] = _module_config(stored)
    config = _typed("FqnToConfig", {"fqn_to_config": found}, version=1)
    return DeployedFiles(
        content=(json.dumps(config, indent=2) + "\n").encode(),
        tensor_bytes={},
        notes=("the file holds settings, no weights: torchao quantizes the original weights",),
    )


def _check_unchanged(name: str, tensor: DeployedTensor, kind: str) -> None:
    """Raise StudyError if a tensor that is not quantized is not in float32."""
    if kind != "float32":
        raise refuse_tensor(name, tensor, TARGET, "'keep', or an int format with full-range")


def _check_rule(name: str, tensor: DeployedTensor, stored: Quantization) -> None:
    """Check that torchao computes these quantized values and scales from the original weights.

    Raises:
        StudyError: torchao computes others; the hint names the nearest format for which it agrees.
    """
    sign = "" if stored.zero_points is None else "asym,"
    span = "channel" if stored.granularity == "tensor" else stored.granularity
    span = f"group={stored.group}" if stored.group_rows > 1 else span
    exact = stored.scale_rule == "full-range" and stored.scale_type == "float32"
    divides = stored.group is None or stored.numbers.shape[1] % stored.group == 0
    if exact and divides and span == stored.granularity and tensor.values.ndim == 2:
        return
    nearest = f"{stored.element}:{span},{sign}full-range,scale=fp32, of matrices"
    raise refuse_tensor(name, tensor, TARGET, nearest)


def _module_config(stored: Quantization) -> dict[str, Any]:
    """Return torchao's configuration for the weights of one module."""
    is_grouped = stored.group is not None
    granularity = (
        _typed("PerGroup", {"group_size": stored.group}, version=1)
        if is_grouped
        else _typed("PerAxis", {"axis": 0}, version=1)
    )
    mapping = "SYMMETRIC" if stored.zero_points is None else "ASYMMETRIC"
    return _typed(
        "IntxWeightOnlyConfig",
        {
            "weight_dtype": {"_type": "torch.dtype", "_data": stored.element},
            "granularity": granularity,
            "mapping_type": {"_type": "MappingType", "_data": mapping},
        },
        version=2,
    )


def _typed(kind: str, data: dict[str, Any], *, version: int) -> dict[str, Any]:
    return {"_type": kind, "_version": version, "_data": data}

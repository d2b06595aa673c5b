"""Targets of deployment: the file formats that a compressed model can be written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dse.errors import StudyError, nearest
from dse.interop.deployment.compressed_tensors import write_compressed_tensors
from dse.interop.deployment.deployed_files import DeployedFiles
from dse.interop.deployment.gguf_file import write_gguf
from dse.interop.deployment.onnx_file import write_onnx
from dse.interop.deployment.torch_state import write_torch_state
from dse.interop.deployment.torchao_config import write_torchao_config
from dse.interop.launch.launch_files import LAUNCHERS
from dse.protocols import DeployedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentTarget:
    """File format for a compressed model: its extension, what it holds, and its writer."""

    extension: str
    description: str
    write: Callable[[DeployedModel], DeployedFiles]


TARGETS: Mapping[str, DeploymentTarget] = {
    "safetensors": DeploymentTarget(
        extension=".safetensors",
        description="compressed-tensors layout, for vLLM: int4, int8, fp8_e4m3",
        write=write_compressed_tensors,
    ),
    "onnx": DeploymentTarget(
        extension=".onnx",
        description="graph with DequantizeLinear, for onnxruntime: int4, int8, fp8_e4m3",
        write=write_onnx,
    ),
    "gguf": DeploymentTarget(
        extension=".gguf",
        description="blocks of 32, of ggml: int4 as Q4_0, int4 with asym as Q4_1, int8 as Q8_0",
        write=write_gguf,
    ),
    "torch": DeploymentTarget(
        extension=".pt",
        description="state dict of decoded weights, for PyTorch: all formats",
        write=write_torch_state,
    ),
    "torchao": DeploymentTarget(
        extension=".json",
        description="configuration without weights, for torchao: int2 to int8 with full-range",
        write=write_torchao_config,
    ),
}
"""All targets, by the name that ``dse deploy --to`` takes."""


def target_of(name: str) -> DeploymentTarget:
    """Return the file format for compressed models with this name.

    Raises:
        StudyError: there is no such target.
    """
    if name not in TARGETS:
        hint = nearest(name, [*TARGETS, *LAUNCHERS])
        raise StudyError(f"there is no target {name!r}", hint=hint)
    return TARGETS[name]

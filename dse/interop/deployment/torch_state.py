"""PyTorch state dict with the decoded weights, loadable without running pickled code."""

from __future__ import annotations

from io import BytesIO

from dse.interop.deployment.deployed_files import DeployedFiles
from dse.protocols import DeployedModel


def write_torch_state(model: DeployedModel) -> DeployedFiles:
    """Return the decoded weights as a file that ``torch.load(file, weights_only=True)`` reads.

    All formats can be written: each tensor has the values that the study measured with, in
    single precision or, for tensors in ``fp16`` or ``bf16``, in that type.
    """
    import torch

    state = {}
    for name, tensor in model.tensors.items():
        kind = tensor.stored if isinstance(tensor.stored, str) else "float32"
        state[name] = torch.tensor(tensor.values).to(getattr(torch, kind))
    file = BytesIO()
    torch.save(state, file)
    size = sum(one.numel() * one.element_size() for one in state.values())
    return DeployedFiles(
        content=file.getvalue(),
        tensor_bytes={"unquantized": size},
        notes=("the weights are decoded: they need the memory of unquantized weights",),
    )

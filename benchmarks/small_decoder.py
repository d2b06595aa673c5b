"""A small decoder of Llama's shape, trained on characters of the plays, as a folder of a user."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from dse.interop.deployment.compressed_tensors import safetensors_file
from dse_evaluators.workloads.own.families.config_values import ConfigValues
from dse_evaluators.workloads.own.families.family import family_of
from dse_evaluators.workloads.shakespeare import CHUNK, SYMBOLS, plays, windows
from dse_evaluators.workloads.torch_scope import deterministic

LENGTH = 64
CONFIG = {
    "model_type": "llama",
    "vocab_size": len(SYMBOLS),
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
}
_STEPS, _BATCH, _RATE = 1500, 32, 3e-3


def write_decoder(folder: Path) -> tuple[Path, Path]:
    """Train the decoder if it is not there yet; return its folder and its data.

    The data are windows of 64 characters: 1,024 of the training text for calibration, and 256 each
    of the two parts of the held-out text for search and test.
    """
    model, data = folder / "decoder", folder / "windows.npz"
    if model.exists() and data.exists():
        return model, data
    model.mkdir(parents=True, exist_ok=True)
    module = family_of(CONFIG).build(ConfigValues(CONFIG, 10**6), {})
    _train(module)
    arrays = {name: one.detach().numpy() for name, one in module.named_parameters()}
    entries = {n: ("F32", list(a.shape), a.astype("<f4").tobytes()) for n, a in arrays.items()}
    (model / "model.safetensors").write_bytes(safetensors_file(entries, {}))
    (model / "config.json").write_text(json.dumps(CONFIG))
    parts = {
        "calibration": windows(plays().train[::2], (64, 2048), LENGTH)[:1024],
        "search": windows(
            plays().held_out["search"], (0, 512, 1024, 1536, 2048, 2560, 3072, 3584), LENGTH
        )[:256],
        "test": windows(
            plays().held_out["test"], (0, 512, 1024, 1536, 2048, 2560, 3072, 3584), LENGTH
        )[:256],
    }
    np.savez(
        data,
        tokens=np.concatenate(list(parts.values())),
        part=np.concatenate([np.repeat(name, len(one)) for name, one in parts.items()]),
    )
    return model, data


def _train(module: torch.nn.Module) -> None:
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    for name, one in module.named_parameters():
        with torch.no_grad():
            one.fill_(1.0) if name.endswith("norm.weight") else one.normal_(std=0.05)
    module.requires_grad_(requires_grad=True)
    descent = torch.optim.Adam(module.parameters(), lr=_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(descent, _STEPS)
    text = plays().train
    with deterministic():
        for _ in range(_STEPS):
            rows, starts = (
                rng.integers(len(text), size=_BATCH),
                rng.integers(CHUNK - LENGTH, size=_BATCH),
            )
            codes = torch.tensor(text[rows[:, None], starts[:, None] + np.arange(LENGTH)])
            given = module(codes[:, :-1])
            given = given.logits if hasattr(given, "logits") else given
            loss = functional.cross_entropy(given.flatten(0, 1), codes[:, 1:].flatten())
            descent.zero_grad()
            loss.backward()
            descent.step()
            schedule.step()

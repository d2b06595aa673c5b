"""Small models that users bring: built with PyTorch alone, written as files that hold no code."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn

SPACE = """\
space: formats
parameters:
  bits: {choice: ["int8:channel", "int2:channel"]}
"""
STUDY = """\
study: mine
space: space.yaml
evaluators:
  quality: {use: compression.recipe, recipe: "format {bits}", OPTIONS}
objectives: [{maximize: quality.METRIC}, {minimize: quality.size}]
optimizer: exhaustive
executor: serial
budget: {trials: 2}
"""


def write_study(folder: Path, options: str, metric: str = "accuracy", goal: str = "maximize"):
    (folder / "space.yaml").write_text(SPACE)
    text = STUDY.replace("OPTIONS", options).replace("METRIC", metric)
    (folder / "study.yaml").write_text(text.replace("{maximize:", f"{{{goal}:"))
    return folder / "study.yaml"


def image_network() -> nn.Module:
    """A CNN with batch normalization and a depthwise convolution."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1, groups=8),
        nn.Conv2d(8, 16, 1, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 4),
    )
    net(torch.randn(64, 1, 8, 8))  # moves the running statistics
    return net.eval()


class VisionTransformer(nn.Module):
    """A ViT of one layer, with a class token and learnt positions."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 16, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.places = nn.Parameter(torch.randn(1, 5, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(16, 4)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        patches = self.patches(images).flatten(2).transpose(1, 2)
        signal = torch.cat([self.token.expand(len(images), -1, -1), patches], dim=1)
        return self.head(self.encoder(signal + self.places)[:, 0])


def vision_transformer() -> nn.Module:
    torch.manual_seed(0)
    return VisionTransformer()


def images(count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(count, 1, 8, 8)).astype(np.float32), rng.integers(0, 4, count)


def write_images(path: Path, count: int = 60) -> None:
    inputs, targets = images(count)
    np.savez(path, inputs=inputs, targets=targets)


def write_onnx(path: Path, module: nn.Module, example: torch.Tensor, **options: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather use onnxscript
        torch.onnx.export(
            module,
            (example,),
            str(path),
            dynamo=False,
            input_names=["x"],
            **{"dynamic_axes": {"x": {0: "n"}}, **options},
        )


LLAMA = {
    "model_type": "llama",
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
}


def llama_weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {
        "model.embed_tokens.weight": (32, 16),
        "model.layers.0.input_layernorm.weight": (16,),
        "model.layers.0.self_attn.q_proj.weight": (16, 16),
        "model.layers.0.self_attn.k_proj.weight": (8, 16),
        "model.layers.0.self_attn.v_proj.weight": (8, 16),
        "model.layers.0.self_attn.o_proj.weight": (16, 16),
        "model.layers.0.post_attention_layernorm.weight": (16,),
        "model.layers.0.mlp.gate_proj.weight": (24, 16),
        "model.layers.0.mlp.up_proj.weight": (24, 16),
        "model.layers.0.mlp.down_proj.weight": (16, 24),
        "model.norm.weight": (16,),
        "lm_head.weight": (32, 16),
    }
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def write_safetensors(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write the format: the header's length, the header in JSON, and the arrays' bytes."""
    kinds = {"float32": "F32", "float16": "F16", "float64": "F64"}
    header, data = {}, b""
    for name, array in arrays.items():
        start, data = len(data), data + array.tobytes()
        header[name] = {
            "dtype": kinds[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [start, len(data)],
        }
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_llama(folder: Path, **changes: object) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**LLAMA, **changes}))
    write_safetensors(folder / "model.safetensors", llama_weights())
    return folder


def write_tokens(path: Path) -> None:
    np.savez(path, tokens=np.random.default_rng(0).integers(0, 32, (20, 12)))


MLP = """\
from torch import nn

def make():
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
"""


def write_table(path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [",".join(f"{x:.4f}" for x in rng.normal(size=3)) for _ in range(50)]
    lines = [f"{row},{place % 2}" for place, row in enumerate(rows)]
    path.write_text("\n".join(["age,height,weight,label", *lines]) + "\n")

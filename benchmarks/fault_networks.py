"""Networks in which ``faults.py`` flips bits: a sentence encoder and a classifier of digits."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from dse_evaluators.workloads.minilm import BLOCKS, HEAD, encode_word, minilm, wordsim

_PIECES = 3  # [CLS], the word, [SEP]


class Block(nn.Module):
    """Transformer block of BERT."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.query, self.key, self.value = (
            linear(f"{name}.attention.self.{role}") for role in ("query", "key", "value")
        )
        self.mixed = linear(f"{name}.attention.output.dense")
        self.after_attention = normalization(f"{name}.attention.output")
        self.wide, self.narrow = (
            linear(f"{name}.intermediate.dense"),
            linear(f"{name}.output.dense"),
        )
        self.after = normalization(f"{name}.output")

    def forward(self, stream: Tensor) -> Tensor:
        queries, keys, values = (
            layer(stream).unflatten(-1, (-1, HEAD)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        shares = torch.softmax(queries @ keys.transpose(2, 3) / HEAD**0.5, dim=-1)
        stream = self.after_attention(
            stream + self.mixed((shares @ values).transpose(1, 2).flatten(2))
        )
        return self.after(stream + self.narrow(nn.functional.gelu(self.wide(stream))))


class Encoder(nn.Module):
    """MiniLM from the codes of word pieces, (n, t), to unit vectors, (n, 384)."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.types = (
            nn.Embedding.from_pretrained(weight(f"embeddings.{name}_embeddings.weight"))
            for name in ("word", "position", "token_type")
        )
        self.first = normalization("embeddings")
        self.blocks = nn.Sequential(*(Block(f"encoder.layer.{place}") for place in range(BLOCKS)))

    def forward(self, pieces: Tensor) -> Tensor:
        places = torch.arange(_PIECES).expand_as(pieces)
        stream = self.words(pieces) + self.places(places) + self.types(pieces * 0)
        mean = self.blocks(self.first(stream)).mean(1)
        return mean / mean.norm(dim=-1, keepdim=True)


def weight(name: str) -> Tensor:
    """Return a parameter of MiniLM."""
    return torch.tensor(minilm().parameters[name])


def linear(name: str) -> nn.Linear:
    """Return a linear layer with weights of MiniLM."""
    matrix = weight(f"{name}.weight")
    layer = nn.Linear(*matrix.shape[::-1])
    layer.load_state_dict({"weight": matrix, "bias": weight(f"{name}.bias")})
    return layer


def normalization(name: str) -> nn.LayerNorm:
    """Return a layer normalization with the gain and shift of MiniLM."""
    gain = weight(f"{name}.LayerNorm.weight")
    layer = nn.LayerNorm(len(gain), eps=1e-12)
    layer.load_state_dict({"weight": gain, "bias": weight(f"{name}.LayerNorm.bias")})
    return layer


def write_encoder(folder: Path) -> tuple[Path, Path]:
    """Write MiniLM as an ONNX file, and the codes of words as data; return both paths."""
    words = sorted({word for pairs in wordsim().values() for word in pairs.vocabulary})
    pieces = minilm().pieces
    codes = {encode_word(word, pieces) for word in words}
    data = np.array(sorted(one for one in codes if len(one) == _PIECES))
    model, examples = folder / "minilm.onnx", folder / "words.npz"
    np.savez(examples, inputs=data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather use onnxscript
        torch.onnx.export(
            Encoder().eval(),
            (torch.tensor(data[:2]),),
            str(model),
            dynamo=False,
            input_names=["pieces"],
            dynamic_axes={"pieces": {0: "n"}},
        )
    return model, examples


def write_classifier(folder: Path) -> dict[str, str]:
    """Write a perceptron for digits as an ONNX file, as a user would; return its options."""
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    layers = (nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    torch.manual_seed(0)
    net = nn.Sequential(*layers)
    descent = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(100):
        descent.zero_grad()
        nn.functional.cross_entropy(
            net(torch.tensor(images[::2])), torch.tensor(labels[::2])
        ).backward()
        descent.step()
    np.savez(folder / "digits.npz", inputs=images[1::2], targets=labels[1::2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            net,
            (torch.tensor(images[:2]),),
            str(folder / "net.onnx"),
            dynamo=False,
            input_names=["images"],
            dynamic_axes={"images": {0: "n"}},
        )
    paths = {"model": folder / "net.onnx", "data": folder / "digits.npz"}
    return {"quality": "accuracy", **{name: str(path) for name, path in paths.items()}}

"""A network that takes the noise off photographs, its weights at own bits in each layer: measured.

As a program it reads a design as JSON from stdin and writes its peak signal-to-noise ratio.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_sample_image
from torch import Tensor
from torch.nn import functional

from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import Arrays, load_or_make

# Filters, inputs and side of each layer; the last says what noise there is in each pixel.
# Source: K. Zhang et al., Beyond a Gaussian Denoiser: Residual Learning of Deep CNN for Image
# Denoising, IEEE Transactions on Image Processing 2017, section III; smaller.
LAYERS = ((16, 1, 5), (16, 16, 3), (16, 16, 3), (16, 16, 3), (1, 16, 3))
NOISE = 25 / 255  # the deviation, as there
PHOTOGRAPHS = ("china.jpg", "flower.jpg")
SPLIT = 480  # columns to learn from
STEPS, PATCHES, SIDE, RATE = 800, 16, 32, 4e-3
_LUMA = (0.299, 0.587, 0.114)  # ITU-R BT.601
_SHRINKS = np.linspace(0.3, 1.0, 36)

Weights = tuple[tuple[Tensor, Tensor], ...]  # weight and bias of each layer


def measured(bits: Sequence[int], activation_bits: int) -> dict[str, float]:
    """How well the network with these words cleans photographs that it never saw, in dB.

    The image and what rectifiers leave are not negative, and use all words from zero to their
    largest on calibration images. Biases keep each filter's mean there.
    """
    _trained()  # where it is not kept yet it is trained, which inference mode forbids
    with deterministic(), torch.inference_mode():
        clean, noisy = _held_out()
        seen, signal = _calibration()[0], noisy
        for place, (_, bias) in enumerate(_trained()):
            short, top = _rounded(place, int(bits[place])), float(seen.max())
            seen, signal = (
                _convolved(_words(x, top, activation_bits), short, bias) for x in (seen, signal)
            )
            shift = (_calibration()[place + 1] - seen).mean(dim=(0, 2, 3), keepdim=True)
            seen, signal = (_passed_on(place, x + shift) for x in (seen, signal))
        return {"psnr": _psnr((noisy - signal).clamp(0, 1), clean)}


@cache
def _held_out() -> tuple[Tensor, Tensor]:
    """Images that nothing was learnt from, clean and noisy."""
    clean = _photographs()[:, :, 64:160, SPLIT : SPLIT + 96]
    return clean, _noisy(clean, 1)


@cache
def _calibration() -> tuple[Tensor, ...]:
    """Noisy images, and what each layer of the trained network says of them."""
    found = [_noisy(_photographs()[:, :, 192:256, :64], 2)]
    signal = found[0]
    for place, (weight, bias) in enumerate(_trained()):
        found.append(_convolved(signal, weight, bias))
        signal = _passed_on(place, found[-1])
    return tuple(found)


@cache
def _photographs() -> Tensor:
    """Grey photographs, (2, 1, 426, 640) in [0, 1]."""
    pixels = np.stack([load_sample_image(name)[:426] for name in PHOTOGRAPHS])
    grey = pixels.astype(np.float32) @ np.array(_LUMA, dtype=np.float32) / 255
    return torch.tensor(grey)[:, None]


def _noisy(clean: Tensor, seed: int) -> Tensor:
    chance = torch.Generator().manual_seed(seed)
    return (clean + NOISE * torch.randn(clean.shape, generator=chance)).clamp(0, 1)


@cache
def _trained() -> Weights:
    recipe = hashlib.sha256(
        f"{LAYERS}{STEPS}{PATCHES}{SIDE}{RATE}{SPLIT}{NOISE}{torch.__version__}".encode()
    )
    shapes: dict[str, tuple[int, ...]] = {}
    for place, (filters, inputs, side) in enumerate(LAYERS):
        shapes |= {f"{place}.weight": (filters, inputs, side, side), f"{place}.bias": (filters,)}
    arrays = load_or_make(f"denoising-{recipe.hexdigest()[:16]}", shapes, _train)
    return tuple(
        (torch.tensor(arrays[f"{place}.weight"]), torch.tensor(arrays[f"{place}.bias"]))
        for place in range(len(LAYERS))
    )


def _train() -> Arrays:
    """Weights learnt from the left parts of the photographs, from scratch."""
    chance = torch.Generator().manual_seed(0)
    learnt = []
    for filters, inputs, side in LAYERS:
        weight = torch.randn((filters, inputs, side, side), generator=chance)
        learnt += [weight * math.sqrt(2 / weight[0].numel()), torch.zeros(filters)]
    learnt[-2] *= 0.1
    photographs = _photographs()[..., :SPLIT]
    with deterministic():
        tensors = [tensor.requires_grad_() for tensor in learnt]
        optimizer = torch.optim.Adam(tensors, lr=RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
        for _ in range(STEPS):
            clean = _patches(photographs, chance)
            noise = NOISE * torch.randn(clean.shape, generator=chance)
            noisy = (clean + noise).clamp(0, 1)
            signal = noisy
            for place in range(len(LAYERS)):
                signal = _convolved(signal, tensors[2 * place], tensors[2 * place + 1])
                signal = _passed_on(place, signal)
            loss = functional.mse_loss(noisy - signal, clean)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    names = [f"{place}.{what}" for place in range(len(LAYERS)) for what in ("weight", "bias")]
    return {
        name: x.detach().numpy().astype(np.float32) for name, x in zip(names, tensors, strict=True)
    }


def _patches(photographs: Tensor, chance: torch.Generator) -> Tensor:
    """Squares of the photographs."""
    count, _, height, width = photographs.shape
    places = [
        torch.randint(0, most, (PATCHES,), generator=chance).tolist()
        for most in (count, height - SIDE, width - SIDE)
    ]
    squares = zip(*places, strict=True)
    return torch.stack([photographs[n, :, y : y + SIDE, x : x + SIDE] for n, y, x in squares])


def _passed_on(place: int, signal: Tensor) -> Tensor:
    return torch.relu(signal) if place < len(LAYERS) - 1 else signal


def _convolved(signal: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.conv2d(signal, weight, bias, padding=weight.shape[-1] // 2)


def _psnr(found: Tensor, wanted: Tensor) -> float:
    error = float((found.double() - wanted.double()).square().mean())
    return -10 * math.log10(error)


def _words(signal: Tensor, top: float, bits: int) -> Tensor:
    """The signal at the nearest of 2**bits numbers from zero to ``top``."""
    step = max(top, 1e-12) / (2**bits - 1)
    return (signal / step).round().clamp(0, 2**bits - 1) * step


@cache
def _rounded(place: int, bits: int) -> Tensor:
    """A layer's weights at words of a scale per filter, the one with the least squared error.

    Source:
        Y. Choukroun et al.: Low-bit Quantization of Neural Networks for Efficient Inference,
        ICCV workshops 2019, section 3.1.
    """
    weight = _trained()[place][0].numpy().astype(np.float64)
    rows = weight.reshape(len(weight), -1)
    top = 2 ** (bits - 1) - 1
    steps = np.abs(rows).max(axis=1)[:, None] * _SHRINKS / top  # (filters, shrinks)
    words = np.clip(np.rint(rows[:, None] / steps[..., None]), -top, top) * steps[..., None]
    best = ((words - rows[:, None]) ** 2).sum(axis=2).argmin(axis=1)
    return torch.tensor(words[np.arange(len(rows)), best].reshape(weight.shape)).float()


def of_design(design: Mapping[str, Any]) -> dict[str, float]:
    """The reading of a design as a study tells it."""
    return measured(bits=design["bits"], activation_bits=int(design["activation_bits"]))


if __name__ == "__main__":
    print(json.dumps(of_design(json.load(sys.stdin))))

"""PyTorch modules of blocks, and their time on this machine."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from dse_evaluators.architectures.block_table import MeasuredBlock
from dse_evaluators.architectures.blocks import NetworkBlock, Sizes
from dse_evaluators.generic.call_clock import CallTiming, time_by
from dse_evaluators.workloads.torch_scope import one_thread


def time_blocks(blocks: Sequence[NetworkBlock], batch: int, timing: CallTiming) -> MeasuredBlock:
    """Time a forward pass through blocks that follow one another, on one thread in fp32."""
    torch.manual_seed(0)
    network = nn.Sequential(*(build_module(one) for one in blocks)).eval()
    inputs = torch.randn(batch, *blocks[0].takes)
    with one_thread(), torch.inference_mode():
        latency_s, stderr_s = time_by(lambda: network(inputs), timing)
    return MeasuredBlock(latency_s=latency_s, stderr_s=stderr_s)


def build_module(block: NetworkBlock) -> nn.Module:
    """Return the PyTorch module of a network block, with random weights."""
    return _MODULES[block.kind](block.sizes)


class _InvertedResidual(nn.Module):
    """MBConv: a pointwise expansion, a depthwise convolution and a pointwise projection."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        inputs, outputs = sizes["inputs"], sizes["outputs"]
        wide, stride = inputs * sizes["ratio"], sizes["stride"]
        self.body = nn.Sequential(
            *_convolve_and_normalise(inputs, wide, 1, 1, 1),
            nn.ReLU6(),
            *_convolve_and_normalise(wide, wide, sizes["kernel"], stride, wide),
            nn.ReLU6(),
            *_convolve_and_normalise(wide, outputs, 1, 1, 1),
        )
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.body(x)
        return x + found if self.adds else found


class _Attention(nn.Module):
    """Multi-head self-attention with a norm before it and a residual link."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes["width"]
        self.heads = sizes["heads"]
        self.norm = nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        shape = batch, tokens, self.heads, width // self.heads
        parts = self.qkv(self.norm(x)).split(width, dim=2)
        query, key, value = (one.reshape(shape).transpose(1, 2) for one in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        found: Tensor = self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + found


class _FeedForward(nn.Module):
    """Two linear layers with a norm before them and a residual link."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, wide = sizes["width"], sizes["width"] * sizes["ratio"]
        self.body = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.body(x)
        return x + found


class _Mixture(nn.Module):
    """Mixture of experts: each token goes to the feed-forward networks that a router chooses."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, wide = sizes["width"], sizes["width"] * sizes["ratio"]
        self.active, self.norm = sizes["active"], nn.LayerNorm(width)
        self.router = nn.Linear(width, sizes["experts"], bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))
            for _ in range(sizes["experts"])
        )

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.norm(x).flatten(0, 1)
        shares, chosen = self.router(tokens).softmax(-1).topk(self.active)
        found = torch.zeros_like(tokens)
        for place, expert in enumerate(self.experts):
            rows, rank = (chosen == place).nonzero(as_tuple=True)
            if len(rows):
                found.index_add_(0, rows, expert(tokens[rows]) * shares[rows, rank, None])
        return x + found.reshape(x.shape)


class _Patches(nn.Module):
    """Flattened patches of an image as tokens."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.conv = nn.Conv2d(sizes["inputs"], sizes["width"], sizes["patch"], sizes["patch"])

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.conv(x)
        return found.flatten(2).transpose(1, 2)


def _convolve_and_normalise(
    inputs: int, outputs: int, kernel: int, stride: int, groups: int
) -> tuple[nn.Module, nn.Module]:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return convolution, nn.BatchNorm2d(outputs)


def _build_convolution(sizes: Sizes) -> nn.Module:
    parts = _convolve_and_normalise(
        sizes["inputs"], sizes["outputs"], sizes["kernel"], sizes["stride"], 1
    )
    return nn.Sequential(*parts, nn.ReLU())


def _build_classifier(sizes: Sizes) -> nn.Module:
    linear = nn.Linear(sizes["inputs"], sizes["outputs"])
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), linear)


_MODULES = {
    "conv": _build_convolution,
    "mbconv": _InvertedResidual,
    "attention": _Attention,
    "ffn": _FeedForward,
    "moe": _Mixture,
    "patches": _Patches,
    "classifier": _build_classifier,
}

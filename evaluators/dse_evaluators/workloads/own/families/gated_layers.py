"""Gated MLPs of decoders: one for all tokens, or experts that tokens are routed to."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dse_evaluators.workloads.own.families.decoder_config import DecoderConfig, RoutedConfig

_NAMES = ("gate_proj", "up_proj", "down_proj")


class GatedLayer(nn.Module):
    """MLP whose hidden units are products of a gate and a linear projection.

    Args:
        config: sizes and features of the decoder.
        width: number of hidden units.
        names: names of the gate, up and down projections.

    Source:
        Shazeer: GLU Variants Improve Transformer, 2020, eq. 6.
    """

    def __init__(self, config: DecoderConfig, width: int, names: tuple[str, ...] = _NAMES) -> None:
        super().__init__()
        hidden, bias = config.hidden_size, config.mlp_bias
        self.activation = config.activation
        self.names = ("gate_up_proj", names[2]) if config.family.fused else names
        for name in self.names[:-1]:
            outputs = 2 * width if config.family.fused else width
            self.add_module(name, nn.Linear(hidden, outputs, bias=bias))
        self.add_module(self.names[-1], nn.Linear(width, hidden, bias=bias))

    def forward(self, signal: Tensor) -> Tensor:
        parts = [getattr(self, name)(signal) for name in self.names[:-1]]
        gate, up = parts if len(parts) > 1 else parts[0].chunk(2, dim=-1)
        result: Tensor = getattr(self, self.names[-1])(self.activation(gate) * up)
        return result


class RoutedLayer(nn.Module):
    """Gated MLPs (experts), of which each token passes those with the largest router weights.

    Every expert runs, with no token if none is routed to it, so that hooks see all layers.

    Args:
        config: sizes and features of the decoder.
        routed: sizes of the experts.

    Source:
        Jiang et al.: Mixtral of Experts, 2024, section 2.1; Yang et al.: Qwen2, 2024, section
        2.2.2 (shared expert).
    """

    def __init__(self, config: DecoderConfig, routed: RoutedConfig) -> None:
        super().__init__()
        self.routed = routed
        self.gate = nn.Linear(config.hidden_size, routed.experts, bias=False)
        self.experts = nn.ModuleList(
            GatedLayer(config, routed.width, routed.names[1:]) for _ in range(routed.experts)
        )
        if routed.shared_width:
            self.shared_expert = GatedLayer(config, routed.shared_width)
            self.shared_expert_gate = nn.Linear(config.hidden_size, 1, bias=False)

    def forward(self, signal: Tensor) -> Tensor:
        tokens = signal.flatten(0, 1)
        weights, picked = self.gate(tokens).softmax(dim=-1).topk(self.routed.picked, dim=-1)
        if self.routed.is_normalized:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        mixed = torch.zeros_like(tokens)
        for place, expert in enumerate(self.experts):
            rows, ranks = torch.where(picked == place)
            mixed[rows] += expert(tokens[rows]) * weights[rows, ranks, None]
        if self.routed.shared_width:
            shared = torch.sigmoid(self.shared_expert_gate(tokens))
            mixed = mixed + shared * self.shared_expert(tokens)
        return mixed.reshape(signal.shape)

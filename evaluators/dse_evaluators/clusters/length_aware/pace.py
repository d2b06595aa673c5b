"""Time of decoding steps, in which all running sequences grow by one token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.clusters.chips import chip_of
from dse_evaluators.clusters.training.device_memory import block_weights
from dse_evaluators.workloads.transformer_configs import Transformer

_WEIGHT_BYTES = 2.0


class TimeSplit(NamedTuple):
    """Decoding time of a server [s], split into memory-bound and GEMM-bound steps."""

    memory_s: float
    compute_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingTimeModel:
    """Decoding time of a model divided evenly over devices, without communication cost."""

    weights_s: float
    """Time to read all weights once."""
    token_read_s: float
    """Time to read the KV cache of one token."""
    text_s: float
    """GEMM time of one token with all weights."""
    launch_s: float

    def step_s(self, texts: int, context: int) -> float:
        """Return the seconds of a decode step, given its sequences and their total context."""
        memory_s = self.weights_s + context * self.token_read_s
        return max(memory_s, texts * self.text_s) + self.launch_s

    def steps(self, texts: int, context: int, count: int) -> TimeSplit:
        """Return the seconds of ``count`` decode steps, each of which adds a token per sequence.

        Launch overheads are not included.
        """
        compute_s = texts * self.text_s
        first_s = self.weights_s + context * self.token_read_s
        rise_s = texts * self.token_read_s
        bound = min(count, max(0, int((compute_s - first_s) / rise_s) + 1))
        if compute_s <= first_s:
            bound = 0
        left = count - bound
        memory_s = left * first_s + rise_s * (bound + count - 1) * left / 2.0
        return TimeSplit(memory_s, bound * compute_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """Served model with its devices, their usable share of memory, and the host link.

    ``launch_s``, the launch overhead of a step, and the host bandwidth are assumed.
    """

    model: Transformer
    device: Device
    devices: int
    cache_bits: float
    launch_s: float
    kept_share: float
    """Share of the memory for weights and KV cache; kernels and the runtime take the rest."""
    host_bytes_per_s: float
    """Bandwidth between one device and its host."""

    @property
    def weight_bytes(self) -> float:
        model = self.model
        tables = (1.0 if model.tied else 2.0) * model.vocabulary * model.hidden
        return _WEIGHT_BYTES * (block_weights(model) * model.layers + tables)

    @property
    def token_bytes(self) -> float:
        """Bytes of the KV cache for each token.

        Source:
            Jin et al.: S3, 2023: keys and values of all layers.
        """
        model = self.model
        return 2.0 * model.layers * model.kv_heads * model.head * self.cache_bits / 8.0

    @property
    def memory_bytes(self) -> float:
        """Memory of all devices that weights and KV cache may use."""
        return self.devices * self.kept_share * self.device.dram_bytes

    @property
    def room(self) -> int:
        """Number of tokens whose KV cache fits into memory next to the weights.

        It is 0 if the weights themselves do not fit.
        """
        return max(0, int((self.memory_bytes - self.weight_bytes) // self.token_bytes))

    @property
    def pace(self) -> DecodingTimeModel:
        """Decoding time model of the served model, at measured GEMM and memory rates."""
        device, measured = self.device, chip_of(self.device, "bf16").constants
        read = self.devices * device.dram_bytes_per_s * float(measured.memory_share)
        rate = self.devices * device.flops_per_s["bf16"] * float(measured.compute_share)
        return DecodingTimeModel(
            weights_s=self.weight_bytes / read,
            token_read_s=self.token_bytes / read,
            text_s=self.weight_bytes / _WEIGHT_BYTES * 2.0 / rate,
            launch_s=self.launch_s,
        )

    @property
    def moved_s(self) -> float:
        """Seconds to move the KV cache of one token to the host and back."""
        return 2.0 * self.token_bytes / (self.devices * self.host_bytes_per_s)

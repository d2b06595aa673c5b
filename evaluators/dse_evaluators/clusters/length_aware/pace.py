"""Time of the steps in which all running sequences grow by one token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.chips import ROWS
from dse_evaluators.clusters.training.memory import block_weights
from dse_evaluators.workloads.transformer_configs import Transformer

_WEIGHT_BYTES = 2.0


class TimeSplit(NamedTuple):
    """Seconds in which memory is what is waited for, and the products."""

    memory_s: float
    compute_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingTimeModel:
    """A model on devices that share everything evenly and talk for nothing."""

    weights_s: float
    """To read all weights once."""
    token_read_s: float
    """To read what is cached of one token."""
    text_s: float
    """To multiply the weights with one token."""
    launch_s: float

    def step_s(self, texts: int, context: int) -> float:
        """A step of so many texts that have so many tokens together."""
        memory_s = self.weights_s + context * self.token_read_s
        return max(memory_s, texts * self.text_s) + self.launch_s

    def steps(self, texts: int, context: int, count: int) -> TimeSplit:
        """So many steps of the same texts, each of which makes every text a token longer.

        The launches are not among them.
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
class Home:
    """The model and the devices; ``launch_s`` of a step and the ``host`` link are assumed."""

    model: Transformer
    device: str
    devices: int
    cache_bits: float
    launch_s: float
    kept_share: float
    """Of the memory, what is neither for kernels nor for what runs."""
    host_bytes_per_s: float
    """Between one device and its host."""

    @property
    def weight_bytes(self) -> float:
        model = self.model
        tables = (1.0 if model.tied else 2.0) * model.vocabulary * model.hidden
        return _WEIGHT_BYTES * (block_weights(model) * model.layers + tables)

    @property
    def token_bytes(self) -> float:
        """Bytes that are cached per token.

        Source:
            Jin et al.: S3, 2023: keys and values of all layers.
        """
        model = self.model
        return 2.0 * model.layers * model.kv_heads * model.head * self.cache_bits / 8.0

    @property
    def memory_bytes(self) -> float:
        """Of all devices, what weights and cache may take."""
        return self.devices * self.kept_share * device_of(self.device).dram_bytes

    @property
    def room(self) -> int:
        """Tokens that find room beside the weights; none, if these do not."""
        return max(0, int((self.memory_bytes - self.weight_bytes) // self.token_bytes))

    @property
    def pace(self) -> DecodingTimeModel:
        """Rates are those that the device was measured at, of a product and of a reading."""
        device, measured = device_of(self.device), ROWS[self.device, "bf16"]
        read = self.devices * device.dram_bytes_per_s * measured.memory_share
        rate = self.devices * device.flops_per_s["bf16"] * measured.compute_share
        return DecodingTimeModel(
            weights_s=self.weight_bytes / read,
            token_read_s=self.token_bytes / read,
            text_s=self.weight_bytes / _WEIGHT_BYTES * 2.0 / rate,
            launch_s=self.launch_s,
        )

    @property
    def moved_s(self) -> float:
        """To bring what is cached of one token to the host and back."""
        return 2.0 * self.token_bytes / (self.devices * self.host_bytes_per_s)

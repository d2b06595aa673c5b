"""Rotary positions, with the scalings of their frequencies for long texts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from dse.errors import SpecError
from dse_evaluators.workloads.own.families.config_values import ConfigValues

KINDS = ("default", "linear", "llama3", "yarn", "longrope")
"""Values of ``rope_type`` that are implemented."""

_SUPPORTED = f"supported: {', '.join(KINDS)}; other models: {{python: net.py:make}} or ONNX"


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryPositions:
    """Rotary position embedding: rotation of queries and keys by their positions.

    Attributes:
        width: number of elements of a head that are rotated; an even number.
        theta: base of the frequencies.
        kind: scaling of the frequencies, one of ``KINDS``.
        settings: the numbers of the scaling, as in ``rope_parameters``.
        factors: factors of the frequencies' periods for short and for long texts (longrope).
    """

    width: int
    theta: float
    kind: str = "default"
    settings: Mapping[str, float] = field(default_factory=dict)
    factors: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())

    @staticmethod
    def of(
        values: ConfigValues, given: Mapping[str, Any], width: int, theta: float
    ) -> RotaryPositions:
        """Read the rotary position embedding of a model or of one kind of its layers.

        Args:
            values: the content of ``config.json``.
            given: ``rope_parameters`` or ``rope_scaling``; it may be empty.
            width: number of elements of a head.
            theta: base of the frequencies, if ``given`` does not state it.

        Raises:
            SpecError: the scaling is not implemented, or a number is missing or not valid.
        """
        rope = ConfigValues(given, values.tensors)
        key = "rope_type" if "rope_type" in given else "type"
        kind = "longrope" if given.get(key) == "su" else given.get(key, "default")
        if kind not in KINDS:
            raise SpecError(f"config.json: rope_type {kind!r} is not supported", hint=_SUPPORTED)
        share = ConfigValues({**values.values, **given}).number("partial_rotary_factor", 1.0)
        turned = int(width * share)
        if turned % 2 or not 2 <= turned <= width:
            raise SpecError(
                f"config.json: {turned} of {width} elements of a head are rotated",
                hint="head_dim times partial_rotary_factor is an even number",
            )
        base = rope.number("rope_theta", theta)
        if base <= 1:
            raise SpecError(f"config.json: rope_theta is {base}", hint="a number above 1")
        numbers, factors = _settings(values, rope, kind, turned // 2)
        return RotaryPositions(
            width=turned,
            theta=base,
            kind=kind,
            settings=numbers,
            factors=factors,
        )

    def turns(self, length: int) -> tuple[Tensor, Tensor]:
        """Return cosines and sines of the rotation of each position, (length, width).

        Halves are paired, as in the files of transformers.

        Args:
            length: number of positions.

        Source:
            Su et al.: RoFormer, 2021, eq. 34.
        """
        angles = torch.outer(torch.arange(length, dtype=torch.float32), self._frequencies(length))
        both = torch.cat([angles, angles], dim=-1)
        scale = self.settings.get("attention_factor", 1.0)
        return both.cos() * scale, both.sin() * scale

    def _frequencies(self, length: int) -> Tensor:
        """Return the angle per position of each pair of elements, (width / 2,)."""
        periods = self.theta ** (torch.arange(0, self.width, 2, dtype=torch.float32) / self.width)
        plain, settings = 1.0 / periods, self.settings
        match self.kind:
            case "linear":
                return plain / settings["factor"]
            case "llama3":
                return _llama3(plain, settings)
            case "yarn":
                return _yarn(periods, settings, self.theta, self.width)
            case "longrope":
                is_long = length > settings["original_max_position_embeddings"]
                return 1.0 / (torch.tensor(self.factors[is_long]) * periods)
            case _:
                return plain


def rotate(signal: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """Rotate the first elements of each head by its position.

    Args:
        signal: queries or keys, (n, heads, t, head width).
        turns: cosines and sines, (t, width); elements beyond this width stay.
    """
    width = turns[0].shape[-1]
    turned, rest = signal[..., :width], signal[..., width:]
    first, second = turned.chunk(2, dim=-1)
    found = turned * turns[0] + torch.cat([-second, first], dim=-1) * turns[1]
    return torch.cat([found, rest], dim=-1) if rest.shape[-1] else found


def _settings(
    values: ConfigValues, rope: ConfigValues, kind: str, pairs: int
) -> tuple[dict[str, float], tuple[tuple[float, ...], tuple[float, ...]]]:
    """Return the numbers of a scaling, and the factors of the two lengths of longrope."""
    if kind == "default":
        return {}, ((), ())
    if kind == "linear":
        return {"factor": rope.number("factor")}, ((), ())
    longest = values.size("max_position_embeddings", 2048, most=2**40)
    inside = rope.number("original_max_position_embeddings", longest)
    original = values.number("original_max_position_embeddings", inside)
    found = {"original_max_position_embeddings": original}
    found["factor"] = rope.number("factor", longest / original if kind == "longrope" else None)
    if kind == "llama3":
        for key in ("factor", "low_freq_factor", "high_freq_factor"):
            found[key] = rope.number(key)
        if found["low_freq_factor"] >= found["high_freq_factor"]:
            raise SpecError("config.json: low_freq_factor is not below high_freq_factor")
        return found, ((), ())
    if kind == "yarn":
        found["attention_factor"] = _yarn_attention(rope, found["factor"])
        found["beta_fast"] = rope.number("beta_fast", 32.0)
        found["beta_slow"] = rope.number("beta_slow", 1.0)
        found["truncate"] = float(rope.flag("truncate", usual=True))
        return found, ((), ())
    usual = max(1.0, 1 + math.log(found["factor"]) / math.log(max(original, 2.0))) ** 0.5
    found["attention_factor"] = rope.number("attention_factor", usual)
    return found, (_factors(rope, "short_factor", pairs), _factors(rope, "long_factor", pairs))


def _factors(rope: ConfigValues, key: str, pairs: int) -> tuple[float, ...]:
    given = rope.values.get(key)
    if not isinstance(given, list) or len(given) != pairs:
        raise SpecError(f"config.json: {key} is not a list of {pairs} numbers")
    return tuple(ConfigValues({key: one}).number(key) for one in given)


def _yarn_attention(rope: ConfigValues, factor: float) -> float:
    """Return the factor of cosines and sines, by which YaRN sharpens attention.

    Source:
        Peng et al.: YaRN, 2023, eq. 22, with ``mscale`` as in DeepSeek-V2.
    """

    def sharpen(weight: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    usual = sharpen(1.0)
    if rope.values.get("mscale") and rope.values.get("mscale_all_dim"):
        usual = sharpen(rope.number("mscale")) / sharpen(rope.number("mscale_all_dim"))
    return rope.number("attention_factor", usual)


def _llama3(plain: Tensor, settings: Mapping[str, float]) -> Tensor:
    """Divide low frequencies by the factor, and interpolate those between low and high ones.

    Source:
        Llama Team: The Llama 3 Herd of Models, 2024, with the released code of Llama 3.1.
    """
    factor, low, high = (settings[k] for k in ("factor", "low_freq_factor", "high_freq_factor"))
    turns = settings["original_max_position_embeddings"] * plain / (2 * math.pi)
    smooth = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - smooth) * plain / factor + smooth * plain


def _yarn(periods: Tensor, settings: Mapping[str, float], theta: float, width: int) -> Tensor:
    """Divide frequencies with few turns in the original length by the factor; keep high ones.

    Source:
        Peng et al.: YaRN, 2023, section 3.2.
    """
    original = settings["original_max_position_embeddings"]
    ends = [
        width * math.log(original / (settings[key] * 2 * math.pi)) / (2 * math.log(theta))
        for key in ("beta_fast", "beta_slow")
    ]
    if settings["truncate"]:
        ends = [math.floor(ends[0]), math.ceil(ends[1])]
    low, high = max(ends[0], 0), min(ends[1], width - 1)
    high += 0.001 if low == high else 0
    ramp = ((torch.arange(width // 2, dtype=torch.float32) - low) / (high - low)).clamp(0, 1)
    return ramp / (settings["factor"] * periods) + (1 - ramp) / periods

"""Number formats of activations, keys and values, from the options of `compression.recipe`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dse.core.values import Value
from dse.errors import SpecError
from dse_evaluators.compression.layer_recipes import KEEP
from dse_evaluators.compression.template import Template, members
from dse_evaluators.formats.format import Format
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.models import ModelRef, model_of
from dse_evaluators.workloads.workload import Signals

_WHOLE = (KEEP, "fp32")
_ATTENTION = re.compile(r"(.*)\b(attention\.qkv|self\.key|k_proj|qkv_proj|c_attn)(\.weight)?")
"""Weights that give the keys of a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalFormats:
    """Number formats to which a design rounds activations, keys and values, as templates.

    A list parameter of ``keys`` or ``values`` has an element for each block with attention.
    """

    activations: Template
    keys: Template
    values: Template

    @staticmethod
    def of(activations: str, kv_cache: str, keys: str, values: str) -> SignalFormats:
        """Build the templates of activation and KV cache formats from options; some may be empty.

        Raises:
            SpecError: a text is malformed, or ``kv_cache`` has no effect.
        """
        if keys and values and kv_cache != KEEP:
            raise SpecError(
                f"kv_cache: {kv_cache} has no effect, because keys and values are given",
                hint="leave out kv_cache",
                part=["kv_cache"],
            )
        return SignalFormats(
            activations=Template.of(activations),
            keys=Template.of(keys or kv_cache),
            values=Template.of(values or kv_cache),
        )

    @property
    def names(self) -> frozenset[str]:
        """Names of the design parameters in the format templates."""
        return frozenset((*self.activations.names, *self.keys.names, *self.values.names))

    @property
    def rounded_cache(self) -> str:
        """First option that rounds keys or values of the KV cache; empty if there is none."""
        given = {"kv_cache": self.keys, "values": self.values}
        return next((name for name, one in given.items() if one.text not in _WHOLE), "")

    @property
    def rounds_cache(self) -> bool:
        """Whether keys or values of the KV cache are rounded."""
        return any(one.text not in _WHOLE for one in (self.keys, self.values))

    def signals(self, design: Mapping[str, Value]) -> Signals:
        """Return the formats of activations, keys and values for a design."""
        return Signals(
            activations=_format(self.activations.fill(design, 0)),
            keys=_fill_blocks(self.keys, design),
            values=_fill_blocks(self.values, design),
        )

    def check(self, values: Mapping[str, Sequence[Value]], blocks: int) -> None:
        """Check that the formats are valid for all values of the design parameters.

        Args:
            values: values of each parameter.
            blocks: number of blocks with attention; 0 if it is unknown.

        Raises:
            SpecError: a format is invalid, activations have a list of formats, or a list has not
                one element for each block with attention.
        """
        for name in self.activations.names:
            if members(name, tuple(values)):
                raise SpecError(
                    f"{name!r} is a list, but activations have one format in all layers"
                )
        for option, template in (("keys", self.keys), ("values", self.values)):
            for name in template.names:
                given = len(members(name, tuple(values)))
                if given and blocks and given != blocks:
                    raise SpecError(
                        f"{name!r} has {given} elements, but {option} need one for each of the "
                        f"{blocks} blocks with attention",
                        hint=f"each: {blocks}",
                    )
        for template in (self.activations, self.keys, self.values):
            for text in template.fillings(values, 0):
                _format(text)


def count_attention(model: ModelRef) -> int:
    """Return the number of blocks with attention, by their weights; 0 if no name shows one."""
    own = None if isinstance(model, str) else model
    if own is not None and not own.is_known:
        return 0
    found = (_ATTENTION.fullmatch(name) for name in model_of(model).layers)
    return len({one[1] for one in found if one is not None})


def _fill_blocks(template: Template, design: Mapping[str, Value]) -> tuple[Format | None, ...]:
    """Return one format for all blocks, or one per block if a parameter is a list.

    ``None`` stands for single precision; the result is empty if all blocks have it.
    """
    lists = [len(members(name, tuple(design))) for name in template.names]
    found = tuple(_format(template.fill(design, place)) for place in range(max([1, *lists])))
    return found if any(found) else ()


def _format(text: str) -> Format | None:
    """Return the named number format; None if the numbers stay in single precision."""
    return None if text in _WHOLE else format_of(text)

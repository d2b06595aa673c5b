"""Number formats and protections of a model's layers, as a study names them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import product

from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse_evaluators.compression.layer_recipes import LayerGroup, parts_of
from dse_evaluators.compression.operators.dense import axis_of
from dse_evaluators.compression.template import Template
from dse_evaluators.faults.code_bits import code_bits
from dse_evaluators.faults.protections import check_protection, protection_of
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.models import ModelRef, WorkloadModel, model_of
from dse_evaluators.workloads.shapes import shapes_of

_AND = " | "


@dataclass(frozen=True)
class LayerProtections:
    """Number format and bit-flip protection of each layer, as texts of a study.

    Args:
        model: the model.
        format: number format of all layers, with design parameters in braces.
        protection: protection of the layers that no pattern matches.
        others: protections of other layers by name pattern; the first match applies.
    """

    model: ModelRef
    format: str
    protection: str
    others: object

    @property
    def is_known(self) -> bool:
        """Whether the model's layers are known without calling a function of the user."""
        found = model_of(self.model)
        return isinstance(found, WorkloadModel) or found.is_known

    @cached_property
    def parts(self) -> tuple[LayerGroup, ...]:
        """Layers grouped by the text of their protection.

        Raises:
            SpecError: a pattern matches none of the remaining layers.
        """
        layers = model_of(self.model).layers
        return parts_of(layers, self._join(self.protection), self._others)

    @property
    def reads(self) -> frozenset[str]:
        """Names of the design parameters in braces."""
        texts = (self._join(self.protection), *self._others.values())
        return frozenset(name for text in texts for name in Template.of(text).names)

    def check(self, values: Mapping[str, Sequence[Value]], bits: Template) -> None:
        """Check formats, protections and bits for all values of the design parameters.

        Args:
            values: values of the design parameters.
            bits: the bits that may flip.

        Raises:
            SpecError: a format, a protection or bits do not exist or do not fit one another, or a
                list does not have one element for each layer.
        """
        chosen = tuple(bits.fillings(values, 0))
        if not self.is_known:
            texts = [self._join(self.protection), *self._others.values()]
            parts = tuple(LayerGroup(template=Template.of(text), layers=("",)) for text in texts)
        else:
            parts = self.parts
            for part in parts:
                part.check_lengths(tuple(values))
        for part in parts:
            for place in range(len(part.layers)):
                for text, some in product(
                    part.template.fillings(values, place), chosen or ("all",)
                ):
                    _check_text(text, some)

    def of_layers(self, design: Mapping[str, Value]) -> dict[str, tuple[str, str]]:
        """Return the format and the protection of each layer for a design, by name."""
        found = {
            name: divide(part.template.fill(design, place))
            for part in self.parts
            for place, name in enumerate(part.layers)
        }
        return {name: found[name] for name in model_of(self.model).layers}

    def chosen_layers(self, where: str) -> tuple[str, ...]:
        """Return the layers whose names match a pattern.

        Raises:
            SpecError: no layer matches.
        """
        layers = model_of(self.model).layers
        found = tuple(name for name in layers if fnmatchcase(name, where))
        if not found:
            raise SpecError(
                f"no layer matches {where!r}", hint=nearest(where.replace("*", ""), layers)
            )
        return found

    def _join(self, protection: object) -> str:
        for option, text in (("format", self.format), ("protection", protection)):
            if not isinstance(text, str):
                raise SpecError(f"a {option} cannot be {text!r}", hint="a text", part=[option])
        return f"{self.format}{_AND}{protection}"

    @property
    def _others(self) -> dict[str, str]:
        if not isinstance(self.others, Mapping):
            hint = "protections by pattern, as in {'conv*': tmr}"
            raise SpecError(f"layers cannot be {self.others!r}", hint=hint, part=["layers"])
        return {pattern: self._join(text) for pattern, text in self.others.items()}


def divide(text: str) -> tuple[str, str]:
    """Split a text ``format | protection`` into the format and the protection."""
    form, _, protection = text.rpartition(_AND)
    return form.strip(), protection.strip()


def overhead_of_layer(
    model: ModelRef, layer: str, form: str, name: str
) -> tuple[float, float, float, float]:
    """Return a layer's additional and total bits, and its additional and total operations.

    Operations are those of one use of each weight: a multiplication and an addition.

    Args:
        model: the model.
        layer: name of the layer.
        form: number format of the layer.
        name: protection of the layer.

    Raises:
        SpecError: the protection does not fit the format.
        EvaluationError: the blocks of the format do not fit the layer.
    """
    shape = shapes_of(model)[layer]
    size = format_of(form).bits(shape, axis_of(shape))
    protection = protection_of(name)
    check_protection(name, code_bits(form))
    extra = protection.check_bits(code_bits(form)) * size.numbers + protection.layer_bits
    operations = protection.operations * size.numbers
    return float(extra), float(size.total), float(operations), 2.0 * size.numbers


def _check_text(text: str, bits: str) -> None:
    form, protection = divide(text)
    code = code_bits(form)
    check_protection(protection, code)
    code.chosen(bits)

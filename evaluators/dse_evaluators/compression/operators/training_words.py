"""Arguments of operators that train the weights of a network together with their rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from dse.errors import EvaluationError, SpecError, nearest
from dse_evaluators.compression.operators.recipe_words import parts, whole
from dse_evaluators.formats.format import Format
from dse_evaluators.formats.integers import Integers
from dse_evaluators.formats.layout import Tile
from dse_evaluators.formats.linear import Linear
from dse_evaluators.formats.names import format_of

LSQ = "lsq"
STRAIGHT_THROUGH = "straight-through"
TRAINING = (LSQ, STRAIGHT_THROUGH)
"""Operators that need the network and its data, besides the weights of a layer."""

_EXAMPLE = "200/int4:channel"
_MOST_STEPS = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightTraining:
    """Settings of quantization-aware training, which all trained layers of a network share.

    Attributes:
        steps: number of updates.
        rate: learning rate of the first update; it falls to zero along half a cosine.
        batch: examples of an update.
        seed: seed of the order of the examples.
        distill: weight of the distance to the outputs of the uncompressed network in the loss, 0 to
            1; the rest is the weight of the distance to the targets.
        temperature: temperature of both networks' class probabilities in the distance to outputs.
    """

    steps: int
    rate: float = 1e-3
    batch: int = 32
    seed: int = 0
    distill: float = 0.0
    temperature: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedRecipe:
    """Recipe of a layer whose weights are trained: the operator, its settings and the format."""

    operator: str
    training: WeightTraining
    form: Format

    @staticmethod
    def of(operator: str, argument: str) -> TrainedRecipe:
        """Parse an argument such as ``200/int4:channel`` or ``200,rate=0.01,seed=1/ternary``.

        Raises:
            SpecError: a setting or the format is unknown, out of range, or not for this operator.
        """
        words, mark, text = argument.partition("/")
        if not mark:
            raise SpecError(
                f"{argument!r} is not of the form {_EXAMPLE!r}",
                hint=f"the number of steps, then the format: '{operator} {_EXAMPLE}'",
            )
        form = format_of(text)
        if operator == LSQ:
            _check_steps(form)
        if form.seed is not None:
            raise SpecError(
                f"{operator} does not round at random, as {text!r} does",
                hint="leave out the seed of the format",
            )
        return TrainedRecipe(operator=operator, training=_read_training(words), form=form)


def trained_recipe(recipe: str) -> TrainedRecipe | None:
    """Return the training that a recipe requests; ``None`` if layers are compressed separately.

    Raises:
        SpecError: the recipe is invalid.
    """
    name, argument = parts(recipe.rpartition(">")[2])
    return TrainedRecipe.of(name, argument) if name in TRAINING else None


def is_trained(recipe: str) -> bool:
    """Return whether a recipe ends with an operator that trains the weights."""
    return parts(recipe.rpartition(">")[2])[0] in TRAINING


def training_of(recipes: Mapping[str, TrainedRecipe]) -> WeightTraining:
    """Return the settings that all trained layers of a network share.

    Raises:
        EvaluationError: two layers have different settings.
    """
    (first, one), *rest = recipes.items()
    for name, other in rest:
        if other.training != one.training:
            raise EvaluationError(
                f"{first} and {name} are trained together, but their steps or settings differ",
                hint="give all trained layers the same steps, rate, batch, seed and distillation",
            )
    return one.training


def _read_training(text: str) -> WeightTraining:
    steps, *settings = (word.strip() for word in text.split(","))
    found = WeightTraining(steps=whole(steps))
    if found.steps > _MOST_STEPS:
        raise SpecError(f"{steps} steps are too many", hint=f"at most {_MOST_STEPS:,}")
    given: set[str] = set()
    for setting in settings:
        name, _, value = (word.strip() for word in setting.partition("="))
        if name not in _SETTINGS:
            hint = nearest(name, _SETTINGS)
            raise SpecError(f"training has no setting {setting!r}", hint=f"{hint}, as in rate=0.01")
        if name in given:
            raise SpecError(f"training has two settings {name!r}", hint="leave one out")
        found = _SETTINGS[name](found, value)
        given.add(name)
    if "temperature" in given and not found.distill:
        raise SpecError("temperature has no effect without distill", hint="add distill=0.5")
    if found.batch < 1:
        raise SpecError("a batch cannot be empty", hint="batch=32")
    return found


_SETTINGS: Mapping[str, Callable[[WeightTraining, str], WeightTraining]] = {
    "rate": lambda found, text: replace(found, rate=_number("rate", text)),
    "batch": lambda found, text: replace(found, batch=whole(text)),
    "seed": lambda found, text: replace(found, seed=whole(text)),
    "distill": lambda found, text: replace(found, distill=_number("distill", text)),
    "temperature": lambda found, text: replace(found, temperature=_number("temperature", text)),
}


def _number(name: str, text: str) -> float:
    most = 1.0 if name == "distill" else math.inf
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (0 < found <= most and math.isfinite(found)):
        limits = "above 0, at most 1" if name == "distill" else "above 0"
        raise SpecError(f"{name} cannot be {text!r}", hint=limits)
    return found


def _check_steps(form: Format) -> None:
    """Raise SpecError unless a format has one learnable step for each block of integers."""
    scaling = form.scaling
    is_linear = isinstance(scaling, Linear) and isinstance(form.grid, Integers)
    if not is_linear or form.grid.top < 1 or isinstance(scaling.span, Tile):
        raise SpecError(
            f"lsq learns the step of symmetric integers, which {form.name!r} does not have",
            hint="int4:channel or int4:group=32, or straight-through, which takes any format",
        )
    assert isinstance(scaling, Linear)
    if scaling.measure != "max":
        raise SpecError(
            f"lsq learns the step, so {scaling.measure!r} of {form.name!r} has no effect",
            hint="leave it out, as in int4:channel",
        )

"""Check that a model can be trained, before a study runs and without loading the model."""

from __future__ import annotations

from collections.abc import Iterable

from dse.errors import SpecError
from dse_evaluators.compression.operators.training_words import is_trained
from dse_evaluators.workloads.models import MODELS, ModelRef

_MEND = "gptq needs calibration inputs only, as in 'gptq int4:channel'"


def check_training(model: ModelRef, recipes: Iterable[str]) -> None:
    """Raise SpecError if a recipe trains the weights of a model that cannot be trained.

    Args:
        model: name of a built-in model, or a model of the user.
        recipes: recipes of the model's layers.
    """
    text = next((one for one in recipes if is_trained(one)), None)
    if text is None:
        return
    check_trainable(model, repr(text), _MEND)
    if not isinstance(model, str) and model.is_sequential:
        raise SpecError(
            f"{text!r} trains all layers at once, so calibration: sequential does not apply",
            hint="leave out calibration, which gptq uses",
            part=["calibration"],
        )


def check_trainable(model: ModelRef, what: str, mend: str = "") -> None:
    """Raise SpecError unless PyTorch runs the model with gradients, as training requires.

    Args:
        model: name of a built-in model, or a model of the user.
        what: the recipe or evaluator that trains, for the message.
        mend: another way without training.
    """
    more = f"; {mend}" if mend else ""
    if isinstance(model, str):
        able = [name for name, one in MODELS.items() if one.is_trainable]
        if model not in able:
            raise SpecError(
                f"{what} cannot train {model}", hint=f"built-in models: {', '.join(able)}{more}"
            )
    elif model.label.endswith(".onnx"):
        raise SpecError(
            f"{what} cannot train {model.label}: onnxruntime computes no gradients",
            hint=f"name the model as {{python: net.py:make}}{more}",
        )


def refuse_training(recipes: Iterable[str], evaluator: str) -> None:
    """Raise SpecError if a recipe trains weights, for an evaluator that cannot train.

    Args:
        recipes: recipes of a model's layers.
        evaluator: name of the evaluator.
    """
    text = next((one for one in recipes if is_trained(one)), None)
    if text is not None:
        raise SpecError(
            f"{evaluator} runs no model, so that {text!r} cannot train it",
            hint="compression.recipe trains; without training: 'format int4:channel'",
        )

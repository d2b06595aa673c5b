"""Interface of evaluators that measure a model which each machine trains by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from dse.protocols.capability import Capability
from dse.protocols.evaluator import Evaluator


@runtime_checkable
class HasTrainedWeights(Protocol, metaclass=Capability):
    """Evaluator of a model that is trained on its first use.

    The weights depend on the processor and on the training library, so they cannot be part of
    ``version``, which is fixed before the training. A study compares the weights on each driver
    (process that runs the study) with the weights that the study began with.

    Laws:
        - Equal weights have equal hashes, in every process; different weights have different
          hashes.
    """

    def trained_weights(self) -> Mapping[str, str]:
        """Return the hash of the weights of each model that this machine trains, by model name.

        The result is empty if the evaluator needs no such model. Models that are not trained yet
        are trained by this call.

        Raises:
            DseError: a model cannot be trained, for instance because its data is not installed.
        """
        ...


def weights_trained_for(evaluator: Evaluator) -> Mapping[str, str]:
    """Return the hash of the weights of each model that this machine trains for an evaluator.

    The result, by name of the model, is empty if the evaluator needs no such model.

    Args:
        evaluator: the evaluator.

    Raises:
        DseError: a model cannot be trained.
    """
    return evaluator.trained_weights() if isinstance(evaluator, HasTrainedWeights) else {}

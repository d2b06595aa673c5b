"""Data of the user, with at most some examples of the splits that judge a model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dse.errors import SpecError
from dse_evaluators.workloads.models import ModelRef
from dse_evaluators.workloads.own.own_data import DataSource, OwnData
from dse_evaluators.workloads.own.own_model import OwnModel
from dse_evaluators.workloads.own.own_splits import PARTS

_DROPPED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnExamples(DataSource):
    """Data source of which a random sample of each of the splits ``search`` and ``test`` is used.

    Attributes:
        most: maximal number of examples of each of the two splits.
    """

    most: int

    def load(self) -> OwnData:
        """Return the examples; examples that were not drawn belong to no split."""
        # Not super(): a dataclass with slots is another class than the one that is written here.
        data = DataSource.load(self)
        parts = data.parts.copy()
        for name in ("search", "test"):
            places = np.flatnonzero(parts == PARTS.index(name))
            parts[np.random.default_rng(0).permutation(places)[self.most :]] = _DROPPED
        return replace(data, parts=parts)


def draw_examples(model: ModelRef, most: int | None) -> ModelRef:
    """Return a model of the user that is run on a sample of its examples; ``None``: on all.

    Args:
        model: the model.
        most: maximal number of examples.

    Raises:
        SpecError: the model is not one of the user, and so has its own examples.
    """
    if most is None:
        return model
    if not isinstance(model, OwnModel) or model.data is None:
        raise SpecError(
            f"{model} has its own examples",
            hint="leave out examples; it applies to models of yours",
            part=["examples"],
        )
    drawn = DrawnExamples(
        edition=f"{model.data.edition}-{most}",
        origin=model.data.origin,
        settings=model.data.settings,
        most=most,
    )
    return replace(model, data=drawn, edition=f"{model.edition}-{most}")

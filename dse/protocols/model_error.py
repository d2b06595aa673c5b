"""Interface of evaluators that state the error of their model for each metric of a design."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from dse.core.batch import Batch
from dse.protocols.capability import Capability

ErrorOrigin = Literal["held out", "extrapolated", "data sheet only"]


class ModelError(NamedTuple):
    """Relative error of a modelled metric of a design, and the measurements that show it.

    Designs are grouped, for example by device and number format. ``origin`` is ``held out`` if the
    design's own group was measured, ``extrapolated`` if only a similar group was (``mean`` may then
    be too small), and ``data sheet only`` if no measurement of this device, or of this metric, is
    known. ``mean`` is the mean relative error on measurements that the model was not fitted to (0.1
    is 10 %), NaN if it is unknown. Designs with the same ``shares`` have a common factor by which
    all predictions are off; ``within`` is the mean relative error that remains without that factor.
    ``within`` is NaN if it is unknown; then use ``mean``.
    """

    origin: ErrorOrigin
    mean: float = math.nan
    within: float = math.nan
    group: str = ""
    """The measurements, in words: ``llama2-70b on A100, 18 points``."""
    shares: str = ""


@runtime_checkable
class StatesModelErrors(Protocol, metaclass=Capability):
    """Evaluator that states the error of its model for each metric of a design."""

    def model_errors(self, batch: Batch) -> Mapping[str, Sequence[ModelError]]:
        """Return the errors of the metrics of n designs, by metric; exact metrics are left out.

        Args:
            batch: the inputs, as for ``evaluate``.
        """
        ...

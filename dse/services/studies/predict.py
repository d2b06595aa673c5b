"""Prediction of metrics by the surrogate of a study's optimizer, fitted to its record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dse.core.design import Design
from dse.errors import StudyError
from dse.protocols import PredictsMetrics, traits_of
from dse.schema.study.plugin_checks import AUTO
from dse.study.asking import teachable
from dse.study.proposers import find_auto_choice, suggesting
from dse.study.study_engine import StudyEngine
from dse.system.credentials import private_environment


class PredictedMetric(NamedTuple):
    """Prediction of one metric of one design: its mean and standard error, in its unit."""

    mean: float
    stderr: float


def predict_designs(
    study: StudyEngine, designs: Sequence[Design]
) -> list[dict[str, PredictedMetric]]:
    """Predict the metrics of designs by the study's surrogates; return them by metric.

    Args:
        study: the study, whose finished trials are the training data.
        designs: legal designs.

    Raises:
        StudyError: the optimizer has no surrogate or is not chosen yet, too few trials have
            metrics, or a model cannot run here.
    """
    study.check_runnable(["modelled"])
    use = study.plan.optimizer.use
    chosen = find_auto_choice(study.events) if use == AUTO else use
    if not chosen:
        raise StudyError(
            f"the optimizer of the study {study.name!r} is not chosen yet",
            hint="'auto' chooses it in the first run, after one measurement",
        )
    optimizer = suggesting(study.plan, chosen)
    if not isinstance(optimizer, PredictsMetrics):
        raise StudyError(
            f"the optimizer {chosen!r} has no surrogate that predicts metrics",
            hint="grey-box and qlognehvi have one: carry the trials over to a study with one of "
            "them (dse studies migrate)",
        )
    study.plan.pipeline.may_start = True  # models compute the modelled metrics
    if not designs:
        return []
    with private_environment():
        optimizer.tell(teachable(traits_of(optimizer), study.finished))
        found = optimizer.predict(designs)
    if not found:
        raise StudyError(
            "there are too few finished trials for a prediction",
            hint="two of them need different values: run the study first",
        )
    return [
        {
            name: PredictedMetric(float(means[row]), float(errors[row]))
            for name, (means, errors) in found.items()
        }
        for row in range(len(designs))
    ]

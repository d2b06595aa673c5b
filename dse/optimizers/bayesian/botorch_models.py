"""Gaussian processes over encoded designs, by BoTorch; import it in a seeded scope only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.logei import (
    qLogNoisyExpectedImprovement,
    qLogProbabilityOfFeasibility,
)
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.objective import GenericMCMultiOutputObjective
from botorch.acquisition.multi_objective.parego import qLogNParEGO
from botorch.acquisition.multi_objective.utils import prune_inferior_points_multi_objective
from botorch.acquisition.objective import GenericMCObjective
from botorch.exceptions.errors import BotorchError, ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models.gp_regression import SingleTaskGP
from botorch.models.model_list_gp_regression import ModelListGP
from botorch.sampling.normal import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator.utils.errors import NotPSDError  # type: ignore[import-untyped]

from dse.core.values import Floats, Ints
from dse.optimizers.bayesian.training_data import (
    MANY_OBJECTIVES,
    RegressionTarget,
    Scale,
    TrainingData,
)

NUMERICAL = (
    ArithmeticError,
    RuntimeError,
    ValueError,
    BotorchError,
    ModelFittingError,
    NotPSDError,
)
"""Exceptions of numerical failures: values too large, too small or too similar."""

_SAMPLES = {1: 128, 2: 64, 3: 16, 4: 8}
_LEAST_VARIANCE = 1e-6
MOST_FITTED = 128
"""Most values from which hyperparameters are estimated, as each step costs the cube of them."""
_FIT_STEPS = 100
_CHUNK = 128
_MANY_BASELINE, _PRUNE_SAMPLES = 64, (2_048, 256)
"""Trials above which fewer samples decide which of them may be on the front, and these samples."""


class BotorchSurrogate:
    """Surrogate of independent Gaussian processes, one per objective and per measured limit.

    A measured limit is a limit on a metric that a measurement yields.

    Args:
        data: training data.
        fitted: earlier surrogate, whose hyperparameters are kept if it has the same targets;
            otherwise, and by default, hyperparameters are fitted.

    Source:
        Ament, Daulton, Eriksson, Balandat, Bakshy: Unexpected Improvements to Expected
        Improvement for Bayesian Optimization, NeurIPS 2023 (the acquisition functions); Hvarfner,
        Hellsten, Nardi: Vanilla Bayesian Optimization Performs Great in High Dimensions, ICML 2024
        (the priors).
    """

    def __init__(self, data: TrainingData, fitted: BotorchSurrogate | None = None) -> None:
        self._data = data
        groups = [list(group) for _, group in groupby(data.targets, _kind)]
        self.shapes = [(len(group), group[0].variances is None) for group in groups]
        """Number of targets of each process, and whether their variances are unknown."""
        if fitted is not None and fitted.shapes == self.shapes:
            processes = [
                _with_hyperparameters_of(one, data.points, group)
                for one, group in zip(fitted.processes, groups, strict=True)
            ]
        else:
            processes = [_fit_process(data.points, group) for group in groups]
        self.processes: list[SingleTaskGP] = processes
        """Process of each group of targets that were observed at the same points."""
        self._model = ModelListGP(*processes)

    def moments(
        self,
        points: Floats,  # (n, coordinates)
    ) -> tuple[Floats, Floats]:
        """Return posterior means and deviations of all objectives and limits at n points.

        Each array has shape (n, targets); a target is an objective or a measured limit.
        """
        with torch.no_grad():
            # a posterior holds the covariance of all its points: few at a time are cheaper
            found = [self._model.posterior(part) for part in torch.split(_tensor(points), _CHUNK)]
            means = torch.cat([one.mean for one in found])
            variances = torch.cat([one.variance for one in found])
        return means.numpy(), variances.clamp_min(1e-12).sqrt().numpy()

    def acquisition(self, rng: np.random.Generator) -> Acquisition:
        """Return the BoTorch acquisition function that suits the objectives and feasible trials."""
        return Acquisition(self._function(rng))

    def _function(self, rng: np.random.Generator) -> AcquisitionFunction:
        data, objectives = self._data, len(self._data.scales)
        constraints = [
            _constraint(place, target.threshold)
            for place, target in enumerate(data.targets)
            if target.threshold is not None
        ]
        sampler = SobolQMCNormalSampler(
            torch.Size([_SAMPLES.get(objectives, 64)]), seed=int(rng.integers(2**31))
        )
        if not data.baseline.any():
            return qLogProbabilityOfFeasibility(self._model, constraints, sampler=sampler)
        baseline = _tensor(data.points[data.baseline])
        if objectives == 1:
            return qLogNoisyExpectedImprovement(
                self._model,
                baseline,
                sampler=sampler,
                objective=GenericMCObjective(self._gain),
                constraints=constraints or None,
            )
        gains = GenericMCMultiOutputObjective(self._gains)
        if objectives > MANY_OBJECTIVES:
            return qLogNParEGO(
                self._model,
                baseline,
                scalarization_weights=_tensor(rng.dirichlet(np.ones(objectives))),
                sampler=sampler,
                objective=gains,
                constraints=constraints or None,
                prune_baseline=True,
            )
        reference = torch.zeros(objectives, dtype=torch.double)
        front = prune_inferior_points_multi_objective(
            self._model,
            baseline,
            reference,
            objective=gains,
            constraints=constraints or None,
            num_samples=_PRUNE_SAMPLES[len(baseline) > _MANY_BASELINE],
        )
        return qLogNoisyExpectedHypervolumeImprovement(
            self._model,
            reference,
            front,
            sampler=sampler,
            objective=gains,
            constraints=constraints or None,
            prune_baseline=False,
        )

    def _gains(self, samples: torch.Tensor, X: object = None) -> torch.Tensor:  # noqa: ARG002, N803
        """Return posterior samples of all objectives, (..., m), as values to maximise.

        ``samples`` are on the surrogate's scale; the result is on the acquisition function's.
        """
        gains = [
            -_judge_tensors(scale, samples[..., place])
            for place, scale in enumerate(self._data.scales)
        ]
        return torch.stack(gains, dim=-1)

    def _gain(self, samples: torch.Tensor, X: object = None) -> torch.Tensor:  # noqa: ARG002, N803
        """Return posterior samples of the only objective, (...), as values to maximise."""
        return self._gains(samples)[..., 0]


class Acquisition:
    """Acquisition function of BoTorch over encoded designs, on a log scale."""

    def __init__(self, function: AcquisitionFunction) -> None:
        self._function = function

    def wait_for(
        self,
        points: Floats,  # (p, coordinates)
    ) -> None:
        """Set the pending points, over whose unknown outcomes later acquisition values average."""
        if len(points):
            self._function.set_X_pending(_tensor(points))

    def worth(
        self,
        points: Floats,  # (n, coordinates)
    ) -> Floats:
        """Return the log acquisition value of each point, (n,)."""
        with torch.no_grad():
            parts = [
                self._function(part[:, None, :]) for part in torch.split(_tensor(points), _CHUNK)
            ]
        return np.nan_to_num(torch.cat(parts).numpy(), nan=-np.inf)


def _kind(target: RegressionTarget) -> tuple[bytes, bool]:
    """Return the key by which consecutive targets (objectives, limits) are fitted together.

    Targets of equal key are observed at the same points, all with or all without variances, so that
    one batched Gaussian process fits them.
    """
    return target.rows.tobytes(), target.variances is None


def _fit_process(points: Floats, targets: Sequence[RegressionTarget]) -> SingleTaskGP:
    """Return a process with the hyperparameters of greatest posterior density.

    If there are many values, the hyperparameters are fitted to an even sample of them, but
    predictions are conditioned on all.
    """
    own = points[targets[0].rows]
    if len(own) <= MOST_FITTED:
        return _with_fitted_hyperparameters(_process(own, targets))
    some = np.linspace(0, len(own) - 1, MOST_FITTED).round().astype(int)
    fitted = _with_fitted_hyperparameters(_process(own, targets, some))
    return _with_hyperparameters_of(fitted, points, targets)


def _with_hyperparameters_of(
    fitted: SingleTaskGP, points: Floats, targets: Sequence[RegressionTarget]
) -> SingleTaskGP:
    """Return a process over the targets' values with the hyperparameters of another process."""
    model = _process(points[targets[0].rows], targets)
    model.load_state_dict(fitted.state_dict())
    return model.eval()


def _process(
    points: Floats,  # (n, coordinates)
    targets: Sequence[RegressionTarget],
    rows: Ints | None = None,  # (k,), all of n by default
) -> SingleTaskGP:
    """Return a process over the targets' values at these points, with initial hyperparameters."""
    kept = slice(None) if rows is None else rows
    observed = [target.variances[kept] for target in targets if target.variances is not None]
    variances = _tensor(np.column_stack(observed)).clamp_min(_LEAST_VARIANCE) if observed else None
    return SingleTaskGP(
        _tensor(points[kept]),
        _tensor(np.column_stack([target.values[kept] for target in targets])),
        variances,
        outcome_transform=None,
    )


def _with_fitted_hyperparameters(model: SingleTaskGP) -> SingleTaskGP:
    fit_gpytorch_mll(
        ExactMarginalLogLikelihood(model.likelihood, model),
        optimizer_kwargs={"options": {"maxiter": _FIT_STEPS}},
    )
    return model


def _judge_tensors(scale: Scale, learnt: torch.Tensor) -> torch.Tensor:
    """Map values on the surrogate's scale to that of the acquisition function, as tensors.

    It is :meth:`Scale.losses` followed by :meth:`Scale.judged`.
    """
    mapped = learnt * scale.width + scale.centre
    losses = scale.log * (scale.log * mapped).exp() if scale.log else mapped
    return (losses - scale.reference) / scale.reach


def _constraint(place: int, threshold: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function of posterior samples that is negative where a limit is satisfied.

    BoTorch expects constraints in this form.
    """
    return lambda samples: threshold - samples[..., place]


def _tensor(values: Floats | Sequence[float]) -> torch.Tensor:
    return torch.as_tensor(np.asarray(values), dtype=torch.double)

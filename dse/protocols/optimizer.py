"""Interface of optimizers, which propose designs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from dse.core.design import Design
from dse.core.preference_answers import PreferenceAnswer
from dse.core.trial import Event, Trial
from dse.core.values import Floats
from dse.protocols.capability import Capability


class Optimizer(Protocol):
    """Optimizer: suggests designs to evaluate, given the results of earlier ones.

    An optimizer is constructed with ``(problem, **options)``. :class:`OptimizerTraits` states what
    a study relies on; optional abilities are further protocols.

    Laws:
        - It draws random numbers only from ``problem.rng(n)`` or ``problem.rng(n, pending)``, where
          ``n`` is the number of finished trials that it received.
        - ``ask`` changes no state: called twice, it returns the same designs.
        - Each design it returns is legal and new: neither finished nor pending; otherwise the run
          ends.
        - The same finished trials in the same order give the same designs, however the trials were
          split over calls.
        - It returns at most ``count`` designs; an empty list means that no design is left.
    """

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        """Return up to ``count`` designs to evaluate next.

        Args:
            count: the maximum number of designs.
            pending: designs that were returned before and are not finished.
        """
        ...

    def tell(self, finished: Sequence[Trial]) -> None:
        """Receive finished trials; each is passed once, in the order in which they finished."""
        ...

    def events(self) -> list[Event]:
        """Return the events to show to the user that occurred since the last call.

        Events are choices, fallbacks and proofs of an exact front.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerTraits:
    """Properties of an optimizer class, stated in its attribute ``traits``, that a study relies on.

    Attributes:
        batch: preferred number of designs per ``ask`` when evaluations cost nothing.
        enumerates: it lists every legal design, so the space must be countable.
        exhaustive: it ends by itself when all legal designs are searched, and needs no budget.
        completes_front: after its run, the front is completed by designs that can reuse
            measurements.
        multi_fidelity: it chooses the fidelity of each evaluation, and receives trials that were
            evaluated at a low fidelity alone (``State.SCREENED``).
        learns_outside: it receives finished trials whose designs the space no longer contains
            (``State.OUTSIDE``).
        designed_experiment: its trials are a factorial design: constructing it checks whether the
            space allows one, and reports show main effects.
        checks_problem: constructing it is cheap and refuses problems that it cannot solve, so that
            ``dse check`` constructs it.
        learns_from_library: it uses the prior data of a library of studies
            (``transfer_from: {library: FOLDER}``), which are in ``Problem.priors``.
    """

    batch: int = 1
    enumerates: bool = False
    exhaustive: bool = False
    completes_front: bool = False
    multi_fidelity: bool = False
    learns_outside: bool = False
    designed_experiment: bool = False
    checks_problem: bool = False
    learns_from_library: bool = False


def traits_of(optimizer: Optimizer | type[Optimizer]) -> OptimizerTraits:
    """Return the properties (traits) of an optimizer instance or class.

    Without an attribute ``traits``, the attributes ``batch``, ``climbs`` and ``learns_outside`` of
    earlier versions are read.
    """
    traits: OptimizerTraits | None = getattr(optimizer, "traits", None)
    return traits or OptimizerTraits(
        batch=getattr(optimizer, "batch", 1),
        multi_fidelity=getattr(optimizer, "climbs", False),
        learns_outside=getattr(optimizer, "learns_outside", False),
    )


@runtime_checkable
class ExpectsImprovement(Protocol, metaclass=Capability):
    """Optimizer that estimates the relative hypervolume gain of its last suggestion.

    A study can stop when the gain is small: ``budget: {min_improvement: 0.1 %}``. The class itself
    also has the attribute.
    """

    expected_gain: float | None
    """Expected share of the current hypervolume that the suggestion of the last ``ask`` adds;
    ``None`` while unknown."""


@runtime_checkable
class AdjustsEffort(Protocol, metaclass=Capability):
    """Optimizer whose suggestions can be computed at lower cost, at the price of their quality.

    A study lowers the effort to respect ``thinking``, the optimizer's limit on the time for
    suggestions. The class itself, not only its instances, has the attributes ``efforts`` and
    ``effort``. A further attribute ``effort_words``, a description of each level, is part of the
    events of changes; it may be missing. Law: a suggestion depends on the present effort alone, not
    on the effort of earlier suggestions.
    """

    efforts: int
    """Number of levels of effort, at least 2."""

    effort: int
    """Level that the study assigns before ``ask``: 0 is full effort, the last level is cheapest."""


@runtime_checkable
class SeeksFavourite(Protocol, metaclass=Capability):
    """Optimizer that can search for the design that a user likes best, instead of the front.

    A study uses it for ``dse resume NAME --toward favourite``. The class itself also has the
    attribute. Law: a suggestion depends on the present answers alone, not on the answers at the
    time of earlier suggestions.
    """

    preferences: tuple[PreferenceAnswer, ...]
    """Answers of the user about finished trials, which the study assigns before ``ask``; without
    answers, the optimizer searches for the Pareto front."""


@runtime_checkable
class PredictsMetrics(Protocol, metaclass=Capability):
    """Optimizer with a surrogate, which predicts metrics of designs that were not evaluated.

    A study offers it as ``study.predict``. Law: predicting changes nothing, so that later designs
    are the same as without it.
    """

    def predict(self, designs: Sequence[Design]) -> Mapping[str, tuple[Floats, Floats]]:
        """Return mean and standard error of each metric at k designs, each (k,), in its unit.

        Args:
            designs: k legal designs.

        Returns:
            The predictions by metric, for the metrics that can be predicted. Metrics that an
            analytical model computes are exact, with standard error 0. The mapping is empty while
            there are too few finished trials.
        """
        ...


@runtime_checkable
class ReportsProgress(Protocol, metaclass=Capability):
    """Optimizer with long computations, during which it reports its progress."""

    on_progress: Callable[[int, int], None]
    """Function that the study assigns; called with the numbers of processed and of all designs."""

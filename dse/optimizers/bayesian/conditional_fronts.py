"""Conditional Pareto fronts: the best completions of a measured setting of a design.

The measured setting is the values of the parameters that measurements read. Designs that share it
differ in modelled losses only, which need no measurement. Only the non-dominated ones can ever be
on the front: they are the conditional front of the measured setting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dse.core.batch import Batch, concatenate_batches
from dse.core.design import Design
from dse.core.pareto import nondominated
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.core.values import Floats, Ints, Mask
from dse.core.variation import cross_parents, mutate_designs
from dse.errors import DesignError
from dse.optimizers.bayesian.measured_settings import (
    MeasuredSplit,
    firsts,
    keys,
    merge_settings,
    pair_settings,
)
from dse.optimizers.bayesian.modelled_losses import ModelledLosses
from dse.optimizers.bayesian.output_transform import Magnitude

LISTED = 65_536
"""Most designs that share a measured setting and are all evaluated."""

_BROOD = 256
_GENERATIONS = 12
_SEARCH = 100_000
"""Cost of one search, in evaluated designs of equal time; its moves cost more than the models."""
_MODELS, _EVALUATIONS = (24, 512), 4_000_000
"""Least and most measured settings whose conditional fronts give the sample of free settings, and
the number of evaluated designs after which no further setting is added."""
_SAMPLED = 1_536
"""Most free settings in that sample, with which every other measured setting is combined."""
_PROBES = 32
_CHUNK = 200_000
_ABREAST = 8
"""Measured settings searched at a time, so that models evaluate their offspring in one batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalFront:
    """Non-dominated designs among those with equal measured parameters, by modelled losses.

    Measured parameters are the parameters that measurements read; the front varies the others.
    ``failed`` counts the designs without a value among those evaluated to find the front;
    ``example`` is one of them.
    """

    designs: Batch
    losses: Floats  # (r, known objectives)
    failed: int = 0
    example: Design | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedDesigns:
    """Number of designs that have no value because an evaluation failed, with one example.

    If ``at_least`` is true, the count is a lower bound.
    """

    failed: int = 0
    example: Design | None = None
    at_least: bool = False


class ConditionalFrontCache:
    """Cache of fronts over the free parameters, one for each setting of the measured parameters.

    Measured parameters are those that measurements read; the others are free. A complete front is
    found by enumerating the designs with equal measured parameters, or by evolutionary search. An
    estimated front tries only a fixed list of values of the free parameters that were
    good with other measured parameters. Settings of the measured parameters whose modelled losses
    agree on a sample of the list share an estimated front.

    A cached front depends on the measured parameters alone, and not on earlier queries: a resumed
    study suggests the same designs as an uninterrupted one.

    Args:
        problem: problem to optimise.
        split: the problem's objectives and limits, split into modelled and measured ones.
        bounded: map known losses so that their products stay finite, see :class:`Magnitude`, and
            use the logarithms of objectives with a log scale.
    """

    def __init__(self, problem: Problem, split: MeasuredSplit, *, bounded: bool = False) -> None:
        self._modelled = ModelledLosses(problem, split, bounded=bounded)
        self._problem = problem
        self._split = split
        self._names = sorted(split.measured_parameters)
        self._has_models = any(one.kind == "modelled" for one in problem.sources.values())
        self._complete: dict[bytes, tuple[ConditionalFront, int]] = {}
        self._estimated: dict[bytes, ConditionalFront] = {}
        self._free_sample: Batch | None = None
        self._probes: Batch | None = None
        self.evaluations = 0
        """Mean number of evaluated designs per conditional front behind the free sample."""

    @property
    def magnitudes(self) -> list[Magnitude]:
        """Map of each modelled loss to a bounded range, so that products of losses stay finite."""
        return self._modelled.magnitudes

    def complete_fronts(self, batch: Batch) -> list[ConditionalFront]:
        """Return, for each design, the complete front of designs with equal measured parameters.

        Measured parameters are the parameters that measurements read.
        """
        return [front for front, _ in self._find_fronts(batch)]

    def _find_fronts(self, batch: Batch) -> list[tuple[ConditionalFront, int]]:
        """Return the complete conditional front of each design's measured setting, and its cost.

        The cost is the number of designs evaluated for the front, now or earlier.
        """
        tags = keys(batch, self._names)
        searched: list[tuple[bytes, Batch, DesignSpace]] = []
        for row in firsts(tags).tolist():
            if tags[row] not in self._complete:
                one = batch.take(np.array([row]))
                inner = self._fixed_subspace(one)
                found = self._enumerate_front(one, inner)
                if found is None:
                    searched.append((tags[row], one, inner))
                else:
                    self._complete[tags[row]] = found
        for start in range(0, len(searched), _ABREAST):
            names, ones, inside = zip(*searched[start : start + _ABREAST], strict=True)
            for tag, front in zip(names, self._evolve_fronts(ones, inside), strict=True):
                self._complete[tag] = front, _SEARCH
        return [self._complete[tag] for tag in tags]

    def count_failed(self) -> FailedDesigns:
        """Return the number of designs that failed during the search of complete fronts."""
        found = [one for one in self._complete.values() if one[0].failed]
        return FailedDesigns(
            failed=sum(own.failed for own, _ in found),
            example=next((own.example for own, _ in found), None),
            at_least=any(evaluations == _SEARCH for _, evaluations in found),
        )

    def estimate_fronts(self, batch: Batch) -> tuple[list[ConditionalFront], Ints]:
        """Return estimated fronts over the free parameters, and the front of each design, (n,).

        An estimate tries only the free-parameter values of the free sample. The index is -1 where
        the front is empty.
        """
        if not self._split.free:
            return self._single(batch)
        if self._free_sample is None:
            self._draw_free_sample()
        assert self._probes is not None
        tags, settings = self._tags(batch), keys(batch, self._names)
        first = firsts(tags)
        fresh = np.array(
            [row for row in first if settings[row] not in self._estimated], dtype=np.int64
        )
        self._estimate(batch.take(fresh), [settings[row] for row in fresh])
        fronts: list[ConditionalFront] = []
        places: dict[bytes, int] = {}
        for row in first.tolist():
            own = self._estimated[settings[row]]
            places[tags[row]] = len(fronts) if len(own.losses) else -1
            fronts += [own] if len(own.losses) else []
        return fronts, np.array([places[tag] for tag in tags], dtype=np.int64)

    def on(self, one: Batch, front: ConditionalFront) -> ConditionalFront:
        """Evaluate the free parameters of an estimated front with other measured parameters.

        Measured parameters are those that measurements read; the others are free. The result is the
        non-dominated subset.

        Args:
            one: a design with the measured parameters.
            front: the estimated front.
        """
        if not self._split.free:
            return front
        return self._fronts_with([one], [front.designs])[0]

    def _single(self, batch: Batch) -> tuple[list[ConditionalFront], Ints]:
        """Return each design as its own conditional front, for problems without free parameters.

        If there are no modelled losses either, all designs share one front.
        """
        if self._has_models:
            losses, fine, _ = self._modelled.evaluate(batch, _all(batch))
        else:
            losses, fine = np.zeros((len(batch), 0)), _all(batch)
        if not losses.shape[1]:
            one = ConditionalFront(
                designs=batch.take(np.arange(min(len(batch), 1))), losses=losses[:1]
            )
            return [one], np.where(fine, 0, -1)
        rows = np.flatnonzero(fine)
        places = np.full(len(batch), -1)
        places[rows] = np.arange(len(rows))
        found = [
            ConditionalFront(designs=batch.take(np.array([row])), losses=losses[row : row + 1])
            for row in rows
        ]
        return found, places

    def _draw_free_sample(self) -> None:
        """Collect values of the free parameters that were good with random measured settings.

        Free parameters are those that no measurement reads.
        """
        rng = self._problem.rng(0, 1)
        drawn = self._problem.space.sample(_PROBES, rng)
        batch = self._problem.space.sample(2 * _MODELS[1], rng)
        order = firsts(keys(batch, self._names))[: _MODELS[1]]
        found: list[Batch] = []
        evaluated = 0
        for start in range(0, len(order), _ABREAST):
            for own, evaluations in self._find_fronts(batch.take(order[start : start + _ABREAST])):
                if len(found) < _MODELS[0] or evaluated < _EVALUATIONS:
                    found.append(own.designs)
                    evaluated += evaluations
            if len(found) >= _MODELS[0] and evaluated >= _EVALUATIONS:
                break
        self.evaluations = evaluated // max(len(found), 1)
        sample = concatenate_batches([*(one for one in found if len(one)), drawn])
        tags = keys(sample, sorted(self._split.free))
        counts = Counter(tags)
        rows = firsts(tags)
        served = np.array([counts[tags[row]] for row in rows])
        rows = rows[np.argsort(-served, kind="stable")[:_SAMPLED]]
        self._free_sample = sample.take(rows)
        spread = np.linspace(0, len(rows) - 1, min(_PROBES, len(rows))).round().astype(int)
        self._probes = self._free_sample.take(np.unique(spread))

    def _tags(self, batch: Batch) -> list[bytes]:
        """Return a key per design, equal for equal modelled losses and slacks on the probes.

        The probes are a subset of the free sample, with which each measured setting is combined.
        """
        assert self._probes is not None
        step = max(1, _CHUNK // len(self._probes))
        tags: list[bytes] = []
        for start in range(0, len(batch), step):
            rows = batch.take(np.arange(start, min(start + step, len(batch))))
            pairs = pair_settings(
                self._problem.space, rows, self._probes, self._split.measured_parameters
            )
            losses, slacks, _, _ = self._modelled.compute(*pairs)
            table = np.hstack([losses, slacks]).reshape(len(rows), -1)
            tags += [row.tobytes() for row in table]
        return tags

    def _estimate(self, batch: Batch, settings: Sequence[bytes]) -> None:
        assert self._free_sample is not None
        step = max(1, _CHUNK // len(self._free_sample))
        for start in range(0, len(batch), step):
            rows = batch.take(np.arange(start, min(start + step, len(batch))))
            pairs, legal = pair_settings(
                self._problem.space, rows, self._free_sample, self._split.measured_parameters
            )
            sizes = [len(self._free_sample)] * len(rows)
            for row, found in enumerate(self._fronts_of_runs(pairs, legal, sizes)):
                self._estimated[settings[start + row]] = found

    def _fixed_subspace(self, one: Batch) -> DesignSpace:
        """Return the subspace of the designs with the same measured setting as the design ``one``.

        The measured setting is the values of the parameters that measurements read.
        """
        here = one.row(0)
        return self._problem.space.fixed({name: here[name] for name in self._names if name in here})

    def _enumerate_front(
        self, one: Batch, inner: DesignSpace
    ) -> tuple[ConditionalFront, int] | None:
        """Return a conditional front and its cost by listing all designs with the measured setting.

        The result is ``None`` if there are too many designs.
        """
        total = inner.count() if self._split.free else 0
        if total is None or total > LISTED:
            return None
        parts = inner.enumerate() if total else [one]
        found = [self._fronts_of_runs(part, _all(part), [len(part)])[0] for part in parts]
        return _best(found), max(total, 1)

    def _evolve_fronts(
        self, ones: Sequence[Batch], inside: Sequence[DesignSpace]
    ) -> list[ConditionalFront]:
        """Find the conditional front of each measured setting by evolutionary search.

        The search varies the free parameters (those that no measurement reads) and uses models
        only.
        """
        space, rngs = self._problem.space, [self._problem.rng(0, 2) for _ in ones]
        first = [
            concatenate_batches([_any_of(inner, space, rng), space.sample(_BROOD, rng)])
            for inner, rng in zip(inside, rngs, strict=True)
        ]
        best = self._fronts_with(ones, first)
        for _ in range(_GENERATIONS):
            broods = [_brood(space, own.designs, rng) for own, rng in zip(best, rngs, strict=True)]
            more = self._fronts_with(ones, broods)
            best = [_best(pair) for pair in zip(best, more, strict=True)]
        return best

    def _fronts_with(self, ones: Sequence[Batch], free: Sequence[Batch]) -> list[ConditionalFront]:
        """Return each measured setting's conditional front over given free-parameter values.

        ``free`` holds one batch of values per measured setting.
        """
        sizes = [len(own) for own in free]
        measured = concatenate_batches(ones).take(np.repeat(np.arange(len(ones)), sizes))
        pairs, legal = merge_settings(
            self._problem.space,
            measured,
            concatenate_batches(free),
            self._split.measured_parameters,
        )
        return self._fronts_of_runs(pairs, legal, sizes)

    def _fronts_of_runs(
        self, batch: Batch, legal: Mask, sizes: Sequence[int]
    ) -> list[ConditionalFront]:
        """Return the conditional front of each run of consecutive designs, of given lengths."""
        losses, fine, lost = self._modelled.evaluate(batch, legal)
        found = []
        for run in np.split(np.arange(len(batch)), np.cumsum(sizes)[:-1]):
            rows = run[fine[run]]
            rows = rows[nondominated(losses[rows])] if len(rows) else rows
            gone = run[lost[run]]
            found.append(
                ConditionalFront(
                    designs=batch.take(rows),
                    losses=losses[rows],
                    failed=len(gone),
                    example=batch.design(int(gone[0])) if len(gone) else None,
                )
            )
        return found


def _all(batch: Batch) -> Mask:
    return np.ones(len(batch), dtype=bool)


def _any_of(inner: DesignSpace, space: DesignSpace, rng: np.random.Generator) -> Batch:
    """Draw one design of a subspace at random, as a batch; empty if no design is found."""
    try:
        return space.batch(inner.sample(1, rng).designs())
    except DesignError:
        return space.batch([])


def _brood(space: DesignSpace, parents: Batch, rng: np.random.Generator) -> Batch:
    """Breed offspring of a conditional front's designs; draw random designs if it is empty."""
    if not len(parents):
        return space.sample(4 * _BROOD, rng)
    mothers, fathers = rng.integers(len(parents), size=(2, _BROOD))
    children = cross_parents(space, parents.take(mothers), parents.take(fathers), rng)
    return mutate_designs(space, children, rng)


def _best(parts: Sequence[ConditionalFront]) -> ConditionalFront:
    full = [part for part in parts if len(part.losses)]
    found = (full or parts)[0]
    if len(full) > 1:
        losses = np.vstack([part.losses for part in full])
        rows = np.flatnonzero(nondominated(losses))
        designs = concatenate_batches([part.designs for part in full]).take(rows)
        found = ConditionalFront(designs=designs, losses=losses[rows])
    example = next((part.example for part in parts if part.example is not None), None)
    return replace(found, failed=sum(part.failed for part in parts), example=example)

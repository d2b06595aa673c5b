"""What is best of all designs that share a measured part, as far as models tell.

The known losses of these designs do not wait for a measurement. Only those that none of the others
beats can ever matter: the *staircase* of the measured part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch, Column, joined
from dse.core.moves import crossed, mutated
from dse.core.pareto import nondominated
from dse.core.problem import Problem
from dse.core.values import Floats, Ints, Mask
from dse.optimizers.merging import firsts, keys, merged, paired
from dse.optimizers.roles import Roles

LISTED = 65_536
"""Up to so many designs that share a measured part are all looked at."""

_BROOD = 256
_GENERATIONS = 12
_SEARCH = 100_000
"""So many designs could be listed in the time of a search, whose moves cost more than models."""
_MODELS, _LOOKS = (24, 512), 4_000_000
"""So many measured parts tell what the staircases of others may look like: at least the first,
at most the second, and as many as so many designs looked at allow."""
_SHELF = 1_536
"""Free parts that every other measured part is tried with."""
_PROBES = 32
_CHUNK = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase:
    """Designs of one measured part, and their known losses."""

    designs: Batch
    losses: Floats  # (r, known objectives)


class Staircases:
    """Staircases by measured part: exact or searched for one, from a shelf for many.

    Parts whose known losses agree on a set of probes are taken for equal where many are guessed.
    What a design is told to have in a front is always its own evaluation.
    """

    def __init__(self, problem: Problem, roles: Roles) -> None:
        self._problem = problem
        self._roles = roles
        self._names = sorted(roles.part)
        self._whole: dict[bytes, tuple[Staircase, int]] = {}
        self._guessed: dict[bytes, Staircase] = {}
        self._shelf: Batch | None = None
        self._probes: Batch | None = None
        self.looks = 0
        """Designs that a part's staircase takes to be found, in the mean of those on the shelf."""

    def whole(self, one: Batch) -> Staircase:
        """The staircase of a single design's measured part, by listing or by searching."""
        return self._known(one)[0]

    def _known(self, one: Batch) -> tuple[Staircase, int]:
        """The same, and how many designs were looked at for it, now or earlier."""
        key = keys(one, self._names)[0]
        if key not in self._whole:
            self._whole[key] = self._found(one)
        return self._whole[key]

    def guessed(self, batch: Batch) -> tuple[list[Staircase], Ints]:
        """Staircases over the shelf, and which of them each row has, (n,); -1 for an empty one."""
        if not self._roles.free:
            return self._single(batch)
        if self._shelf is None:
            self._begin()
        assert self._probes is not None
        tags = self._tags(batch)
        stairs: list[Staircase] = []
        places: dict[bytes, int] = {}
        fresh = [
            row
            for tag, row in dict(zip(tags[::-1], range(len(batch))[::-1], strict=True)).items()
            if tag not in self._guessed
        ]
        self._guess(batch.take(np.array(fresh, dtype=np.int64)), [tags[row] for row in fresh])
        groups = np.empty(len(batch), dtype=np.int64)
        for row, tag in enumerate(tags):
            if tag not in places:
                own = self._guessed[tag]
                places[tag] = len(stairs) if len(own.losses) else -1
                stairs += [own] if len(own.losses) else []
            groups[row] = places[tag]
        return stairs, groups

    def on(self, one: Batch, staircase: Staircase) -> Staircase:
        """A guessed staircase's free parts with this measured part, as they really are."""
        return self._staircase(*self._with(one, staircase.designs))

    def _single(self, batch: Batch) -> tuple[list[Staircase], Ints]:
        """Where nothing is free each design is its own staircase, and all are alike but for it."""
        losses, fine = self._judged(batch, np.ones(len(batch), dtype=bool))
        if not losses.shape[1]:
            one = Staircase(designs=batch.take(np.arange(min(len(batch), 1))), losses=losses[:1])
            return [one], np.where(fine, 0, -1)
        rows = np.flatnonzero(fine)
        places = np.full(len(batch), -1)
        places[rows] = np.arange(len(rows))
        found = [
            Staircase(designs=batch.take(np.array([row])), losses=losses[row : row + 1])
            for row in rows
        ]
        return found, places

    def _begin(self) -> None:
        """Fill the shelf from the staircases of measured parts drawn at random."""
        rng = self._problem.rng(0, 1)
        drawn = self._problem.space.sample(_PROBES, rng)
        batch = self._problem.space.sample(2 * _MODELS[1], rng)
        order = firsts(keys(batch, self._names))
        found: list[Batch] = []
        looked_at = 0
        for number, row in enumerate(order.tolist()):
            enough = number >= _MODELS[0] and looked_at >= _LOOKS
            if enough or number >= _MODELS[1]:
                break
            own, looks = self._known(batch.take(np.array([row])))
            found.append(own.designs)
            looked_at += looks
        self.looks = looked_at // max(len(found), 1)
        shelf = joined([*(one for one in found if len(one)), drawn])
        tags = keys(shelf, sorted(self._roles.free))
        counts = Counter(tags)
        rows = firsts(tags)
        served = np.array([counts[tags[row]] for row in rows])
        rows = rows[np.argsort(-served, kind="stable")[:_SHELF]]
        self._shelf = shelf.take(rows)
        spread = np.linspace(0, len(rows) - 1, min(_PROBES, len(rows))).round().astype(int)
        self._probes = self._shelf.take(np.unique(spread))

    def _tags(self, batch: Batch) -> list[bytes]:
        """Equal for parts whose known losses and limits agree on the probes, kept or not."""
        assert self._probes is not None
        step = max(1, _CHUNK // len(self._probes))
        tags: list[bytes] = []
        for start in range(0, len(batch), step):
            rows = batch.take(np.arange(start, min(start + step, len(batch))))
            pairs = paired(self._problem.space, rows, self._probes, self._roles.part)
            losses, slacks, _ = self._computed(*pairs)
            table = np.hstack([losses, slacks]).reshape(len(rows), -1)
            tags += [row.tobytes() for row in table]
        return tags

    def _guess(self, batch: Batch, tags: Sequence[bytes]) -> None:
        assert self._shelf is not None
        step = max(1, _CHUNK // len(self._shelf))
        for start in range(0, len(batch), step):
            rows = batch.take(np.arange(start, min(start + step, len(batch))))
            pairs, legal = paired(self._problem.space, rows, self._shelf, self._roles.part)
            losses, fine = self._judged(pairs, legal)
            for row in range(len(rows)):
                own = np.arange(row * len(self._shelf), (row + 1) * len(self._shelf))
                own = own[fine[own]]
                own = own[nondominated(losses[own])] if len(own) else own
                self._guessed[tags[start + row]] = Staircase(
                    designs=pairs.take(own), losses=losses[own]
                )

    def _found(self, one: Batch) -> tuple[Staircase, int]:
        space = self._problem.space
        if not self._roles.free:
            return self._staircase(one, np.ones(1, dtype=bool)), 1
        here = one.row(0)
        values = {name: here[name] for name in self._names if name in here}
        inner = space.fixed(values)
        total = inner.count()
        if total is None or total > LISTED:
            return self._searched(one), _SEARCH
        if not total:
            return self._staircase(one, np.ones(1, dtype=bool)), 1
        parts = [
            self._staircase(batch, np.ones(len(batch), dtype=bool)) for batch in inner.enumerate()
        ]
        return _best(parts), total

    def _searched(self, one: Batch) -> Staircase:
        """By evolution of the free parts alone; the models cost nothing."""
        space, rng = self._problem.space, self._problem.rng(0, 2)
        start = joined([one, space.sample(_BROOD, rng)])
        best = self._staircase(*self._with(one, start))
        for _ in range(_GENERATIONS):
            if not len(best.designs):
                best = self._staircase(*self._with(one, space.sample(4 * _BROOD, rng)))
                continue
            mothers, fathers = rng.integers(len(best.designs), size=(2, _BROOD))
            children = crossed(space, best.designs.take(mothers), best.designs.take(fathers), rng)
            brood = self._staircase(*self._with(one, mutated(space, children, rng)))
            best = _best([best, brood])
        return best

    def _with(self, one: Batch, free: Batch) -> tuple[Batch, Mask]:
        rows = one.take(np.zeros(len(free), dtype=np.int64))
        return merged(self._problem.space, rows, free, self._roles.part)

    def _staircase(self, batch: Batch, legal: Mask) -> Staircase:
        losses, fine = self._judged(batch, legal)
        rows = np.flatnonzero(fine)
        rows = rows[nondominated(losses[rows])] if len(rows) else rows
        return Staircase(designs=batch.take(rows), losses=losses[rows])

    def _judged(self, batch: Batch, legal: Mask) -> tuple[Floats, Mask]:
        """The known losses of the designs, (n, k), and which are legal and keep known limits."""
        losses, slacks, fine = self._computed(batch, legal)
        return losses, fine & (slacks >= 0).all(axis=1)

    def _computed(self, batch: Batch, legal: Mask) -> tuple[Floats, Floats, Mask]:
        """Known losses, (n, k), slacks of known limits, (n, l), and where there are any, (n,)."""
        problem, roles = self._problem, self._roles
        rows = np.flatnonzero(legal)
        inside = batch.take(rows)
        known = problem.known(inside)
        columns = {
            **inside.columns,
            **{name: Column(values) for name, values in known.columns.items()},
        }
        size = len(inside)
        found = [_loss(problem, place, columns, size) for place in roles.known]
        found += [limit.slacks(columns, size) for limit in roles.known_limits]
        own = np.column_stack(found) if found else np.zeros((size, 0))
        own[list(known.faults)] = np.nan
        table = np.full((len(batch), own.shape[1]), np.nan)
        table[rows] = own
        fine = legal & np.isfinite(table).all(axis=1)
        fine[rows[list(known.faults)]] = False
        cut = len(roles.known)
        return table[:, :cut], table[:, cut:], fine


def _loss(problem: Problem, place: int, columns: dict[str, Column], size: int) -> Floats:
    objective = problem.objectives[place]
    sign = 1.0 if objective.goal == "minimize" else -1.0
    return sign * objective.values(columns, size)


def _best(parts: Sequence[Staircase]) -> Staircase:
    parts = [part for part in parts if len(part.losses)] or list(parts[:1])
    losses = np.vstack([part.losses for part in parts])
    rows = np.flatnonzero(nondominated(losses))
    return Staircase(
        designs=joined([part.designs for part in parts]).take(rows), losses=losses[rows]
    )

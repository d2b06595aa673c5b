"""Cost of an answer: by prices per token, or by the model of a serving cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure
from dse.core.values import Floats, Value
from dse.errors import SpecError, nearest
from dse.protocols import absent_metrics
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.reasoning.pass_counts import is_number

PARTS = ("dollars", "joules", "seconds")


@dataclass(frozen=True, slots=True)
class AnswerCost:
    """Cost of one answer in dollars, joules and seconds, each (n,), with infeasible designs."""

    parts: Mapping[str, Floats]
    failures: Mapping[int, Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrices:
    """Prices of tokens by model, in dollars per million.

    ``read`` are those of a prompt's tokens, ``written`` those of an answer's.
    """

    written: Mapping[str, float]
    read: Mapping[str, float]

    version: str = ""
    lacks_price: tuple[str, str] = ("", "")

    @property
    def parts(self) -> Sequence[str]:
        return ("dollars",)

    def cost(self, models: Floats, prompt: Floats, tokens: Floats, *, batch: Batch) -> AnswerCost:
        """Return the cost of an answer in n designs, by the prices of each design's model.

        Args:
            models: index of each design's model, (n,).
            prompt: tokens that are read, (n,).
            tokens: tokens that are written, (n,).
            batch: the inputs of the plan, if there is one.
        """
        del batch  # prices do not depend on a plan
        place = models.astype(np.int64)
        written = np.array(list(self.written.values()))[place] * tokens
        read = np.array(list(self.read.values()))[place] * prompt
        return AnswerCost({"dollars": (written + read) / 1e6})

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Accept all values: prices have no inputs."""


@dataclass(slots=True)
class ServingCluster:
    """Cluster that serves the models, as ``clusters.serving`` models it.

    ``first`` has all options; ``sources`` are the models, by the names of the file of pass@k.
    """

    first: Serving
    sources: Mapping[str, Any]
    made: dict[tuple[str, int, int], Serving] = field(default_factory=dict)

    @property
    def parts(self) -> Sequence[str]:
        return PARTS if "cost_per_token" in self.first.provides else PARTS[1:]

    @property
    def lacks_price(self) -> tuple[str, str]:
        """Reason why the cost in dollars is unavailable, and a remedy."""
        return absent_metrics(self.first)["cost_per_token"]

    @property
    def version(self) -> str:
        """Version of the model of the cluster, with those of the user's models."""
        made = [self._serving(name, 2, 2).version for name in self.sources]
        return "+".join(dict.fromkeys(made))

    def cost(self, models: Floats, prompt: Floats, tokens: Floats, *, batch: Batch) -> AnswerCost:
        """Return the cost of an answer in n designs, on a cluster that serves each design's model.

        Args:
            models: index of each design's model, (n,).
            prompt: tokens that are read, (n,).
            tokens: tokens that are written, (n,).
            batch: the inputs of the plan, if there is one.
        """
        names = list(self.sources)
        lengths = np.maximum(np.rint(tokens), 2.0)
        parts = {part: np.zeros(len(batch)) for part in self.parts}
        failures: dict[int, Failure] = {}
        kinds, place = np.unique(
            np.stack([models, np.rint(prompt), lengths]), axis=1, return_inverse=True
        )
        for at, (code, read, length) in enumerate(kinds.T.tolist()):
            rows = np.flatnonzero(place.ravel() == at)
            serving = self._serving(names[int(code)], int(read), int(length))
            found = serving.evaluate(batch.take(rows))
            tpot, first = found.columns["tpot"], found.columns["ttft"]
            parts["seconds"][rows] = first + (length - 1.0) * tpot
            parts["joules"][rows] = found.columns["energy_per_token"] * length
            if "dollars" in parts:
                parts["dollars"][rows] = found.columns["cost_per_token"] * length
            failures |= {int(rows[row]): failure for row, failure in found.failures.items()}
        return AnswerCost(parts, failures)

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Raise SpecError if a value is not one that a plan can have."""
        self.first.check_values(values)

    def _serving(self, name: str, prompt: int, tokens: int) -> Serving:
        key = (name, prompt, tokens)
        if key not in self.made:
            self.made[key] = replace(self.first, model=self.sources[name], isl=prompt, osl=tokens)
        return self.made[key]


CostModel = TokenPrices | ServingCluster


def prices_of(
    models: Collection[str],
    written: float | Mapping[str, float],
    read: float | Mapping[str, float],
) -> TokenPrices:
    """Return the prices of tokens of all models.

    Raises:
        SpecError: a price is negative or missing, or names no model of the file.
    """
    return TokenPrices(
        written=_price_all("price", models, written),
        read=_price_all("input_price", models, read),
    )


def _price_all(
    option: str, models: Collection[str], given: float | Mapping[str, float]
) -> dict[str, float]:
    found = dict(given) if isinstance(given, Mapping) else dict.fromkeys(models, given)
    for name in found.keys() - set(models):
        problem = f"{option} names {name!r}, which is no model of the file"
        raise SpecError(problem, hint=nearest(name, models), part=[option])
    for name in models:
        if name not in found:
            hint = f"{option}: {{{name}: 0.50}}, in dollars per million tokens"
            raise SpecError(f"{option} has no price of {name}", hint=hint, part=[option])
        price = found[name]
        if not is_number(price) or not 0 <= price < 1e9:
            problem = f"{option} of {name} is {price!r}"
            raise SpecError(problem, hint="dollars per million tokens", part=[option])
    return {name: float(found[name]) for name in models}


def cluster_of(
    models: Collection[str], sources: Mapping[str, Any] | None, options: Mapping[str, Any]
) -> ServingCluster:
    """Return the cluster that serves the models.

    Args:
        models: the names of the file of pass@k.
        sources: the models that are served, by these names; a name without one is a name that
            ``clusters.serving`` knows.
        options: options of ``clusters.serving``, without ``model``, ``isl`` and ``osl``.

    Raises:
        SpecError: an option is wrong, or names no model of the file.
    """
    given = dict(sources or {})
    for name in given.keys() - set(models):
        problem = f"served names {name!r}, which is no model of the file"
        raise SpecError(problem, hint=nearest(name, models), part=["served"])
    served = {name: given.get(name, name) for name in models}
    first: Serving | None = None
    for name, source in served.items():
        try:
            made = Serving(model=source, osl=2, **options)
        except SpecError as error:
            if name in given or first is not None:
                raise
            hint = f"served: {{{name}: {{like: llama3-8b, layers: 40}}}}; or state price"
            problem = f"{name} of the file cannot be served: {error.problem}"
            raise SpecError(problem, hint=hint, part=["served"]) from error
        first = first or made
    assert first is not None
    return ServingCluster(first, served)

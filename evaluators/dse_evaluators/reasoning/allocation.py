"""Evaluator ``reasoning.allocation``: what to spend on each query, on which model and method."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import SpecError, nearest
from dse.protocols import HeldOutError
from dse_evaluators.alike import fix_columns, infeasible
from dse_evaluators.clusters.own_system import DeviceOption, SystemOption
from dse_evaluators.clusters.serving.serving_plan import READINGS as PLAN
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading, Readings, one_of
from dse_evaluators.readings import number, word
from dse_evaluators.reasoning.answer_cost import AnswerCost, CostModel, cluster_of, prices_of
from dse_evaluators.reasoning.answer_methods import METHODS
from dse_evaluators.reasoning.class_gathering import gather_classes
from dse_evaluators.reasoning.difficulty import DISTRIBUTIONS
from dse_evaluators.reasoning.pass_counts import read_pass_file
from dse_evaluators.reasoning.problem_classes import ClassPolicies

ANCHORS = Path(__file__).with_name("pass_at_k.csv")
_MOST = 1024
_UNMEASURED = "the file has no rows of this model at this temperature"

_METRICS = (
    Metric(name="accuracy", goal="maximize"),
    Metric(name="coverage", goal="maximize"),
    Metric(name="answers", goal="minimize"),
    Metric(name="tokens_written", goal="minimize"),
    Metric(name="saturation", goal="minimize"),
    Metric(name="extrapolated", words=("no", "yes")),
)
_COSTS = {
    "dollars": Metric(name="cost", unit="USD", goal="minimize"),
    "joules": Metric(name="energy", unit="J", goal="minimize"),
    "seconds": Metric(name="latency", unit="s", goal="minimize"),
}
_RATE = NumberInput(0, 1)
_INPUTS: Mapping[str, Reading] = {
    "method": one_of(METHODS, "best-of-n"),
    "samples": NumberInput(1, _MOST, default=1.0, whole=True),
    "true_positive_rate": _RATE._replace(default=1.0),
    "false_positive_rate": _RATE._replace(default=0.0),
    "distractors": NumberInput(1, 64, default=4.0, whole=True),
    "revision_gain": NumberInput(0, 100, default=1.0),
    "revision_loss": _RATE._replace(default=0.0),
    "shared": _RATE._replace(default=0.5),
    "tokens": NumberInput(1, 1e6),
    "model": one_of(("",)),
}


class Allocation(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Accuracy and cost of a query by model, method, number of answers and length of an answer.

    The difficulty of the problems of a class is data: a file of pass@k, to which the distribution
    of the success probability of an answer is fitted for each class and model. ``accuracy`` is the
    share of problems for which the method returns a right answer, ``coverage`` the share for which
    a right one is among the answers. Both are means over the classes, by their shares of the
    queries. ``answers`` is the expected number of answers to a query, ``tokens_written`` that of
    their tokens. ``saturation`` is the number of answers after which one more adds at most
    ``least_gain`` of coverage. ``dse check`` prints the error at the k that were not fitted.

    Methods: ``vote`` elects the most frequent answer; ``best-of-n`` takes one that a verifier
    accepts, or any if it accepts none; ``stop-when-verified`` draws answers one after another until
    the verifier accepts one; ``revision`` rewrites an answer, reading the last one; ``tree`` is
    ``best-of-n`` of answers that share their first part.

    The input ``samples_CLASS`` is the number of answers to queries of a class, such as
    ``samples_math_l5``, with 0 for ``samples``. In a file with a column ``tokens``, results between
    two lengths are interpolated by the logarithm of the length, and others are infeasible. In a
    file with several temperatures of the sampling, each has a difficulty of its own, and
    ``temperature`` is an input: the best temperature for each number of answers is a choice of the
    study, and no curve that one distribution could have.

    Args:
        file: CSV file with the columns class, model, k and pass, or, with a row for each problem,
            class, model, n and c (``c`` of ``n`` answers are right); optional columns: tokens,
            temperature, problems, source. By default public results of Qwen3-1.7B-Base
            (``pass_at_k.csv``).
        classes: shares of the classes among the queries; by default those of the problems of all
            classes of the file, or equal ones.
        distribution: ``beta``, or ``mixture`` with a share of problems that no answer solves; by
            default the mixture for classes with more than three k, and else the beta.
        policy: inputs that are the same for all designs, such as ``{method: vote}``.
        price: dollars per million tokens of an answer, for all models or by model.
        input_price: dollars per million tokens that are read, for all models or by model.
        once: dollars of a query that are spent once for all of its answers, such as for finding the
            context of an issue.
        choice: dollars of choosing among the answers of a query that has several, by ``vote``,
            ``best-of-n`` or ``tree``.
        device: device that serves the models, as of ``clusters.serving``, in place of prices.
        system: cluster in place of ``device``, as of ``clusters.serving``.
        served: models to serve by the names of the file, as ``model`` of ``clusters.serving``; a
            name without one is a name of ``workloads.transformer_configs``.
        plan: inputs of ``clusters.serving`` that are the same for all designs, such as ``{tp: 1,
            batch: 64}``; the others may be parameters.
        price_per_hour: dollars per device and hour, as of ``clusters.serving``.
        prompt: tokens of a query.
        tokens: length of an answer, by default ``reference_tokens``.
        thinking_gain: what doubling the length of an answer adds to the log odds of its success,
            for files without a column ``tokens``; an assumption.
        reference_tokens: length at which the file was measured, where ``thinking_gain`` adds none.
        verifier_cost: cost of judging an answer over that of writing it.
        least_gain: coverage that one more answer adds at ``saturation``.

    Inputs:
        samples: largest number of answers to a query.
        true_positive_rate: share of the right answers that the verifier accepts.
        false_positive_rate: share of the wrong answers that it accepts.
        distractors: different wrong answers between which votes are split equally.
        revision_gain: success of a revision of a wrong answer over that of a first answer.
        revision_loss: probability that a revision spoils a right answer.
        shared: part of an answer that the leaves of a tree share; also their correlation.

    Limits:
        Answers to a problem are independent with equal probability, except in a tree, whose
        correlation is assumed, as are the distractors of a vote and the rates of revisions. Errors
        of a verifier do not depend on the problem. Samples of a query run at once, revisions and
        ``stop-when-verified`` one after another; each answer reads the prompt again. More answers
        than the largest k of the file are marked as ``extrapolated``.

    Error:
        The rule of which k are fitted was chosen on 24 published curves, each at one temperature:
        at 93 other k, pass@k is off by .6 points on the mean and 2.8 at most. On 114 curves of
        eight sources that were gathered after it, it is off by .3 on the mean and 2.6 at most, at
        219 k. With three k alone (1, 8 and at least 64), at 8, 3 of 85 curves are off by more than
        3 points, and one by 5.4. Shares at the best temperature for each k are those of several
        policies: one fit to them is off by more than 3 points on 8 of 17 such curves, and by up to
        8.2 (``benchmarks/coverage.py``); a file that states them as such is refused.

    Example:
        options: {price: 0.1}
        parameters: {samples: [1, 4, 16], method: [vote, best-of-n], tokens: [1024]}

    Raises:
        SpecError: the file or an option is wrong.

    Source:
        Snell et al.: Scaling LLM Test-Time Compute Optimally, 2024, poses the question; Brown et
        al.: Large Language Monkeys, 2024, for coverage; Wang et al.: Scaling over Scaling (TTSPM),
        2025, for saturation. Costs: ``clusters.serving``.
    """

    user_options: ClassVar[Sequence[str]] = ("system",)

    file: str | None = None
    classes: Mapping[str, float] | None = None
    distribution: str = "auto"
    policy: Mapping[str, Value] | None = None
    price: float | Mapping[str, float] | None = None
    input_price: float | Mapping[str, float] | None = None
    once: float = 0.0
    choice: float = 0.0
    device: DeviceOption | None = None
    system: SystemOption | None = None
    served: Mapping[str, Any] | None = None
    plan: Mapping[str, Value] | None = None
    price_per_hour: float | Mapping[str, float] | None = None
    prompt: int = 512
    tokens: float | None = None
    thinking_gain: float | None = None
    reference_tokens: float = 1024.0
    verifier_cost: float = 0.0
    least_gain: float = 0.01

    def __post_init__(self) -> None:
        word(*DISTRIBUTIONS)("distribution", self.distribution)
        number(1, 2**31, whole=True)("prompt", self.prompt)
        number(1, 1e6)("reference_tokens", self.reference_tokens)
        number(0, 1e6)("verifier_cost", self.verifier_cost)
        number(0, 1e9)("once", self.once)
        number(0, 1e9)("choice", self.choice)
        number(1e-9, 1)("least_gain", self.least_gain)
        path = ANCHORS if self.file is None else Path(self.file)
        curves = read_pass_file(path)
        self._problems = gather_classes(curves, self.classes, self.distribution, path)
        self._check_thinking()
        self._cost = self._cost_model()
        self._declare_inputs()
        parts = self._cost.parts
        costs = [metric for part, metric in _COSTS.items() if part in parts]
        self.provides = {metric.name: metric for metric in (*_METRICS[:2], *costs, *_METRICS[2:])}
        self.absent_metrics = self._explain_absent()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        clusters = "" if self.price is not None else f"-{self._cost.version}"
        self.version = f"{type(self).version}-{digest}{clusters}"

    @property
    def notes(self) -> Sequence[str]:
        """Errors of the fits at the k that were held out, and a note on what was left out."""
        return self._problems.notes

    @property
    def held_out_errors(self) -> Sequence[HeldOutError]:
        """Relative errors of pass@k at the k that were held out, by class and model."""
        return self._problems.held_out_errors

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        super().check_values(values)
        lengths = {float(one) for one in values.get("tokens", ())}
        if self._is_blind and lengths - {self.reference_tokens} and len(lengths) > 1:
            problem = "tokens has no effect on accuracy: the file has no column tokens"
            hint = "add the column, or state thinking_gain, such as 0.3 per doubling"
            raise SpecError(problem, hint=hint)
        if self.price is None:
            self._cost.check_values({name: some for name, some in values.items() if name in PLAN})

    def evaluate(self, batch: Batch) -> Metrics:
        """Return accuracy and cost of n policies."""
        tokens = self._readings.column("tokens", batch)
        log_odds = np.zeros(len(batch))
        if self.thinking_gain is not None:
            log_odds = self.thinking_gain * np.log2(tokens / self.reference_tokens)
        found = self._problems.evaluate(batch, self._readings, log_odds)
        first = self._cost_answers(batch, revised=False)
        columns = {
            "accuracy": found.accuracy,
            "coverage": found.coverage,
            **self._total(batch, found, first),
            "answers": found.answers,
            "tokens_written": found.written * tokens,
            "saturation": self._problems.find_saturation(
                batch, self._readings, log_odds, self.least_gain
            ),
            "extrapolated": found.extrapolated.astype(np.float64),
        }
        failures: dict[int, Failure] = {**first.failures}
        if self._problems.has_lengths:
            failures |= infeasible(found.outside, lambda _: self._problems.lengths_measured)
        if self._problems.temperatures:
            failures |= infeasible(found.unmeasured, lambda _: _UNMEASURED)
        return Metrics(columns={name: columns[name] for name in self.provides}, failures=failures)

    def _cost_answers(self, batch: Batch, *, revised: bool) -> AnswerCost:
        """Return the cost of an answer; that of a revision also reads the answer before it."""
        among = batch.distinct({"model", "tokens", *PLAN} & batch.names)
        few = batch if among.place is None else batch.take(among.rows)
        models, tokens = (self._readings.column(one, few) for one in ("model", "tokens"))
        read = self.prompt + tokens if revised else np.full(len(few), float(self.prompt))
        found = self._cost.cost(models, read, tokens, batch=fix_columns(few, self.plan or {}))
        parts = {name: among.spread(values) for name, values in found.parts.items()}
        return AnswerCost(parts, among.spread_rows(found.failures))

    def _total(self, batch: Batch, found: ClassPolicies, first: AnswerCost) -> dict[str, Floats]:
        """Return dollars, joules and seconds of all answers to a query, each (n,)."""
        revised = self._readings.column("method", batch) == METHODS.index("revision")
        later = self._cost_answers(batch, revised=True) if revised.any() else first
        judged = found.answers * self.verifier_cost * found.is_verified
        totals: dict[str, Floats] = {}
        for part, metric in _COSTS.items():
            if part not in first.parts:
                continue
            one, next_one = first.parts[part], later.parts[part]
            chain = one + (found.written - 1.0) * next_one
            if part == "seconds":
                rounds = np.where(found.is_sequential, found.answers, 1.0)
                checks = found.is_verified * self.verifier_cost * rounds
                totals[metric.name] = np.where(revised, chain, one * (rounds + checks))
            else:
                totals[metric.name] = np.where(revised, chain, one * (found.written + judged))
            if part == "dollars":
                chosen = np.where(found.is_sequential, 0.0, found.several)
                totals[metric.name] += self.once + self.choice * chosen
        return totals

    def _cost_model(self) -> CostModel:
        models = self._problems.models
        serving = {
            name: getattr(self, name)
            for name in ("device", "system", "served", "plan", "price_per_hour")
            if getattr(self, name) is not None
        }
        if self.price is not None:
            for name in serving:
                problem = f"{name} has no effect beside price"
                raise SpecError(problem, hint=f"state price or {name}", part=[name])
            return prices_of(models, self.price, self.input_price or 0.0)
        for name in ("input_price", "once", "choice"):
            if getattr(self, name):
                problem = f"{name} has no effect without price"
                raise SpecError(problem, hint="state price, or leave it out", part=[name])
        if "device" not in serving and "system" not in serving:
            hint = "price: 0.5, in dollars per million tokens; or device: h100-sxm"
            raise SpecError("the cost of an answer is unknown: no price and no device", hint=hint)
        options = {name: serving[name] for name in serving if name not in ("served", "plan")}
        if "system" in options:
            options.setdefault("device", None)
        return cluster_of(models, self.served, options)

    @property
    def _is_blind(self) -> bool:
        """Whether nothing states how accuracy depends on the length of an answer."""
        return self.thinking_gain is None and not self._problems.has_lengths

    def _check_thinking(self) -> None:
        if self.thinking_gain is None:
            return
        number(-10, 10)("thinking_gain", self.thinking_gain)
        if self._problems.has_lengths:
            problem = "thinking_gain has no effect: the file has a column tokens"
            raise SpecError(problem, hint="take one of them out", part=["thinking_gain"])

    def _declare_inputs(self) -> None:
        models = self._problems.models
        table: dict[str, Reading] = {
            **_INPUTS,
            "model": one_of(models, next(iter(models))),
            "tokens": NumberInput(1, 1e6, default=self.reference_tokens),
        }
        if self._problems.temperatures:
            places = enumerate(self._problems.temperatures)
            table["temperature"] = ChoiceInput({value: float(at) for at, value in places})
        for name in self._problems.inputs.values():
            table[name] = NumberInput(0, _MOST, default=0.0, whole=True)
        own = dict(table)
        if self.price is None:
            table = {**PLAN, **table}
        readings = Readings.of(table, self)
        for option, known, given in (("plan", PLAN, self.plan), ("policy", own, self.policy)):
            for name in given or {}:
                if name not in known:
                    problem = f"{option} has no input {name!r}"
                    raise SpecError(problem, hint=nearest(name, known), part=[option])
            readings = readings.fixed(dict(given or {}))
        self.declare(readings)

    def _explain_absent(self) -> dict[str, tuple[str, str]]:
        if self.price is None:
            return {} if "dollars" in self._cost.parts else {"cost": self._cost.lacks_price}
        why = ("prices per token state no device", "state device in place of price")
        return {"energy": why, "latency": why}

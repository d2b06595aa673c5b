"""The evaluator ``scaling.qat-law``: split of tokens between full-precision and QAT phases."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading

_METRICS = (
    Metric(name="tokens_per_byte"),
    Metric(name="best_share"),
    Metric(name="excess", goal="minimize"),
    Metric(name="full_precision_loss", goal="minimize"),
    Metric(name="memory", unit="B", goal="minimize"),
    Metric(name="compute", unit="FLOP", goal="minimize"),
)

_INPUTS: Mapping[str, Reading] = {
    **dict.fromkeys(("parameters", "tokens"), NumberInput(1, 1e18)),
    "bits": NumberInput(1, 32),
    "share": NumberInput(0, 1),
}

_FEW = Failure(kind="infeasible", reason="the law needs more than one token per byte of weights")

SHARE_RATE = 6.7297

# Hoffmann et al.: Training Compute-Optimal Large Language Models, 2022, equation 10.
FLOOR, SIZE_FACTOR, SIZE_POWER, DATA_FACTOR, DATA_POWER = 1.69, 406.4, 0.34, 410.7, 0.28

# Fitted here to `best_share` between 12 and 70,000 tokens for each byte, since the authors'
# constants are not public: the excess is valid for finding the best split, not as a loss in nats.
FULL_FACTOR, QUANTISED_POWER, FULL_POWER, BOTH_POWER = float(np.exp(5.065)), 1.4, 2.012, 0.001


class QatLaw(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Best share of quantisation-aware training (QAT), and the cost of a model.

    ``best_share`` is the paper's law as a function of the tokens per byte of weights. ``excess`` is
    the relative form of its loss law: a term that falls with the tokens of the QAT phase, plus one
    that falls with those of the full-precision phase.

    Inputs:
        parameters: number of weights.
        bits: per weight.
        tokens: of both phases.
        share: fraction of the tokens in the QAT phase, between 0 and 1, both excluded.

    Limits:
        ``excess`` is relative, not a loss in nats.

    Error:
        ``best_share`` is the published law. ``excess``: four constants fitted to that law; its
        minimum is off by .025 on the mean, .091 at most, between 12 and 70,000 tokens per byte.

    Example:
        parameters:
            {parameters: [100000000, 1000000000], bits: [1, 4], tokens: [3000000000], share: [0.2,
            0.5]}

    Source:
        Dremov et al.: Compute-Optimal Quantization-Aware Training, 2025: the share is
        exp(-a / ln S) of S tokens for each byte; the excess is that of their loss law, with equal
        bit and size factors in both terms.
    """

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return best fraction, excess loss and cost of n designs, (n,) by name."""
        parameters, bits = inputs["parameters"], inputs["bits"]
        tokens, share = inputs["tokens"], inputs["share"]
        memory = parameters * bits / 8
        few = tokens <= memory
        per_byte = np.where(few, 2.0, tokens / memory)  # placeholder for rows with a fault
        loss = FLOOR + SIZE_FACTOR / parameters**SIZE_POWER + DATA_FACTOR / tokens**DATA_POWER
        return Metrics(
            columns={
                "tokens_per_byte": per_byte,
                "best_share": best_share(per_byte),
                "excess": excess(per_byte, share),
                "full_precision_loss": loss,
                "memory": memory,
                "compute": 6 * parameters * tokens,
            },
            failures=dict.fromkeys(np.flatnonzero(few).tolist(), _FEW),
        )


def best_share(tokens_per_byte: Floats) -> Floats:
    """Return the loss-minimizing share of tokens in the QAT phase, by tokens per weight byte.

    There must be more than one token per byte.
    """
    return np.exp(-SHARE_RATE / np.log(tokens_per_byte))


def excess(tokens_per_byte: Floats, share: Floats) -> Floats:
    """Return the relative excess loss of the quantised model over full precision.

    The unit is the loss term of the QAT phase at one QAT token per byte of weights.
    """
    quantised, full = share * tokens_per_byte, (1 - share) * tokens_per_byte
    return quantised**-QUANTISED_POWER + FULL_FACTOR * full**-FULL_POWER * quantised**-BOTH_POWER

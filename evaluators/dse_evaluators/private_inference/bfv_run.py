"""The evaluator ``private.bfv-run``: one layer under BFV encryption, run on SEAL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError, InfeasibleError, SpecError
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.private_inference.bfv import INPUTS
from dse_evaluators.private_inference.encrypted_layers import check_operands, layers_from
from dse_evaluators.private_inference.encrypted_run import DrawnLayer, EncryptedRun, run_layer
from dse_evaluators.private_inference.seal_session import BfvParameters

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="noise_budget", unit="bit", goal="maximize"),
    Metric(name="rotations", goal="minimize"),
    Metric(name="products", goal="minimize"),
    Metric(name="additions", goal="minimize"),
)


class BfvRun(DeclaredEvaluator, reads=INPUTS, provides=_METRICS, version="2", kind="measured"):
    """Time and noise budget of one layer under BFV encryption, run on SEAL with drawn integers.

    Weights and inputs are drawn, packed and encrypted; the layer runs in the chosen schedule on one
    core; its outputs are decrypted and compared with the plain result at every pixel. A design
    whose noise budget is used up is infeasible; one that decrypts to other integers fails.

    Args:
        workload: a workload of ``workloads.catalogue``, or a network of yours
            (``docs/workloads.md``).
        layer: name of the layer that is run; needed if the network has several.
        shape: a layer without a network: ``height``, ``width``, ``channels``, ``filters``, and
            optionally ``window``, ``stride`` and ``groups``.
        repeats: runs of a design; the latency is their median, the noise budget the least, to 1/64
            of a bit, and in SEAL's whole bits below 2.
        seed: seed of the drawn integers; keys and errors are drawn anew in each run.

    Inputs:
        ring: ring dimension n, the number of slots.
        data_primes: primes of the ciphertext modulus; one more is used for key switching.
        prime_bits: width of each prime.
        plain_bits: width of the plaintext modulus, a prime with slots.
        schedule: ``rotate-then-multiply`` rotates inputs for every diagonal and window position;
            ``multiply-then-rotate`` rotates partial sums instead; ``mixed`` rotates inputs for
            window positions and partial sums for diagonals.
        weights_in_ntt: whether the encoded weights are transformed before the run.
        weight_bits: width of signed weights.
        activation_bits: width of signed activations.

    Limits:
        Images of more pixels than half the ring are refused. ``latency`` is the CPU time of the
        server alone: encryption, decryption, encoding of weights and key generation are left
        out. SEAL is asked for 128-bit security. Needs the extra ``private``: ``pip install
        'dse-engine[private]'``.

    Source:
        SEAL 4, by the binding of tenseal 0.3.18.

    Example:
        options: {shape: {height: 4, width: 4, channels: 2, filters: 2, window: 3}, repeats: 1}
        parameters:
          ring: [2048]
          data_primes: [1]
          prime_bits: [27]
          plain_bits: [16]
          weight_bits: [2]
          activation_bits: [3, 4]

    Raises:
        SpecError: an option is invalid, several layers are named, or sums do not fit.
        PluginError: onnx is not installed.
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    workload: object = None
    layer: str | None = None
    shape: Mapping[str, Any] | None = None
    repeats: int = 3
    seed: int = 0
    ring: int | None = None
    data_primes: int | None = None
    prime_bits: int | None = None
    plain_bits: int | None = None
    schedule: str | None = None
    weights_in_ntt: bool | None = None
    weight_bits: int | None = None
    activation_bits: int | None = None

    def __post_init__(self) -> None:
        check_count("repeats", self.repeats, least=1)
        check_count("seed", self.seed, least=0)
        self._layers = layers_from(self, self.workload, self.layer, self.shape)
        if len(self._layers) > 1:
            hint = f"layer: {self._layers[0].name}"
            raise SpecError("a run is of one layer", hint=hint, part=["layer"])
        if find_spec("tenseal") is None:
            reason = "it needs the package tenseal: pip install 'dse-engine[private]'"
            setattr(self, "missing", reason)  # noqa: B010 - a workload of the user sets it, too
        super().__post_init__()

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._readings.check(values)
        settled = {name: (value,) for name, value in self._readings.settled.items()}
        check_operands(self._layers, {**settled, **values})

    def evaluate(self, batch: Batch) -> Metrics:
        """Run n designs, one at a time; return metrics, (n,)."""
        return one_by_one(batch, self.provides, self._measure, uncertain=("latency",))

    def _measure(self, design: Mapping[str, Value]) -> Found:
        chosen = {**self._readings.defaults, **design, **self._readings.settled}
        shape = self._layers[0]
        parameters = BfvParameters(
            ring=int(chosen["ring"]),
            data_primes=int(chosen["data_primes"]),
            prime_bits=int(chosen["prime_bits"]),
            plain_bits=int(chosen["plain_bits"]),
        )
        if shape.pixels > parameters.ring // 2:
            raise InfeasibleError(f"{shape.pixels} pixels, and {parameters.ring // 2} slots a row")
        widths = int(chosen["weight_bits"]), int(chosen["activation_bits"])
        if 2 * shape.sum_limit(*widths) + 1 > 2**parameters.plain_bits:
            raise InfeasibleError(f"sums of {shape.terms} products exceed plain_bits")
        runs = [
            run_layer(
                DrawnLayer.draw(shape, *widths, self.seed + repeat),
                parameters,
                str(chosen["schedule"]),
                in_ntt=bool(chosen["weights_in_ntt"]),
            )
            for repeat in range(self.repeats)
        ]
        return _summary(runs)


def _summary(runs: Sequence[EncryptedRun]) -> Found:
    """Return the metrics of the runs of a design.

    Raises:
        InfeasibleError: noise made a decryption unreliable.
        EvaluationError: a decryption is wrong although some budget is left.
    """
    budget = min(run.budget for run in runs)
    if budget == 0:
        raise InfeasibleError("budget used up")
    wrong = sum(run.wrong for run in runs)
    if wrong:
        raise EvaluationError(f"{wrong} outputs differ from the plain result")
    seconds = [run.seconds for run in runs]
    values = {"latency": float(np.median(seconds)), "noise_budget": float(budget)}
    counts = {name: float(getattr(runs[0], name)) for name in ("rotations", "products")}
    spread = float(np.std(seconds, ddof=1) / len(runs) ** 0.5) if len(runs) > 1 else float("nan")
    return Found(
        values={**values, **counts, "additions": float(runs[0].additions)},
        errors={"latency": spread},
    )

"""Runs of a model with faulty weights, and their comparison with the run without faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dse.core.values import Ints
from dse.errors import EvaluationError
from dse_evaluators.faults.criterion import PREDICTION, Criterion
from dse_evaluators.faults.stored_layer import StoredLayer
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.models import ModelRef, workload_of
from dse_evaluators.workloads.onnx_resumed import ResumedGraph, RunsOnnx
from dse_evaluators.workloads.workload import Signals, Split, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOutcome:
    """Outcome of a run with injected bit flips: whether it is a corruption, and the quality.

    The quality metrics are in the model's order.
    """

    corrupt: bool
    quality: tuple[float, ...]


class Judge:
    """Comparison of a model's outputs under injected bit flips with its outputs without any.

    Outputs that are not finite are a corruption; all outputs then count as zero.

    Args:
        workload: the model with its examples.
        split: the examples.
        whole: outputs of the model in single precision, (n, k).
        criterion: what counts as a corruption.
        reference: outputs without faults, (n, k); ``None`` if one is not finite.

    Raises:
        EvaluationError: the outputs without faults are not finite, or have no classes.
    """

    def __init__(
        self,
        workload: Workload,
        split: Split,
        whole: Single,
        criterion: Criterion,
        reference: Single | None,
    ) -> None:
        if reference is None:
            raise EvaluationError(
                "an output without faults is infinite or not a number",
                hint="the number formats are too narrow for this model",
            )
        if criterion.name == PREDICTION and reference.shape[1] == 1:
            raise EvaluationError(
                "the model has one output, and so no classes to predict",
                hint="name a quality metric as the criterion, with a tolerance",
            )
        self._workload, self._split, self._whole = workload, split, whole
        self._criterion, self._reference = criterion, reference
        self._names = tuple(workload.metrics)
        self._intact = FaultOutcome(corrupt=False, quality=self._measure(reference))
        self._useless = FaultOutcome(corrupt=True, quality=self._measure(np.zeros_like(reference)))

    @property
    def intact(self) -> FaultOutcome:
        """Outcome of the run without bit flips."""
        return self._intact

    def judge(self, outputs: Single | None) -> FaultOutcome:
        """Judge a run's outputs, (n, k), as a corruption or not; ``None`` if one is not finite."""
        if outputs is None:
            return self._useless
        if np.array_equal(outputs, self._reference):
            return self._intact
        quality = self._measure(outputs)
        return FaultOutcome(corrupt=self._is_corrupt(outputs, quality), quality=quality)

    def _is_corrupt(self, outputs: Single, quality: tuple[float, ...]) -> bool:
        rule = self._criterion
        if rule.name == PREDICTION:
            changed = outputs.argmax(axis=1) != self._reference.argmax(axis=1)
            return bool(changed.mean() > rule.tolerance)
        place = self._names.index(rule.name)
        return rule.sign * (quality[place] - self._intact.quality[place]) > rule.tolerance

    def _measure(self, outputs: Single) -> tuple[float, ...]:
        found = self._workload.quality(outputs, self._whole, self._split)
        return tuple(float(found[name]) for name in self._names)


class FaultRunner:
    """Model whose weights are stored in number formats, run with faults in some of them.

    Args:
        model: the model.
        split: examples to run it on.
        layers: the stored layers by name.
        criterion: what counts as a corruption.

    Raises:
        PluginError: the model's assets are not installed.
        EvaluationError: the model does not run.
    """

    def __init__(
        self, model: ModelRef, split: Split, layers: Mapping[str, StoredLayer], criterion: Criterion
    ) -> None:
        self._workload, self._split, self._criterion = workload_of(model), split, criterion
        self._layers = layers
        self._stored = {name: layer.values for name, layer in layers.items()}
        with threadpool_limits(limits=1):
            self._whole = self._workload.outputs(self._workload.parameters, split, Signals())
        self._resumed: _ResumedLayer | None = None
        self._content = self._stored_content()
        self._judge: Judge | None = None

    def run_flips(
        self,
        layer: str,
        places: Ints,  # (k,)
        values: Single,  # (k,)
    ) -> list[FaultOutcome]:
        """Return the outcome of k runs, each with one weight of a layer read as another value.

        If the model runs as an ONNX file, only the nodes that depend on the layer are run.

        Args:
            layer: name of the layer.
            places: indices of the flattened weights.
            values: the values that are read.
        """
        if self._content is None:
            pairs = zip(places.tolist(), values, strict=True)
            return [self._run_flip(layer, place, value) for place, value in pairs]
        return self._resume(layer, self._content).run(places, values)

    def read_rows(self, layer: str) -> NDArray[np.bool_] | None:
        """Return which rows of a layer the model reads for the examples; None if that is unknown.

        Args:
            layer: name of the layer.
        """
        if self._content is None:
            return None
        graph = self._resume(layer, self._content).graph
        rows = range(len(self._stored[layer]))
        return np.array([graph.reads_row(row) for row in rows])

    def run_weights(self, weights: Mapping[str, Single]) -> FaultOutcome:
        """Run the model with other weights in some layers, and return the outcome."""
        if self._judge is None:
            self._judge = self._make_judge(self._run_whole({}))
        return self._judge.judge(self._run_whole(weights))

    def _run_flip(self, layer: str, place: int, value: np.float32) -> FaultOutcome:
        weight = self._stored[layer].copy()
        weight.reshape(-1)[place] = value
        return self.run_weights({layer: weight})

    def _make_judge(self, reference: Single | None) -> Judge:
        return Judge(self._workload, self._split, self._whole, self._criterion, reference)

    def _run_whole(self, weights: Mapping[str, Single]) -> Single | None:
        """Return the outputs, (n, k); None if one is not finite."""
        parameters = {**self._workload.parameters, **self._stored, **weights}
        try:
            with threadpool_limits(limits=1), np.errstate(all="ignore"):
                outputs = self._workload.outputs(parameters, self._split, Signals())
        except EvaluationError:
            if not weights:
                raise
            return None  # models of the user refuse outputs that are not finite
        return outputs if np.isfinite(outputs).all() else None

    def _stored_content(self) -> bytes | None:
        """Return the model with its stored weights as an ONNX file; None for other models."""
        if not isinstance(self._workload, RunsOnnx) or find_spec("onnxruntime") is None:
            return None
        from dse_evaluators.workloads.onnx_runtime import with_initializers

        return with_initializers(self._workload.onnx_model(), self._stored)

    def _resume(self, layer: str, content: bytes) -> _ResumedLayer:
        if self._resumed is None or self._resumed.layer != layer:
            self._resumed = None  # its tensors go before new ones come
            self._resumed = self._make_resumed(layer, content)
        return self._resumed

    def _make_resumed(self, layer: str, content: bytes) -> _ResumedLayer:
        workload, split = self._workload, self._split
        assert isinstance(workload, RunsOnnx)
        weight = self._stored[layer].copy()
        graph = ResumedGraph(content, layer, list(workload.onnx_batches(split)), weight)

        def outputs(tables: Sequence[Single]) -> Single | None:
            if not all(np.isfinite(one).all() for one in tables):
                return None
            return workload.read_outputs(tables, split)

        reference = next(graph.run_each([weight]))
        return _ResumedLayer(layer, weight, graph, outputs, self._make_judge(outputs(reference)))


@dataclass(frozen=True, slots=True)
class _ResumedLayer:
    """Layer with the part of the model that depends on it, run with single changed weights."""

    layer: str
    weight: Single
    graph: ResumedGraph
    outputs: Callable[[Sequence[Single]], Single | None]
    judge: Judge

    def run(self, places: Ints, values: Single) -> list[FaultOutcome]:
        length = self.weight[0].size
        is_read = [self.graph.reads_row(place // length) for place in places.tolist()]
        tables = self.graph.run_each(self._change_each(places[is_read], values[is_read]))
        found = (self.judge.judge(self.outputs(one)) for one in tables)
        return [next(found) if read else self.judge.intact for read in is_read]

    def _change_each(self, places: Ints, values: Single) -> Iterator[Single]:
        """Yield the array of weights with one weight changed, for each place in turn."""
        flat = self.weight.reshape(-1)
        for place, value in zip(places.tolist(), values, strict=True):
            kept = flat[place]
            flat[place] = value
            try:
                yield self.weight
            finally:
                flat[place] = kept

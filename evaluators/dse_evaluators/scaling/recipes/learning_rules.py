"""Rules by which a network gets its gradients: backpropagation, and Mono-Forward."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional

from dse.errors import EvaluationError

_FEWEST_LAYERS = 3
"""Layers with weights from which Mono-Forward differs from backpropagation: two hidden, one out."""


@dataclass(slots=True)
class KeptTensors:
    """Bytes of the tensors that a backward pass needs; ``most`` is their peak over all passes."""

    most: int = 0

    @contextmanager
    def count(self, weights: Iterable[nn.Parameter]) -> Iterator[None]:
        """Count what operations within keep for gradients: each storage once, without weights."""
        left_out = {one.untyped_storage().data_ptr() for one in weights}
        kept: dict[int, int] = {}

        def pack(one: Tensor) -> Tensor:
            place = one.untyped_storage()
            if place.data_ptr() not in left_out:
                kept[place.data_ptr()] = place.nbytes()
            return one

        with saved_tensors_hooks(pack, lambda one: one):
            yield
        self.most = max(self.most, sum(kept.values()))


class LearningRule(Protocol):
    """Way to compute the gradients of an update.

    Attributes:
        more_weights: trained parameters that are not those of the network.
        kept: memory that the rule keeps for gradients.
    """

    kept: KeptTensors

    @property
    def more_weights(self) -> Sequence[nn.Parameter]: ...

    def compute_gradients(
        self, batch: Mapping[str, Tensor], targets: Tensor | None, *, narrow: bool
    ) -> Tensor:
        """Add the gradients of a batch to the parameters; return the loss of the outputs."""
        ...


@dataclass(slots=True, kw_only=True)
class Backprop:
    """Gradients of the loss of the outputs, through all layers.

    Source:
        Rumelhart, Hinton, Williams: Learning Representations by Back-Propagating Errors, 1986.
    """

    module: nn.Module
    more_weights: Sequence[nn.Parameter] = ()
    kept: KeptTensors = field(default_factory=KeptTensors)

    def compute_gradients(
        self, batch: Mapping[str, Tensor], targets: Tensor | None, *, narrow: bool
    ) -> Tensor:
        """Add the gradients of a batch to the parameters; return the loss."""
        with self.kept.count(self.module.parameters()):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
                given = _logits(call_module(self.module, batch))
            loss = loss_of(given.float(), batch, targets)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()


@dataclass(slots=True, kw_only=True)
class MonoForward:
    """Gradients of a loss for each layer, behind a projection of its activations to the outputs.

    No gradient passes from a layer to the one before it, so that only one layer at a time keeps
    what its gradient needs. The last layer of the network is the projection of the hidden layer
    before it; the other projections exist during training alone.

    Attributes:
        blocks: a hidden layer with its activation, pooling and norm, in their order.
        projections: matrices to the outputs, (outputs, activations), for all blocks but the last.

    Source:
        Gong, Li, Abdulla: Mono-Forward, 2025 (arXiv 2501.09238), section 3; the outputs are those
        of the last layer, as in their BP-pred.
    """

    blocks: Sequence[nn.Sequential]
    projections: Sequence[nn.Parameter]
    kept: KeptTensors = field(default_factory=KeptTensors)

    @property
    def more_weights(self) -> Sequence[nn.Parameter]:
        """Projections, which are trained with the layers that are not frozen."""
        pairs = zip(self.blocks, self.projections, strict=False)
        return [one for block, one in pairs if _is_trained(block)]

    @staticmethod
    def of(module: nn.Module, example: Mapping[str, Tensor], *, seed: int) -> MonoForward:
        """Return the rule for a network.

        Args:
            module: a ``Sequential``; a layer of it may be any module.
            example: inputs of two examples or more, by name.
            seed: seed of the projections, whose draws leave those of the training unchanged.

        Raises:
            EvaluationError: the network is no sequence of layers, or has one hidden layer.
        """
        if not isinstance(module, nn.Sequential):
            raise EvaluationError(
                f"mono-forward trains a sequence of layers, and {type(module).__name__} is none",
                hint="return a torch.nn.Sequential, or train it with rule: backprop",
            )
        blocks = _split_layers(list(_flatten_layers(module)))
        chance = torch.Generator().manual_seed(seed)
        sizes = _measure_activations(blocks, example)
        projections = [_draw_projection(sizes[-1], size, chance) for size in sizes[:-1]]
        return MonoForward(blocks=blocks, projections=projections)

    def compute_gradients(
        self, batch: Mapping[str, Tensor], targets: Tensor | None, *, narrow: bool
    ) -> Tensor:
        """Add the gradients of each layer's loss to its parameters; return the last loss."""
        if targets is None:
            raise EvaluationError(
                "mono-forward needs targets, and the data has tokens alone",
                hint="give data with targets, or train with rule: backprop",
            )
        (stream,) = batch.values()
        loss = torch.zeros(())
        for block, projection in zip(self.blocks, [*self.projections, None], strict=True):
            more = () if projection is None else (projection,)
            with self.kept.count([*block.parameters(), *more]):
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
                    made = given = _as_tensor(block(stream))
                    if projection is not None:
                        given = functional.linear(made.flatten(1), projection)
                loss = loss_of(given.float(), batch, targets)
            if _is_trained(block):
                loss.backward()  # type: ignore[no-untyped-call]
            stream = made.detach()
        return loss.detach()


def call_module(module: nn.Module, feeds: Mapping[str, Tensor]) -> Any:
    """Return the outputs for a batch; several inputs are keyword arguments of the module."""
    given = dict(feeds)
    return module(given.pop("")) if "" in given else module(**given)


def loss_of(given: Tensor, batch: Mapping[str, Tensor], targets: Tensor | None) -> Tensor:
    """Return the cross-entropy of classes or next tokens, or the mean squared error of numbers."""
    if targets is None:
        tokens = batch[""]
        given, targets = given[:, :-1], tokens[:, 1:]
    if targets.is_floating_point():
        return functional.mse_loss(given.reshape(targets.shape), targets)
    return functional.cross_entropy(given.reshape(-1, given.shape[-1]), targets.reshape(-1))


def _logits(given: Any) -> Tensor:
    if isinstance(given, Mapping):
        given = given["logits"]
    given = getattr(given, "logits", given)
    found: Tensor = given[0] if isinstance(given, tuple | list) else given
    return found


def _flatten_layers(module: nn.Sequential) -> Iterator[nn.Module]:
    for one in module:
        if isinstance(one, nn.Sequential):
            yield from _flatten_layers(one)
        else:
            yield one


def _split_layers(layers: Sequence[nn.Module]) -> list[nn.Sequential]:
    """Return the blocks: each starts at a layer with a matrix; the last layer joins the one before.

    Raises:
        EvaluationError: the network has fewer than two hidden layers.
    """
    first = [
        at for at, one in enumerate(layers) if any(each.dim() > 1 for each in one.parameters())
    ]
    if len(first) < _FEWEST_LAYERS:
        raise EvaluationError(
            f"mono-forward is backpropagation in a network of {len(first)} layers with weights",
            hint="two hidden layers or more, or rule: backprop",
        )
    cuts = [0, *first[1:-1], len(layers)]
    return [nn.Sequential(*layers[start:end]) for start, end in pairwise(cuts)]


def _measure_activations(
    blocks: Sequence[nn.Sequential], example: Mapping[str, Tensor]
) -> list[int]:
    """Return the activations of an example at the end of each block.

    Raises:
        EvaluationError: the network has several inputs, or outputs that are no matrix.
    """
    if len(example) != 1:
        raise EvaluationError(
            f"mono-forward trains networks of one input, and this has {len(example)}",
            hint="train it with rule: backprop",
        )
    (stream,) = example.values()
    sizes = []
    states = [block.training for block in blocks]
    with torch.no_grad():
        for block in blocks:
            block.eval()  # statistics of norms stay as they are
            stream = _as_tensor(block(stream))
            sizes.append(stream[0].numel())
    for block, state in zip(blocks, states, strict=True):
        block.train(state)
    return sizes


def _as_tensor(given: Any) -> Tensor:
    if not isinstance(given, Tensor):
        raise EvaluationError(
            f"mono-forward: layers return tensors, and one returns {type(given).__name__}",
            hint="wrap the layer in a module that returns its tensor, or use rule: backprop",
        )
    return given


def _draw_projection(outputs: int, size: int, chance: torch.Generator) -> nn.Parameter:
    """Return a projection with the initial weights of a linear layer, (outputs, size)."""
    drawn = torch.rand((outputs, size), generator=chance) * 2 - 1
    return nn.Parameter(drawn / size**0.5)


def _is_trained(block: nn.Module) -> bool:
    return any(one.requires_grad for one in block.parameters())

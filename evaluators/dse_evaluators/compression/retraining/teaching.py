"""Training targets of a network: labels, and the outputs of the original network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, slots=True, kw_only=True)
class Teaching:
    """The parts of the loss; what is left of 1 is cross-entropy with the labels.

    Source:
        Hinton et al., Distilling the Knowledge in a Neural Network, 2015, section 2 (``alpha`` and
        ``temperature``, with the square of it before the divergence); Joseph et al., Going Beyond
        Classification Accuracy Metrics in Model Compression, 2020 (several parts; ``beta`` is on
        the logits, as shares of their spread).
    """

    alpha: float = 0.0
    beta: float = 0.0
    temperature: float = 1.0

    @property
    def has_teacher(self) -> bool:
        """True if the original network has to be run."""
        return self.alpha + self.beta > 0

    def loss(
        self,
        logits: Tensor,  # (n, classes)
        labels: Tensor,  # (n,)
        taught: Tensor | None,  # (n, classes)
    ) -> Tensor:
        """The mean over the examples."""
        hard = functional.cross_entropy(logits, labels)
        if taught is None or not self.has_teacher:
            return hard
        parts = (1 - self.alpha - self.beta) * hard
        if self.alpha:
            parts = parts + self.alpha * compute_divergence(logits, taught, self.temperature)
        if self.beta:
            parts = parts + self.beta * compare_logits(logits, taught)
        return parts


def compute_divergence(logits: Tensor, taught: Tensor, temperature: float) -> Tensor:
    """Return the divergence from the teacher's softened shares, times the temperature squared."""
    ours = torch.log_softmax(logits / temperature, dim=1)
    theirs = torch.log_softmax(taught / temperature, dim=1)
    distance = (theirs.exp() * (theirs - ours)).sum(dim=1).mean()
    return temperature**2 * distance


def compare_logits(logits: Tensor, taught: Tensor) -> Tensor:
    """Return the mean square distance from the teacher's logits, as a share of their variance."""
    return functional.mse_loss(logits, taught) / taught.var(correction=0)

"""Training loss against the labels and the original network's outputs (distillation)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillationLoss:
    """Weights of the distillation terms of the loss; cross-entropy has the remainder to 1.

    Source:
        Hinton et al., Distilling the Knowledge in a Neural Network, 2015, section 2 (``alpha`` and
        ``temperature``, whose square multiplies the divergence); Joseph et al., Going Beyond
        Classification Accuracy Metrics in Model Compression, 2020 (several terms; ``beta`` is for
        the logits, relative to their variance).
    """

    alpha: float = 0.0
    beta: float = 0.0
    temperature: float = 1.0

    @property
    def has_teacher(self) -> bool:
        """Whether the loss needs the original network's outputs."""
        return self.alpha + self.beta > 0

    def loss(
        self,
        logits: Tensor,  # (n, classes)
        labels: Tensor,  # (n,)
        teacher_logits: Tensor | None,  # (n, classes)
    ) -> Tensor:
        """Return the weighted sum of the loss terms, averaged over the examples."""
        hard = functional.cross_entropy(logits, labels)
        if teacher_logits is None or not self.has_teacher:
            return hard
        parts = (1 - self.alpha - self.beta) * hard
        if self.alpha:
            parts = parts + self.alpha * compute_divergence(
                logits, teacher_logits, self.temperature
            )
        if self.beta:
            parts = parts + self.beta * compare_logits(logits, teacher_logits)
        return parts


def compute_divergence(logits: Tensor, teacher_logits: Tensor, temperature: float) -> Tensor:
    """Return the KL divergence from the teacher's softmax at a temperature, times its square."""
    ours = torch.log_softmax(logits / temperature, dim=1)
    theirs = torch.log_softmax(teacher_logits / temperature, dim=1)
    distance = (theirs.exp() * (theirs - ours)).sum(dim=1).mean()
    return temperature**2 * distance


def compare_logits(logits: Tensor, teacher_logits: Tensor) -> Tensor:
    """Return the mean squared distance from the teacher's logits, divided by their variance."""
    return functional.mse_loss(logits, teacher_logits) / teacher_logits.var(correction=0)

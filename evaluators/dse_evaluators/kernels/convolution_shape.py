"""The shape of one grouped convolution."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionShape:
    """A square convolution by the side of its output, padded by half its window."""

    channels: int
    filters: int
    side: int
    window: int
    group: int
    """Channels that one filter sees."""
    stride: int = 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates for one image; those with padding are counted too."""
        return self.weights * self.side**2

    @property
    def weights(self) -> int:
        """Weights without biases."""
        return self.window**2 * self.group * self.filters

    @property
    def words(self) -> int:
        """Numbers that go in, come out and multiply, for one image."""
        inputs = self.channels * (self.side * self.stride) ** 2
        return inputs + self.filters * self.side**2 + self.weights

    @property
    def uneven(self) -> str:
        """Reason why there is no such convolution; empty if there is one."""
        left_over = self.channels % self.group
        if left_over:
            return f"{self.channels} channels in groups of {self.group}: {left_over} left over"
        groups = self.channels // self.group
        if self.filters % groups:
            return f"{self.filters} filters for {groups} groups: {self.filters % groups} left over"
        return ""

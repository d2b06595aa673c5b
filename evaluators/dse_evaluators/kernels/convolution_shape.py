"""Shape and work of one grouped convolution."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionShape:
    """Shape of a square convolution with ``side`` outputs per side and padding of half a window."""

    channels: int
    filters: int
    side: int
    window: int
    group: int
    """Channels that one filter sees."""
    stride: int = 1

    @property
    def macs(self) -> int:
        """Multiply-accumulates for one image, including those on zeros of the padding."""
        return self.weights * self.side**2

    @property
    def weights(self) -> int:
        """Number of weights, without biases."""
        return self.window**2 * self.group * self.filters

    @property
    def words(self) -> int:
        """Number of input, output and weight elements for one image."""
        inputs = self.channels * (self.side * self.stride) ** 2
        return inputs + self.filters * self.side**2 + self.weights

    @property
    def uneven(self) -> str:
        """Error message if the groups do not divide the channels or filters; else an empty text."""
        left_over = self.channels % self.group
        if left_over:
            return f"{self.channels} channels in groups of {self.group}: {left_over} left over"
        groups = self.channels // self.group
        if self.filters % groups:
            return f"{self.filters} filters for {groups} groups: {self.filters % groups} left over"
        return ""

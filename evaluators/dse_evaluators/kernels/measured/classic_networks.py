"""Small networks of the eight kinds of workloads in Fathom, in PyTorch.

Source:
    Adolf et al.: Fathom: Reference Workloads for Modern Deep Learning Methods, IISWC 2016, table 2,
    for the kinds. Sizes are this project's own, so that a run takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

_WORDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicNetwork:
    """A network: how to build it, the shape of an example, and whether it reads words."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    words: bool = False

    def inputs(self, batch: int) -> Tensor:
        """Return drawn inputs of a batch."""
        if self.words:
            return torch.randint(_WORDS, (batch, *self.shape))
        return torch.randn(batch, *self.shape)


class _Residual(nn.Module):
    """Residual block with two convolutions and batch norms."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the feature maps of a block."""
        found = torch.relu(self.norms[0](self.first(images)))
        return torch.relu(self.norms[1](self.second(found)) + self.shortcut(images))


class _Autoencoder(nn.Module):
    """Variational autoencoder of images with 784 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(784, 512), nn.Softplus(), nn.Linear(512, 512))
        self.mean, self.spread = nn.Linear(512, 32), nn.Linear(512, 32)
        self.decode = nn.Sequential(nn.Linear(32, 512), nn.Softplus(), nn.Linear(512, 784))

    def forward(self, images: Tensor) -> Tensor:
        """Return the images that are drawn from the codes of these."""
        hidden = torch.nn.functional.softplus(self.encode(images))
        mean, spread = self.mean(hidden), self.spread(hidden)
        return torch.sigmoid(self.decode(mean + torch.randn_like(mean) * torch.exp(spread / 2)))


class _Translator(nn.Module):
    """Encoder and decoder of three recurrent layers each, with attention."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(_WORDS, 128)
        self.encode = nn.LSTM(128, 128, 3, batch_first=True)
        self.decode = nn.LSTM(128, 128, 3, batch_first=True)
        self.out = nn.Linear(256, _WORDS)

    def forward(self, sentences: Tensor) -> Tensor:
        """Return the scores of all words at each place, with the sentences as targets."""
        embedded = self.words(sentences)
        states, last = self.encode(embedded)
        answers, _ = self.decode(embedded, last)
        shares = torch.softmax(answers @ states.transpose(1, 2), dim=-1)
        return self.out(torch.cat([answers, shares @ states], dim=-1))


class _MemoryNetwork(nn.Module):
    """End-to-end memory network of three hops; the last sentence is the question."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.ModuleList([nn.Embedding(_WORDS, 64) for _ in range(4)])
        self.out = nn.Linear(64, _WORDS)

    def forward(self, sentences: Tensor) -> Tensor:
        """Return the scores of all words as answers."""
        state = self.words[0](sentences[:, -1]).sum(1)
        for hop in range(3):
            keys = self.words[hop](sentences[:, :-1]).sum(2)
            values = self.words[hop + 1](sentences[:, :-1]).sum(2)
            shares = torch.softmax((keys * state[:, None]).sum(-1), dim=-1)
            state = state + (shares[..., None] * values).sum(1)
        return self.out(state)


class _Speech(nn.Module):
    """Speech recogniser: dense layers on sound windows, a bidirectional RNN, letters as output."""

    def __init__(self) -> None:
        super().__init__()
        widths = (494, 512, 512, 512)
        layers = [nn.Linear(*pair) for pair in pairwise(widths)]
        self.dense = nn.Sequential(*(each for one in layers for each in (one, nn.Hardtanh(0, 20))))
        self.recurrent = nn.RNN(512, 512, batch_first=True, bidirectional=True)
        self.out = nn.Linear(1024, 29)

    def forward(self, windows: Tensor) -> Tensor:
        """Return the logarithms of the letters' probabilities for each window."""
        return torch.log_softmax(self.out(self.recurrent(self.dense(windows))[0]), dim=-1)


def _alexnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, 1, 2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, 1, 1),
        nn.ReLU(),
        nn.Conv2d(384, 256, 3, 1, 1),
        nn.ReLU(),
        nn.Conv2d(256, 256, 3, 1, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(256 * 7 * 7, 512),
        nn.ReLU(),
        nn.Linear(512, 100),
    )


def _vgg() -> nn.Module:
    layers: list[nn.Module] = []
    width = 3
    for outputs in (32, 64, 128):
        for _ in range(2):
            layers += [nn.Conv2d(width, outputs, 3, 1, 1), nn.ReLU()]
            width = outputs
        layers.append(nn.MaxPool2d(2))
    dense = [nn.Linear(128 * 8 * 8, 512), nn.ReLU(), nn.Linear(512, 100)]
    return nn.Sequential(*layers, nn.Flatten(), *dense)


def _residual() -> nn.Module:
    blocks = [_Residual(16, 16, 1), _Residual(16, 32, 2), _Residual(32, 64, 2)]
    ends = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 100)]
    return nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1), *blocks, *ends)


def _deep_q() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(4, 32, 8, 4),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, 2),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 512),
        nn.ReLU(),
        nn.Linear(512, 18),
    )


CLASSIC_NETWORKS: Mapping[str, ClassicNetwork] = {
    "seq2seq": ClassicNetwork(make=_Translator, shape=(20,), words=True),
    "memnet": ClassicNetwork(make=_MemoryNetwork, shape=(21, 8), words=True),
    "speech": ClassicNetwork(make=_Speech, shape=(40, 494)),
    "autoenc": ClassicNetwork(make=_Autoencoder, shape=(784,)),
    "residual": ClassicNetwork(make=_residual, shape=(3, 32, 32)),
    "vgg": ClassicNetwork(make=_vgg, shape=(3, 64, 64)),
    "alexnet": ClassicNetwork(make=_alexnet, shape=(3, 127, 127)),
    "deepq": ClassicNetwork(make=_deep_q, shape=(4, 84, 84)),
}
"""Networks by the names that Fathom gives its workloads."""

"""Two tasks of linear algebra, each by a library with threads of its own."""

import sys


def multiply(rounds: int) -> None:
    """Multiply matrices with NumPy, whose threads are those of OpenBLAS."""
    import numpy as np

    matrix = np.full((640, 640), 1e-3)
    for _ in range(rounds):
        matrix @ matrix


def convolve(rounds: int) -> None:
    """Apply a convolution with torch, whose threads are those of OpenMP."""
    import torch

    layer = torch.nn.Conv2d(32, 32, 3, padding=1)
    images = torch.ones(4, 32, 56, 56)
    with torch.no_grad():
        for _ in range(rounds):
            layer(images)


if __name__ == "__main__":
    tasks = {"multiply": multiply, "convolve": convolve}
    tasks[sys.argv[1]](int(sys.argv[2]))

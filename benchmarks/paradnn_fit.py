"""The times of ParaDnn's dense networks fitted again, with the errors of what was left out.

    python benchmarks/paradnn_fit.py FOLDER

FOLDER is `scripts/data` of the repository Emma926/paradnn (Apache-2.0), with what its authors
recorded: `tpu_fc.json` and `gpu_fc.json`. Networks of 4, 32 and 128 layers are fitted, those of 8,
16 and 64 left out. Each form is tried on both platforms; `kernels.paradnn-fc` has the one called
`pipe`. Nothing is written.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from reference_tables import find_table
from scipy.optimize import least_squares

from dse.core.batch import Batch
from dse_evaluators.kernels.paradnn_fc import ParadnnFc

Floats = NDArray[np.float64]

FILES = {"tpu-v2": "tpu_fc.json", "v100": "gpu_fc.json"}
FITTED_LAYERS = (4, 32, 128)
NAMES = ("layers", "nodes", "inputs", "outputs", "batch")
STARTS = ((2e-3, 1e-9, 1e-10, 2e-14, 1e-12, 1e-5), (5e-4, 1e-9, 1e-10, 2e-14, 1e-12, 1e-5))

# Of step, layers, what the host hands over, weights, multiplications and activations, in seconds.
FORMS: dict[str, Callable[..., Floats]] = {
    "sum": lambda s, ly, i, w, c, a: s + ly + i + w + c + a,
    "max": lambda s, ly, i, w, c, a: np.maximum(s + ly + w + c + a, i),
    "most": lambda s, ly, i, w, c, a: s + ly + i + np.maximum(w, c) + a,
    "smooth": lambda s, ly, i, w, c, a: ((s + ly + w + c + a) ** 4 + i**4) ** 0.25,
    "pipe": lambda s, ly, i, w, c, a: s + ly + np.maximum(i, w + c + a),
    "inner": lambda s, ly, i, w, c, a: s + np.maximum(i, ly + np.maximum(w, c + a)),
}


def recorded(path: Path) -> tuple[Floats, Floats]:
    """The sizes (n, 5) and the seconds of a step (n,) that a file tells."""
    told = json.loads(path.read_text())
    sizes = np.array([[int(x) for x in re.findall(r"_(\d+)", name)] for name in told["labels"]])
    return sizes.astype(float), sizes[:, 4] / np.array(told["example_per_sec"])


def parts(sizes: Floats) -> Floats:
    """What the six constants are multiplied by, (6, n), in the order of :data:`STARTS`."""
    layers, nodes, inputs, outputs, batch = sizes.T
    weights = nodes * nodes * (layers - 1) + nodes * (inputs + outputs)
    flops, handed = 6 * batch * weights, batch * (layers * nodes + outputs)
    return np.array([np.ones_like(batch), batch * inputs, weights, flops, handed, layers])


def seconds(form: str, logs: Floats, sizes: Floats) -> Floats:
    """What a form tells with these constants, given as their logarithms."""
    step, given, weight, flop, activation, layer = np.exp(logs)[:, None] * parts(sizes)
    return FORMS[form](step, layer, given, weight, flop, activation)


def fit(form: str, sizes: Floats, times: Floats) -> Floats:
    """The logarithms of the constants with the least (robust) error of the logarithm of times."""
    found = [
        least_squares(
            lambda logs: np.log(seconds(form, logs, sizes) / times),
            np.log(start),
            loss="soft_l1",
            f_scale=0.1,
            max_nfev=400,
        )
        for start in STARTS
    ]
    return np.asarray(min(found, key=lambda one: one.cost).x)


def errors(told: Floats, times: Floats) -> str:
    """The median and the ninetieth percentile of relative errors."""
    off = np.abs(told / times - 1)
    return f"{np.median(off):6.1%} {np.percentile(off, 90):6.1%}"


def main(folder: Path) -> None:
    """Print errors of every form, and the constants and errors of the one that is shipped."""
    for platform, name in FILES.items():
        sizes, times = recorded(find_table(folder, name))
        used = np.isin(sizes[:, 0], FITTED_LAYERS)
        print(f"{platform}: {used.sum()} fitted, {(~used).sum()} left out; median and 90 %")
        for form in FORMS:
            logs = fit(form, sizes[used], times[used])
            told = seconds(form, logs, sizes)
            print(f"  {form:8} {errors(told[used], times[used])}", end="   left out ")
            print(errors(told[~used], times[~used]), " ".join(f"{x:.4g}" for x in np.exp(logs)))
        batch = Batch.of([dict(zip(NAMES, row, strict=True)) for row in sizes.tolist()])
        shipped = ParadnnFc(platform=platform).evaluate(batch)
        told, fits = (
            shipped.columns["latency"],
            ~np.isin(np.arange(len(times)), [*shipped.failures]),
        )
        print(f"  shipped  {errors(told[used], times[used])}", end="   left out ")
        print(errors(told[~used], times[~used]), f"{(~fits).sum()} said not to fit")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

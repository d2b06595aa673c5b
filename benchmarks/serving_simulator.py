"""The error of ``clusters.serving-simulator`` in the time to a first token, as CSV; minutes.

    python benchmarks/serving_simulator.py [--data ../shared/data] [--points POINTS.csv]
    python benchmarks/serving_simulator.py --fit    # writes front_end.fits.json
    python benchmarks/serving_simulator.py --speed

Points are those of ``benchmarks/serving.py``. A fixed number of clients start at once and ask again
when they are answered, ten times each; the mean over all is compared. It is put together from the
first wave, played alone, and from the later two thirds of three: ``(first + 9 later) / 10``.
Lengths are lognormal with a deviation of 6 %, that of lengths drawn between 0.8 and 1 of the most.
vLLM reads prompts in pieces, TensorRT-LLM whole beside the texts, SGLang before them, each with a
budget of 8,192 tokens or of one text where that is longer: their defaults, recalled.

``bare`` has nothing fitted; ``fitted`` adds the constants of ``front_end.fits.json``, two in all,
fitted on Llama-3-70B on H200; ``judged`` rows have none of those points.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import serving
from reference_tables import DATA
from scipy.optimize import least_squares

from dse.core.batch import Batch
from dse_evaluators.clusters.simulator import front_end
from dse_evaluators.clusters.simulator.serving_simulator import ServingSimulator

POLICIES = {"vllm": "chunked", "trtllm": "mixed", "sglang": "prefill_first"}
BUDGET = 8192
SPREAD = 0.06
WAVES = 3
COLUMNS = ("points", "count", "what", "median", "mean", "bias", "p90")
FITS = Path(front_end.__file__).with_name("front_end.fits.json")


def main() -> None:
    """Print the errors of each set of points, or fit, or time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--points", type=Path, help="where each point goes, with what is told")
    parser.add_argument("--fit", action="store_true", help="write the constants anew")
    parser.add_argument("--speed", action="store_true", help="designs a second instead")
    options = parser.parse_args()
    if options.speed:
        print(f"designs_per_s,{speed():.0f}")
        return
    found = points(options.data)
    bare_s = told(found)
    if options.fit:
        write_fit(found, bare_s)
    fitted_s = with_front_end(found, bare_s)
    if options.points:
        write_points(options.points, found, bare_s, fitted_s)
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(summaries(found, {"bare": bare_s, "fitted": fitted_s}))


def points(folder: Path) -> list[serving.Point]:
    """The points that are not saturated."""
    return [one for one in serving.points(folder) if not one.saturated]


def fits_on(point: serving.Point) -> bool:
    """True for the points that constants are fitted on."""
    return (point.model, point.device) == ("llama3-70b", "h200-sxm")


def told(found: Sequence[serving.Point]) -> np.ndarray:
    """The mean time to a first token that the simulator tells for each point, in seconds."""
    groups = defaultdict[tuple[str, str, int, int, int], list[int]](list)
    for place, one in enumerate(found):
        groups[one.model, one.device, one.isl, one.osl, one.batch].append(place)
    seconds = np.zeros(len(found))
    for places in groups.values():
        some = [found[place] for place in places]
        first, all_waves = (_played(some, waves) for waves in (1, WAVES))
        later = (WAVES * all_waves - first) / (WAVES - 1)
        waves = front_end.HARNESS_WAVES
        seconds[places] = (first + (waves - 1) * later) / waves
    return seconds


def with_front_end(found: Sequence[serving.Point], bare_s: np.ndarray) -> np.ndarray:
    """The same with what a request spends outside of iterations."""
    return bare_s + np.array([front_end.overhead_s(one.batch) for one in found])


def errors(found: Sequence[serving.Point], told_s: np.ndarray) -> np.ndarray:
    """Relative errors of the time to a first token."""
    return told_s / np.array([one.ttft_s for one in found]) - 1.0


def summaries(
    found: Sequence[serving.Point], told_s: dict[str, np.ndarray]
) -> Iterator[dict[str, object]]:
    """The errors of each model, device and framework, of the judged points, and of all."""
    groups = defaultdict[str, list[int]](list)
    for place, one in enumerate(found):
        groups[f"{one.model} {one.device} {one.framework}"].append(place)
    groups["judged"] = [place for place, one in enumerate(found) if not fits_on(one)]
    groups["all"] = list(range(len(found)))
    for name, places in groups.items():
        for what, seconds in told_s.items():
            some = errors(found, seconds)[places]
            figures = (
                np.median(abs(some)),
                abs(some).mean(),
                np.median(some),
                np.quantile(abs(some), 0.9),
            )
            named = dict(zip(COLUMNS[3:], (f"{one:.3f}" for one in figures), strict=True))
            yield {"points": name, "count": len(places), "what": what, **named}


def write_fit(found: Sequence[serving.Point], bare_s: np.ndarray) -> None:
    """Fits the front end, with errors as ratios and few outliers, and writes the file."""
    fitted = np.array([fits_on(one) for one in found])
    clients = np.array([float(one.batch) for one in found])
    measured_s = np.array([one.ttft_s for one in found])

    def ratios(constants: np.ndarray) -> np.ndarray:
        told_s = bare_s + constants[0] + constants[1] * clients
        return np.log(np.maximum(told_s, 1e-4) / measured_s)[fitted]

    request_s, client_s = least_squares(ratios, [0.03, 5e-4], loss="soft_l1", f_scale=0.1).x
    judged = abs((bare_s + request_s + client_s * clients) / measured_s - 1.0)[~fitted]
    row = {
        "name": "front end",
        "constants": {
            "request_s": float(f"{request_s:.3g}"),
            "client_s": float(f"{client_s:.3g}"),
        },
        "fitted_on": [one.id for one in found if fits_on(one)],
        "judged_on": [one.id for one in found if not fits_on(one)],
        "attempts": 3,
        "judged_mean": round(float(judged.mean()), 4),
        "judged_max": round(float(judged.max()), 4),
        "source": "llm_serving_silicon.csv (ai-dynamo/aiconfigurator, Apache-2.0)",
        "note": (
            f"judged median {np.median(judged):.3f}; by least squares of log ratios, soft above "
            "0.1. Tried before: four waves with nothing fitted, and one constant without clients"
        ),
    }
    FITS.write_text(json.dumps([row], indent=1) + "\n", encoding="utf-8")


def speed(count: int = 1000) -> float:
    """Designs a second on one core, all of them different, of 200 requests each."""
    rng = np.random.default_rng(0)
    evaluator = ServingSimulator(
        model="llama3-8b", requests=200, isl=1024, osl=200, isl_spread=0.5, osl_spread=0.5
    )
    designs = [
        {
            "policy": str(rng.choice(["prefill_first", "mixed", "chunked"])),
            "tp": int(2 ** rng.integers(0, 4)),
            "max_num_seqs": int(rng.integers(8, 256)),
            "budget": int(rng.integers(8192, 16384)),
            "rate": float(rng.uniform(2, 40)),
        }
        for _ in range(count)
    ]
    started = time.process_time()
    evaluator.evaluate(Batch.of(designs))
    return count / (time.process_time() - started)


def write_points(
    path: Path, found: Sequence[serving.Point], bare_s: np.ndarray, fitted_s: np.ndarray
) -> None:
    """A table of all points."""
    rows = [
        {**asdict(one), "bare_s": f"{bare:.6g}", "fitted_s": f"{fitted:.6g}"}
        for one, bare, fitted in zip(found, bare_s, fitted_s, strict=True)
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _played(some: Sequence[serving.Point], waves: int) -> np.ndarray:
    """Points of one model, device, lengths and clients: the mean over so many waves."""
    one = some[0]
    evaluator = ServingSimulator(
        model=one.model,
        device=one.device,
        arrivals="closed",
        concurrency=one.batch,
        requests=one.batch * waves,
        isl=one.isl,
        osl=one.osl,
        isl_spread=SPREAD,
        osl_spread=SPREAD,
    )
    metrics = evaluator.evaluate(Batch.of([_design(point) for point in some]))
    if metrics.failures:
        raise SystemExit(f"{one.id}: {metrics.failures}")
    return metrics.columns["ttft"]


def _design(point: serving.Point) -> dict[str, object]:
    whole = int((1.0 + 5.0 * SPREAD) * (point.isl + point.osl))
    budget = BUDGET if POLICIES[point.framework] == "chunked" else max(BUDGET, whole)
    return {
        "policy": POLICIES[point.framework],
        "budget": budget,
        "max_num_seqs": point.batch,
        "tp": point.tp,
        "weight_format": point.format,
        "kv_format": "bf16" if point.format == "bf16" else "fp8",
    }


if __name__ == "__main__":
    main()

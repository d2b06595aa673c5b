"""A process that judges files: for each path on its input, one line of JSON on what came of it.

It is run as a script, so that a file that takes for ever, or all memory, hurts nobody else.
"""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

from dse.errors import DseError, SpecErrors
from dse.schema.space.space_loader import space_of
from dse.schema.study.plan import plan_of
from dse.schema.yaml.files import Files

MOST_BYTES = 2 << 30
MOST_CPU_S = 60
"""So much of the processor may one file take, on a busy machine; then the process is killed."""


def judged(path: Path) -> dict:
    """What came of the file: its mistakes, or nothing where it is legal."""
    begun = time.process_time()
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(begun) + MOST_CPU_S, hard))
    try:
        asked = "studies" in path.parts
        space = plan_of(path).problem.space if asked else space_of(path, Files())
        for design in space.sample(3, np.random.default_rng(0)):
            space.check(design)
        errors: list[DseError] = []
    except SpecErrors as several:
        errors = list(several.errors)
    except DseError as one:
        errors = [one]
    return {
        "seconds": time.process_time() - begun,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "errors": [{"where": e.where, "problem": e.problem, "hint": e.hint} for e in errors],
    }


def main() -> None:
    """Judge every path of the input."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    for line in sys.stdin:
        sys.stdout.write(json.dumps(judged(Path(json.loads(line)))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

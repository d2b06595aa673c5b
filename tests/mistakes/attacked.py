"""A process that runs commands in folders: for each line of its input, one line of JSON.

It is run as a script, so that a command that takes for ever, or all memory, hurts nobody else.
"""

import json
import os
import resource
import sys
import time
import traceback

from typer.testing import CliRunner

from dse.cli.app import app
from dse.errors import DseError, SpecErrors

MOST_BYTES = 2 << 30
MOST_CPU_S = 60
"""So much of the processor may one command take; then the process is killed."""

SHOWN = 4_000


def run_words(folder: str, words: list[str]) -> dict:
    """Return how the command ended: its exit code, a traceback if there was one, what it said."""
    os.chdir(folder)
    begun = time.process_time()
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(begun) + MOST_CPU_S, hard))
    got = CliRunner().invoke(app, words)
    error, failure = got.exception, ""
    said, code = got.output, got.exit_code
    if isinstance(error, DseError):
        each = error.errors if isinstance(error, SpecErrors) else (error,)
        said, code = said + "\n".join(f"error: {one}" for one in each), 2
    elif error is not None and not isinstance(error, SystemExit):
        failure = "".join(traceback.format_exception(error))[-SHOWN:]
    return {
        "code": code,
        "fault": failure,
        "said": said[:SHOWN],
        "length": len(said),
        "seconds": time.process_time() - begun,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }


def main() -> None:
    """Run every command of the input."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        answers.write(json.dumps(run_words(asked["folder"], asked["words"])) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

"""A driver of a study that says aloud each result that it was told is stored.

It says first that it is ready, and begins when its input says so or ends.
"""

import json
import signal
import sys

from dse.core.trial import Trial
from dse.study.study_engine import StudyEngine


def acknowledge(trial: Trial) -> None:
    """One line for a trial, out of this process before anything else happens."""
    said = [trial.number, trial.state, dict(trial.metrics)]
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # as `dse run` does
    try:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        StudyEngine.open(sys.argv[1], storage=sys.argv[2]).run(on_finished=acknowledge)
    except KeyboardInterrupt:
        sys.exit(3)

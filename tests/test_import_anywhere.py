"""Imports on systems without the modules of Unix, and before a library is needed."""

import subprocess
import sys

import pytest

PROGRAM = """
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

for name in {absent!r}:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Absent())
for name in {wanted!r}:
    importlib.import_module(name)
print("psutil" in sys.modules)
"""
UNIX = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
WANTED = (
    "dse",
    "dse.__main__",
    "dse.cli.app",
    "dse.evaluation.machine_lock",
    "dse.executors.processes",
    "dse.executors.serial",
    "dse.optimizers.exact.worker_pool",
    "dse.serve.connection_limits",
    "dse.storage.sql.database_storage",
    "dse.study.study_engine",
    "dse.system.process_guard",
    "dse_evaluators.generic.command",
    "dse_evaluators.outside.worker",
)


@pytest.mark.slow
def test_nothing_of_unix_and_no_psutil_is_imported_before_it_is_needed():
    program = PROGRAM.format(absent=UNIX, wanted=WANTED)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("False\n", "")

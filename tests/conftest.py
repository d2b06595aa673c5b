"""What all tests share: Hypothesis profiles, by which CI sees the same examples; one Ray; a browser."""

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import typer.testing
from hypothesis import settings

from dse.executors.ray.session import STORE_BYTES, RaySession, import_ray

EXAMPLES = 30
"""Of each law, unless its test says otherwise: hundreds of laws share the minutes of `make test`."""

settings.register_profile("ci", derandomize=True, deadline=None, max_examples=EXAMPLES)
settings.register_profile("dev", deadline=None, max_examples=EXAMPLES)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

SOON_MISSED = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 2,
}
"""A killed node is known to be dead after seconds and not after half a minute."""


signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""``nohup`` has all programs that tests start ignore it, and some tests send it."""

typer.testing._get_command = cache(typer.testing._get_command)
"""``CliRunner`` builds all 51 subcommands anew for each call, which takes ten times the call."""

LONGEST = "tests/system/test_readme.py"
"""The commands of a section in a row, in one test: some take a minute."""

SERVERS = ("chromium", "ray_nodes")
"""Fixtures that take the processor's time from when they are wanted to the end."""


def _place(item: pytest.Function) -> int:
    last = "[ray" in item.nodeid  # an executor's contract asks for its cluster late
    wanted = [place for place, name in enumerate(SERVERS, 1) if last or name in item.fixturenames]
    return max(wanted, default=0) - item.nodeid.startswith(LONGEST)


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """The longest goes first, so that no worker waits for it; what needs a server goes last."""
    items.sort(key=_place)


def pytest_configure() -> None:
    """Hear Ctrl-C, which tests send: a shell makes what runs in its background deaf to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = tempfile.mkdtemp(prefix="dse-trials-")  # and not in the home of whoever tests
    os.environ["DSE_TRIAL_ROOT"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def pytest_collection_finish() -> None:
    """Leave what collecting has made to itself: else it is searched for garbage again and again."""
    gc.collect()
    gc.freeze()


CHROMIUM_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-unsafe-swiftshader",  # WebGL without a graphics card
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Chromium without a window, with its console and its network told; one for all tests."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("Chromium and its driver are not installed")
    from selenium import webdriver  # late, for a test of the core needs no browser
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*CHROMIUM_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    yield made
    made.quit()


@pytest.fixture(scope="session")
def ray_nodes() -> Iterator[Any]:
    """A Ray cluster of one node that this process has joined; tests may add nodes to it."""
    import_ray()  # which settles how Ray behaves
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    cluster.add_node(
        num_cpus=2,
        object_store_memory=STORE_BYTES,
        include_dashboard=False,
        include_log_monitor=False,  # which looks for new lines of logs all the time
        _system_config=SOON_MISSED,
    )
    joined = RaySession(cluster.address, cpus=2)
    yield cluster
    joined.close()
    cluster.shutdown()

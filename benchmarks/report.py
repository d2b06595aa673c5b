"""A report of many trials: how large it is, how long it takes to make, and to open in a browser.

    python benchmarks/report.py [--trials 100000] [--objectives 3 | --flat] [--folder FOLDER]

A study of so many random systolic arrays is run (in a folder of its own, or in one that is kept),
its report is written by `dse report` and opened in Chromium without a window, three times; the
median is told, from the address to the first figure. With ``--flat`` no design is better than any
other, so that all are on the front. Needs Chromium and its driver.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

ROOT = Path(__file__).parents[1]
OBJECTIVES = (
    "minimize: chip.energy",
    "minimize: chip.latency",
    "minimize: chip.area",
    "maximize: chip.utilization",
    "minimize: chip.dram_traffic",
)
STUDY = """\
study: many
question: How long does the report of {trials} trials take?
space: {root}/spaces/accelerators/systolic.yaml
evaluators:
  chip: {{use: accelerators.systolic, workload: digits-cnn}}
objectives:
{objectives}
optimizer: random
budget: {{trials: {trials}}}
seed: 1
"""
FLAT = """\
study: many
question: How long does the report of {trials} trials take that are all on the front?
space: flat_space.yaml
evaluators:
  of:
    use: expression
    metrics:
      first: {{formula: x + y / 1000}}
      second: {{formula: 2 - x - y / 1000}}
      third: {{formula: z}}
objectives: [minimize: of.first, minimize: of.second, minimize: of.third]
optimizer: random
budget: {{trials: {trials}}}
seed: 1
"""
FLAT_SPACE = """\
# No design of it is better than another.
space: flat
parameters:
  x: {real: [0, 1]}
  y: {real: [0, 1]}
  z: {real: [0, 1]}
"""
FIRST_DRAWN = "return document.querySelectorAll('.js-plotly-plot .main-svg').length > 0"


def main() -> None:
    """Print the size and the seconds as CSV."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--objectives", type=int, default=3, choices=range(1, 1 + len(OBJECTIVES)))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--flat", action="store_true", help="all designs are on the front")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as own:
        folder = asked.folder or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        lines = "\n".join(f"  - {one}" for one in OBJECTIVES[: asked.objectives])
        (folder / "flat_space.yaml").write_text(FLAT_SPACE, encoding="utf-8")
        text = FLAT if asked.flat else STUDY
        text = text.format(trials=asked.trials, root=ROOT, objectives=lines)
        (folder / "many.yaml").write_text(text, encoding="utf-8")
        write = csv.writer(sys.stdout, lineterminator="\n").writerow
        write(["what", "amount", "unit"])
        write(["load before", f"{os.getloadavg()[0]:.1f}", ""])
        write(["run", f"{took_s(['run', 'many.yaml', '--quiet'], folder):.1f}", "s"])
        write(["make", f"{took_s(['report', 'many'], folder):.1f}", "s"])
        page = folder / "many.html"
        write(["size", f"{page.stat().st_size / 1e6:.1f}", "MB"])
        write(["open", f"{opened_s(page):.2f}", "s"])
        write(["load after", f"{os.getloadavg()[0]:.1f}", ""])


def took_s(words: list[str], folder: Path) -> float:
    """How long a command of ours took."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "dse", *words, "--storage", "sqlite:///many.db"]
    subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
    return time.perf_counter() - started


def opened_s(page: Path) -> float:
    """From the address to the first figure, the median of three times."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"):
        options.add_argument(flag)
    service = Service(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        driver.set_window_size(1400, 1000)
        return statistics.median(_opened_once_s(driver, page) for _ in range(3))
    finally:
        driver.quit()


def _opened_once_s(driver: webdriver.Chrome, page: Path) -> float:
    driver.get("about:blank")
    started = time.perf_counter()
    driver.get(page.resolve().as_uri())
    drawing = "document.querySelector('.figures').scrollIntoView()"
    driver.execute_script(drawing)
    wait = WebDriverWait(driver, 60, poll_frequency=0.02)
    wait.until(lambda one: one.execute_script(FIRST_DRAWN))
    return time.perf_counter() - started


if __name__ == "__main__":
    main()

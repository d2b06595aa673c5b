"""What benchmarks do without the tables that the repository does not carry."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "name", "source"),
    [
        (["collectives.py", "--data"], "collective_measured_vidur.csv", "microsoft/vidur"),
        (["gemm_roofline.py", "--data"], "gemm_kernels_measured_vidur.csv", "microsoft/vidur"),
        (["weight_only.py", "--data"], "gemm_weight_only_measured.csv", "aiconfigurator"),
        (["serving.py", "--data"], "llm_serving_silicon.csv", "aiconfigurator"),
        (["paradnn_fit.py"], "tpu_fc.json", "Emma926/paradnn"),
        (["optimizers", "--data"], "openbench.py", "tests/data/README.md"),
    ],
)
def test_a_benchmark_without_its_table_names_it_and_its_source(tmp_path, words, name, source):
    command = [sys.executable, str(BENCHMARKS / words[0]), *words[1:], str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: there is no {tmp_path / name}, ")
    assert source in line

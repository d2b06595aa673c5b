"""Energy of a multiply-accumulate by format and node.

    python benchmarks/mac_table.py [TABLE.csv]

Prints Markdown: the energies, and how far the model is off from each multiply and add of a table
that it was not given, and from its SRAMs. ``TABLE.csv``, by default that of ``tests/data``, has the
columns ``operation bits node_nm energy_pJ``.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from dse_evaluators.accelerators.circuits import logic_energy_factor, mac_energy_j, sram
from dse_evaluators.accelerators.technology import (
    FP32_ADD,
    INT32_ADD,
    OPERATIONS,
    SRAM_READ_J,
)
from dse_evaluators.formats.words import FORMATS
from dse_evaluators.hardware.macs import WORDS, mac_of
from dse_evaluators.hardware.nodes import node_of

TABLE = Path(__file__).resolve().parents[1] / "tests" / "data" / "energy_tables.csv"
SHOWN = [
    *("int2", "int4", "int8", "mxint8", "int16", "fp4_e2m1", "mxfp4", "nvfp4", "fp6_e2m3"),
    *("mxfp6_e2m3", "fp8_e5m2", "fp8_e4m3", "mxfp8_e4m3", "bf16", "fp16", "fp32"),
]
NODES = (90.0, 45.0, 22.0, 16.0, 7.0, 5.0)
SIZES = {"8 KB": 8.0, "32 KB": 32.0, "1 MB": 1024.0}


def main() -> None:
    """Print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", nargs="?", type=Path, default=TABLE)
    print(f"| format | {' | '.join(f'{nm:g} nm' for nm in NODES)} |")
    print(f"|---|{'---|' * len(NODES)}")
    for name in SHOWN:
        mac = mac_of(WORDS[name], WORDS[name])
        at_45 = (mac.multiply_j + mac.add_j + mac.scale_j) * 1e12
        cells = (f"{at_45 * node_of(nm).logic_energy:.3f}" for nm in NODES)
        print(f"| `{name}` | {' | '.join(cells)} |")
    _errors(parser.parse_args().table)


def _errors(table: Path) -> None:
    print("\n| printed | pJ | here | off |\n|---|---|---|---|")
    for row in _rows(table):
        printed, ours = float(row["energy_pJ"]), _ours(row)
        if ours is not None:
            told = f"{row['operation']} {row['bits']} bit, {row['node_nm']} nm"
            print(f"| {told} | {printed:g} | {ours:.3g} | {ours / printed - 1:+.0%} |")


def _rows(table: Path) -> list[dict[str, str]]:
    with table.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _ours(row: dict[str, str]) -> float | None:
    """The model's picojoules; ``None`` where the row is one of its own or of another kind."""
    what, bits = row["operation"], row["bits"]
    if what.startswith("SRAM"):
        size = next(kib for text, kib in SIZES.items() if text in what)
        joules = sram(SRAM_READ_J, np.array([size * 1024]), np.array([64.0]), 45.0).item()
        return joules * 1e12 * int(bits) / 64 * node_of(float(row["node_nm"])).read_energy
    if row["node_nm"] != "7" or what.split()[-1] not in ("mult", "add"):
        return None
    return _at_7_nm(what, int(bits))


def _at_7_nm(what: str, bits: int) -> float | None:
    kind, operation = what.split()
    factor = logic_energy_factor(7.0)
    if kind == "bf16" and operation == "mult":
        return (mac_energy_j(FORMATS["bf16"], FORMATS["bf16"]) - FP32_ADD.energy_j) * factor * 1e12
    given = {
        ("int", 8, "mult"): OPERATIONS[0],
        ("int", 32, "mult"): OPERATIONS[1],
        ("fp16", 16, "mult"): OPERATIONS[2],
        ("fp32", 32, "mult"): OPERATIONS[3],
        ("int", 32, "add"): INT32_ADD,
        ("fp32", 32, "add"): FP32_ADD,
    }.get((kind, bits, operation))
    return None if given is None else given.energy_j * factor * 1e12


if __name__ == "__main__":
    main()

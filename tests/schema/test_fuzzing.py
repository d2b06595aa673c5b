"""Mutations of every shipped YAML: each is legal, or answered with clear mistakes, soon."""

import copy
import json
import re
import select
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("judged_files.py")
PATIENCE = 600
"""Seconds to wait for an answer, on a busy machine; the worker ends itself after 60 CPU-seconds."""

SEED, FILES_OF_PROOF = 20261123, 10_000
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
Spot = tuple[Any, Any]

RICH = """
space: rich
description: Every kind of entry.
arguments: {gpus: 8, limit: 64 KiB, word: int8, staged: true}
data:
  devices: {a: {memory: 80 GiB, kind: gpu}, b: {memory: 16 GiB, kind: npu}}
  layers: [{params: 10, flops: 3}, {params: 20, flops: 4}, {params: 5, flops: 1}]
  costs: costs.csv
include:
  chip: {file: part.yaml, with: {n: 4}, fix: {rows: 8}, narrow: {cols: [4, 8]}, rename: {rows: r}}
  other: {file: part.yaml, narrow: {clock: {real: [400 MHz, 500 MHz]}}}
parameters:
  tp: {ordinal: divisors(gpus)}
  device: {choice: [a, b]}
  bits: {each: layers, ordinal: [2, 4, 8], when: staged and must}
  order: {permutation: [n, m, k]}
  kept: {subset: [x, y, z], size: [1, 2]}
  stages: {partition: 6, parts: [1, 3]}
  mix: {simplex: [cpu, gpu], step: 0.25}
  share: {simplex: 3}
  must: {boolean: true}
  size: {integer: [0 KiB, 64 KiB], step: 16 KiB}
  scale: {real: [1 ms, 1 s], scale: log, when: device == 'a'}
  width: {ordinal: "multiples(8, 8 .. 64)", scale: log}
constraints:
  - sum(bits * layers.params) <= 200
  - count(kept) == 1 -> stages.parts >= 2
  - size <= devices[device].memory and size <= limit
  - costs[device].price <= 4 $
  - kept[x] or order[0] == 'n'
  - mix[cpu] >= 0.25
  - chip.r * other.cols <= 512
  - share[0] <= 0.9
tables:
  - {allow: [tp, device], rows: [[1, a], [2, b], [4, a]]}
  - {forbid: [width, stages.parts], rows: [[8, 1]]}
"""
PART = """
space: part
arguments: {n: 2}
parameters:
  rows: {ordinal: pow2(4 .. 64)}
  cols: {integer: [1, 16]}
  clock: {real: [200 MHz, 1.6 GHz], scale: log}
constraints: [rows * n >= cols]
"""
EXTENSION = """
space: more
extends: rich.yaml
drop: [kept, "count(kept) == 1 -> stages.parts >= 2", "kept[x] or order[0] == 'n'"]
parameters:
  tp: {ordinal: [1, 2]}
"""
TABLE = "space: table\ntable: rows.csv\nconstraints: [a <= 2]\n"
STUDY = """
study: everything
space: ../spaces/part.yaml
evaluators:
  m: {use: expression, metrics: {time: {formula: 1 / clock, unit: s}, area: {formula: rows * cols * 1 mm2, unit: mm2}}}
objectives: [minimize: m.time, minimize: m.area]
constraints: [m.area <= 900 mm2]
reference: {m.time: 1 s, m.area: 1 cm2}
baselines: [{rows: 4, cols: 1, clock: 1 GHz}]
optimizer: {use: nsga2}
budget: {trials: 20, time: 3 min}
seed: 3
"""
OTHERS = {
    "spaces/rich.yaml": RICH,
    "spaces/part.yaml": PART,
    "spaces/extension.yaml": EXTENSION,
    "spaces/table.yaml": TABLE,
    "spaces/costs.csv": "device,price [$]\na,2\nb,3\n",
    "spaces/rows.csv": "a,b,c\n1,x,\n2,y,3\n3,y,4\n",
    "studies/everything.yaml": STUDY,
}

READERS = {
    "spaces/part.yaml": ["spaces/rich.yaml", "studies/everything.yaml"],
    "spaces/rich.yaml": ["spaces/extension.yaml"],
    "spaces/costs.csv": ["spaces/rich.yaml"],
    "spaces/rows.csv": ["spaces/table.yaml"],
    "spaces/compression/post_training.yaml": ["spaces/edge_codesign.yaml"],
    "spaces/accelerators/systolic.yaml": ["studies/systolic_exact.yaml"],
}
"""Which files read a file."""

NASTY: list[Any] = [
    None, True, -1, 0, 1.5, 10**17, 10**30, 1e308, 5e-324, "", " ", "~", "ü", "\uff11\uff12", "\u202e", "a" * 5000,
    "9**9**9", "9 ** 9 ** 9 <= 1", "1 / 0 == 1", "0 % 0", "-", "..", ".", "[", "x[", "x[-1]", "x]", "''",
    "and", "true", "null", "nan", "inf", "1e999", "64 KiB", "1 Kib", "3 s", "KiB^99", "1" * 300, "0x10",
    "a + " * 900 + "a", "(" * 200, "not " * 500 + "true", "-" * 3000 + "1", "x.y.z", "library:", "library:x",
    ".", "..", "/", "/dev/zero", "a\0b", "divisors(0)", "divisors(10**17)", "divisors(divisors(1))",
    "pow2(1 .. 1e300)", "range(0 .. 1, 1e-9)", "range(1 .. 0)", "multiples(1e-300, 0 .. 1e300)",
    "range(0 .. 1e9, 1)", "pow2(0 .. 8)", "part.yaml", "rich.yaml", "rows.csv", [], {}, [None], [[]], {"a": 1},
    [1, "a"], ["1 s", "2 B"], [1, 2, 1], [0, 10**9], [1e308, -1e308], {"file": "part.yaml"}, ["x"] * 3000,
    {"each": 5000, "ordinal": "range(1 .. 100000)"}, {"permutation": 12}, {"subset": 100, "size": 50},
    {"partition": 50, "parts": [1, 5]}, {"simplex": 8, "step": 0.05}, {"each": 3, "permutation": 3},
    {"integer": [0, 99999]}, {"ordinal": list(range(20000))}, {"allow": ["a"], "rows": [[1]]},
]  # fmt: skip
KEYS = re.findall(
    r"\w+",
    "space description extends drop arguments data include parameters table constraints tables file with fix "
    "narrow rename real integer ordinal choice boolean each permutation subset size partition parts simplex step "
    "scale unit when allow forbid rows study question evaluators objectives reference baselines optimizer "
    "executor storage budget seed use bind minimize maximize time trials measurements metrics formula",
)


def deep(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


# -- mutations of the tree ------------------------------------------------------------------------


def pick(rng: Random, values: Sequence[Any]) -> Any:
    """Return one of the values, a copy of it where it could be changed."""
    found = values[rng.randrange(len(values))]
    return found if isinstance(found, tuple) else copy.deepcopy(found)


def make_text(rng: Random, length: int) -> str:
    """Return letters of any alphabet, control characters among them; no surrogates."""
    ranges = [(0, 0x7F), (0x80, 0x2FF), (0x2000, 0x206F), (0xE000, 0x1FFFF)]
    return "".join(chr(rng.randint(*pick(rng, ranges))) for _ in range(rng.randint(0, length)))


def spots(value: Any) -> Iterator[Spot]:
    """Every place in a value: what holds it, and under which key."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        yield value, key
        if isinstance(inner, dict | list):
            yield from spots(inner)


def drop(rng: Random, holder: Any, key: Any, everywhere: list[Spot]) -> None:
    del holder[key]


def double(rng: Random, holder: Any, key: Any, everywhere: list[Spot]) -> None:
    if isinstance(holder, dict):
        holder[f"{key}{pick(rng, ['2', '_', '.x', '[0]', ' '])}"] = holder[key]
    else:
        holder.insert(key, holder[key])


def rename(rng: Random, holder: Any, key: Any, everywhere: list[Spot]) -> None:
    if isinstance(holder, dict):
        new = pick(rng, [pick(rng, KEYS), make_text(rng, 6), str(key)[:-1]])
        holder[new] = holder.pop(key)


def replace(rng: Random, holder: Any, key: Any, everywhere: list[Spot]) -> None:
    holder[key] = pick(rng, NASTY)


def wrap(rng: Random, holder: Any, key: Any, everywhere: list[Spot]) -> None:
    holder[key] = [holder[key]]


def deepen(rng: Random, holder: Any, key: Any, everywhere: list[Spot]) -> None:
    holder[key] = deep(pick(rng, [2, 29, 40, 300]))


def swap(rng: Random, holder: Any, key: Any, everywhere: list[Spot]) -> None:
    other, at = everywhere[rng.randrange(len(everywhere))]
    holder[key], other[at] = json.loads(json.dumps([other[at], holder[key]]))


def add(rng: Random, holder: Any, key: Any, everywhere: list[Spot]) -> None:
    if isinstance(holder, dict):
        holder[pick(rng, KEYS)] = pick(rng, NASTY)
    else:
        holder.append(pick(rng, NASTY))


def shorten(rng: Random, holder: Any, key: Any, everywhere: list[Spot]) -> None:
    if isinstance(holder[key], str):
        holder[key] = holder[key][: rng.randint(0, len(holder[key]))]


def splice(rng: Random, holder: Any, key: Any, everywhere: list[Spot]) -> None:
    """Put a piece of one formula into another."""
    if isinstance(holder[key], str):
        texts = [o[k] for o, k in everywhere if isinstance(o[k], str)]
        piece = pick(rng, [*texts, *(n for n in NASTY if isinstance(n, str))])
        at = rng.randint(0, len(holder[key]))
        holder[key] = holder[key][:at] + piece + holder[key][at:]


CHANGES = [drop, double, rename, replace, wrap, deepen, swap, add, shorten, splice]
"""What can be done to one place of a tree."""


# -- mutations of the text ------------------------------------------------------------------------

BOMB = "b: &b [x, x]\nc: &c [*b, *b, *b]\nd: &d [*c, *c, *c]\ne: [*d, *d, *d]\n"
INSERTS = ["\t", "\0", "\u2028", "\ufeff", "&a ", "*a", "!!python/object:os.system ", "<<: *a\n", "---\n",
           "...\n", "%YAML 9\n", "? ", ": ", "- ", "#", "'", '"', "{", "[" * 50, "{a: " * 200, "| \n", "\r", BOMB,
           '"\\ud800"', "é" * 3, "\x85", "9" * 5000, "🦆", "x: " * 50]  # fmt: skip
EDITS = ["cut", "without", "with", "twice", "moved"]
"""What can be done to a text: a piece is taken out, put in, or repeated."""


def edit(rng: Random, kind: str, text: str) -> str:
    """Return the text with a piece taken out, put in, or repeated."""
    at, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
    if kind == "cut":
        return text[:at]
    if kind == "without":
        return text[:at] + text[min(at + 40, end) :]
    if kind == "with":
        return text[:at] + pick(rng, [pick(rng, INSERTS), make_text(rng, 20)]) + text[at:]
    if kind == "twice":
        return text[:end] + text[at:]
    lines = text.splitlines(keepends=True)
    lines.insert(rng.randint(0, len(lines)), pick(rng, lines or [""]))
    return "".join(lines)


@dataclass(frozen=True)
class Mutation:
    """A shipped file, what has become of its text, and the file to read: it, or one that does."""

    name: str
    text: str
    asked: str
    kinds: tuple[str, ...]


def mutate(rng: Random, name: str, text: str) -> Mutation:
    """Return a mutation of a file: changes of its tree, of its text, or of both."""
    if name.endswith(".csv"):
        kind = pick(rng, EDITS)
        return Mutation(name, edit(rng, kind, text), READERS[name][0], (kind,))
    readers = [reader for reader in READERS.get(name, ()) if rng.random() < 0.5]
    value, kinds = yaml.load(text, Loader=LOADER), []
    for _ in range(rng.randint(0, 3)):
        if everywhere := list(spots(value)):
            change = CHANGES[rng.randrange(len(CHANGES))]
            change(rng, *everywhere[rng.randrange(len(everywhere))], everywhere)
            kinds.append(change.__name__)
    if kinds:
        text = yaml.dump(value, Dumper=DUMPER, allow_unicode=True, sort_keys=False, width=1000)
    if not kinds or rng.random() < 0.5:
        kinds.append(kind := pick(rng, EDITS))
        text = edit(rng, kind, text)
    return Mutation(name, text, (readers or [name])[0], tuple(kinds))


def shipped() -> list[tuple[str, str]]:
    """Every YAML of the library, and a few that have what those lack."""
    paths = sorted(p for room in ("spaces", "studies") for p in (ROOT / room).rglob("*.yaml"))
    return [*((str(path.relative_to(ROOT)), path.read_text()) for path in paths), *OTHERS.items()]


# -- the judge ------------------------------------------------------------------------------------


class Judge:
    """Judges files in another process, which is started again when it ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[str] | None = None

    def judge(self, name: str, text: str, asked: str) -> dict[str, Any]:
        """What comes of reading one file, with the text in the place of the file of this name."""
        path = self.folder / name
        before = path.read_bytes()
        try:
            path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
            return self._asked(self.folder / asked)
        finally:
            path.write_bytes(before)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _asked(self, path: Path) -> dict[str, Any]:
        if self._process is None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(str(path)) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline() if ready else ""
        if line:
            return dict(json.loads(line))
        if not ready:
            self._process.kill()
        _, told = self._process.communicate()
        self._process = None
        pytest.fail(f"the judge gave no answer\n{told[-3000:]}" if ready else "no answer in time")

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error::RuntimeWarning", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=ROOT,
        )
        self._asked(self.folder / "studies/quickstart.yaml")  # what is imported once is no file's


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    folder = tmp_path_factory.mktemp("library")
    for room in ("spaces", "studies"):
        shutil.copytree(ROOT / room, folder / room)
    for name, text in OTHERS.items():
        (folder / name).write_text(text)
    one = Judge(folder)
    yield one
    one.close()


@pytest.fixture
def deep_stack() -> Iterator[None]:
    """Let PyYAML write trees of some hundred levels."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    yield
    sys.setrecursionlimit(before)


LEAKS = re.compile(
    r"pydantic|Input should|Traceback|NoneType|ndarray|instance of|validation error|\bSpec\b"
)


def check_verdict(verdict: dict[str, Any]) -> None:
    """Legal, or mistakes with a place and plain words."""
    for error in verdict["errors"]:
        assert error["where"], error
        assert error["problem"].strip(), error
        assert len(error["problem"]) + len(error["hint"]) < 20_000
        assert not LEAKS.search(error["problem"] + error["hint"]), error


FILES = shipped()
SOME = [*(name for name in OTHERS if name.endswith(".yaml")), *(name for name, _ in FILES[:300:25])]
"""Files by which the judge is judged: ``tests/test_library`` reads all that are shipped."""


@pytest.mark.parametrize("name", SOME)
def test_an_unchanged_file_is_legal(judge, name):
    verdict = judge.judge(name, dict(FILES)[name], name)
    assert not verdict["errors"]
    check_verdict(verdict)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False), place=st.integers(0, len(FILES) - 1))
def test_a_mutated_file_is_legal_or_clearly_answered(judge, rng, place):
    mutation = mutate(rng, *FILES[place])
    check_verdict(judge.judge(mutation.name, mutation.text, mutation.asked))


@pytest.mark.proof
def test_ten_thousand_mutated_files_are_legal_or_clearly_answered(judge, capsys, deep_stack):
    """Every file in turn, from a stated seed; the figures of the run are printed."""
    rng, kinds, failures = Random(SEED), Counter[str](), []
    refused, largest_mib, longest = 0, 0, (0.0, "")
    for place in range(FILES_OF_PROOF):
        mutation = mutate(rng, *FILES[place % len(FILES)])
        kinds.update(mutation.kinds)
        try:
            verdict = judge.judge(mutation.name, mutation.text, mutation.asked)
            check_verdict(verdict)
        except (AssertionError, pytest.fail.Exception) as error:
            failures.append(f"{place}: {mutation.name} {mutation.kinds}: {str(error)[-2000:]}")
            continue
        refused += bool(verdict["errors"])
        longest = max(longest, (verdict["seconds"], f"{place}: {mutation.name}"))
        largest_mib = max(largest_mib, verdict["peak_mib"])
    with capsys.disabled():
        sys.stdout.write(
            f"\n{FILES_OF_PROOF} mutations of {len(FILES)} files of seed {SEED}: {refused} refused, "
            f"{FILES_OF_PROOF - refused - len(failures)} accepted, {len(failures)} failures; longest "
            f"{longest[0]:.2f} CPU-s ({longest[1]}), largest {largest_mib} MiB; {dict(kinds)}\n"
        )
    assert not failures, "\n".join(failures)
    assert kinds.keys() == {*EDITS, *(change.__name__ for change in CHANGES)}

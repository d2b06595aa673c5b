"""Files and words that were made to break the program: each is answered soon, in plain words.

None may raise, hang, take two gigabytes or send control characters to the terminal. The cheap ones
run every day, all of them in `make proof`.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).with_name("attacked.py")
PATIENCE_S = 120
"""Seconds to wait for an answer, on a busy machine; nothing takes ten of the processor's."""

HUNDRED_THOUSAND = 100_000
ESC = "\x1b[2J\x1b]0;gone\x07"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

PLAIN = "space: s\nparameters:\n  a: {integer: [1, 8]}\n  b: {integer: [1, 8]}\n"
CHECK = ("check", "x.yaml")
COUNT = ("space", "count", "x.yaml")
Content = str | bytes | Callable[[Path], None]
Attack = tuple[Mapping[str, Content], tuple[str, ...]]


def space(parameters: str = "", rules: str = "", more: str = "") -> str:
    """Return a space with these lines besides those of a plain one."""
    listed = f"constraints:\n{rules}" if rules else ""
    return PLAIN + parameters + listed + more


def rule(text: str) -> Attack:
    return {"x.yaml": space(rules=f"  - {text}\n")}, CHECK


def domain(text: str, *, words: tuple[str, ...] = CHECK) -> Attack:
    return {"x.yaml": space(f"  c: {text}\n")}, words


def text(content: str | bytes) -> Attack:
    return {"x.yaml": content}, CHECK


def included(name: str, **files: Content) -> Attack:
    named = {key.replace("__", "."): one for key, one in files.items()}
    return {"x.yaml": space(more=f"include:\n  i: {json.dumps(name)}\n"), **named}, CHECK


def tabled(content: Content, name: str = "t.csv") -> Attack:
    return {"x.yaml": f"space: s\ntable: {name}\n", name: content}, CHECK


def study(lines: str = "", formula: str = "a * 1 s", unit: str = "s", more: str = "") -> Attack:
    return {
        "y.yaml": PLAIN,
        "x.yaml": (
            "study: s\nspace: y.yaml\nevaluators:\n  m: {use: expression, metrics: {time: "
            f"{{formula: {json.dumps(formula)}, unit: {json.dumps(unit)}}}}}}}\n{more}"
            f"objectives: [{{minimize: m.time}}]\nunread: [b]\n{lines}"
        ),
    }, CHECK


def measured(file: str, content: Content) -> Attack:
    lines = f"  t: {{use: table, file: {file}, metrics: {{power: W}}}}\n"
    files, words = study(more=lines)
    return {**files, file: content}, words


def imported(content: Content, *words: str, name: str = "x.jsonl") -> Attack:
    return {name: content}, words or ("studies", "import", name)


def typed(*words: str) -> Attack:
    return {"x.yaml": PLAIN, **study()[0], "s.yaml": PLAIN}, words


def chain(count: int, key: str) -> dict[str, Content]:
    """Return files of which each names the next."""
    last = {f"f{count}.yaml": PLAIN.replace("space: s", "space: last")}
    step = {"include": "include:\n  i: f{n}.yaml\n", "extends": "extends: f{n}.yaml\n"}[key]
    files = {
        f"f{place}.yaml": f"space: s{place}\n" + step.format(n=place + 1) for place in range(count)
    }
    return {**files, **last}


def doubled(count: int) -> dict[str, Content]:
    """Return files of which each includes the next one twice: 2 ** count of the last."""
    files: dict[str, Content] = {
        f"f{n}.yaml": f"space: s{n}\ninclude:\n  l: f{n + 1}.yaml\n  r: f{n + 1}.yaml\n"
        for n in range(count)
    }
    return {**files, f"f{count}.yaml": PLAIN}


def laughs(count: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, count)]
    return "\n".join(lines) + "\n"


def pigeons(birds: int, holes: int) -> str:
    return space(f"  c: {{each: {birds}, integer: [1, {holes}]}}\n", "  - all_different(c)\n")


def clauses(count: int) -> str:
    """Return a hard question of satisfiability: 3 literals in each of many clauses."""
    import random

    dice = random.Random(7)
    names = [f"v{n}" for n in range(60)]
    made = [
        " or ".join(dice.choice(("", "not ")) + one for one in dice.sample(names, 3))
        for _ in range(count)
    ]
    listed = "".join(f"  {name}: {{boolean: true}}\n" for name in names)
    return space(listed, "".join(f"  - {one}\n" for one in made))


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_loop(path: Path) -> None:
    path.symlink_to(path.name)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's path is short
        one.bind(path.name)
        os.chdir(here)


def make_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def make_bomb(path: Path) -> None:
    """Write a table that unpacks to two gigabytes of zeros."""
    with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1) as packed:
        packed.write(b"a,power\n1,")
        for _ in range(2_000):
            packed.write(b"0" * (1 << 20))


def lines_of(count: int, line: str) -> str:
    return "".join(line.format(n=n) for n in range(count))


N = HUNDRED_THOUSAND
ATTACKS: dict[str, Attack] = {
    # -- YAML
    "billion laughs": text(laughs(30)),
    "an alias of itself": text("a: &a [*a]\n"),
    "merge keys": text("a: &a {b: 1}\nc: {<<: *a}\n"),
    "a tag of Python": text("space: !!python/object/apply:os.system ['echo gone']\n"),
    "a binary tag": text("space: !!binary aGVsbG8=\n"),
    "a tag of a set": text("space: s\nparameters: !!set {a, b}\n"),
    "ten megabytes in one scalar": text("space: " + "a" * 10_000_000),
    "a megabyte in one key": text("a" * 1_000_000 + ": 1\n"),
    "a hundred thousand brackets": text("space: " + "[" * N),
    "a hundred thousand brackets that close": text("space: " + "[" * N + "]" * N),
    "a hundred thousand braces": text("space: " + "{a: " * N),
    "ten thousand dashes": text("space:\n" + "- " * 10_000 + "a\n"),
    "five hundred indentations": text("".join(" " * n + f"a{n}:\n" for n in range(500))),
    "NUL bytes": text("space: s\0\nparameters:\n  a\0: {integer: [1, 2]}\n"),
    "NUL bytes alone": text(b"\0" * 100_000),
    "UTF-16": text(PLAIN.encode("utf-16")),
    "UTF-32": text(PLAIN.encode("utf-32")),
    "a byte order mark": text(b"\xef\xbb\xbf" + PLAIN.encode()),
    "two byte order marks": text(b"\xef\xbb\xbf" * 2 + PLAIN.encode()),
    "Latin-1": text(PLAIN.replace("a:", "ä:").encode("latin-1")),
    "random bytes": text(bytes((n * 7919) % 256 for n in range(5_000))),
    "half a surrogate pair": text('space: "\\ud800"\n'),
    "surrogates in UTF-8": text(b"space: \xed\xa0\x80\n"),
    "terminal escapes in a key": text(f'"{ESC.encode("unicode_escape").decode()}": 1\n'),
    "terminal escapes in a value": domain('{choice: ["\\e[2J\\e]0;gone\\a", b]}'),
    "terminal escapes in a rule": rule('"a == \'\\e[2J\'"'),
    "terminal escapes in a file's name": included("\x1b[2Jgone.yaml"),
    "terminal escapes in a study's name": study('question: "\\e[2J"\nseed: "\\e[2J"\n'),
    "raw escapes": text(f"space: {ESC}\n"),
    "a carriage return": text("space: good\rbad: 1\n"),
    "right to left": text('space: s\nparameters: {"\\u202ea": {integer: [1, 2]}}\n'),
    "no width": text('space: s\nparameters: {"a\\u200bb": {integer: [1, 2]}}\n'),
    "a letter of another alphabet": rule("\u0430 <= 3"),
    "combining marks": text('space: s\nparameters: {"a' + "\u0301" * 500 + '": {integer: [1, 2]}}\n'),
    "digits of full width": domain("{integer: [\uff11, \uff18]}"),
    "digits in superscript": rule("a <= \u00b2"),
    "an emoji": rule("a <= \U0001f986"),
    "line separators": text("space: s\u2028parameters: 1\x85constraints: 2\n"),
    "an empty file": text(""),
    "comments alone": text("# nothing\n" * 10_000),
    "two documents": text(PLAIN + "---\n" + PLAIN),
    "another version of YAML": text("%YAML 9.9\n---\n" + PLAIN),
    "a list as file": text("[1, 2]\n"),
    "a number as file": text("9\n"),
    "a null as key": text("space: s\n~: 1\n"),
    "a list as key": text("? [1, 2]\n: 3\n"),
    "fifty thousand keys": text("space: s\n" + lines_of(50_000, "k{n}: 1\n")),
    "a key fifty thousand times": text("space: s\n" + "k: 1\n" * 50_000),
    "tabs alone": text("\t" * 10_000),
    "a number beyond all": domain("{real: [0, 1e400]}"),
    "a million digits": domain("{integer: [0, " + "9" * 900_000 + "]}"),
    "hexadecimal": domain("{integer: [0x0, 0xffffffffffffffffff]}"),
    "base 60": domain("{integer: [1:2:3, 4:5:6]}"),
    "no number": domain("{real: [.nan, .inf]}"),
    "minus zero": domain("{real: [-0.0, 0.0], scale: log}"),
    "denormals": domain("{real: [5e-324, 1e308], scale: log}"),
    "names of ten thousand letters": text(f"space: s\nparameters:\n  {'a' * 10_000}: {{boolean: true}}\n"),
    "twenty thousand parameters": text("space: s\nparameters:\n" + lines_of(20_000, "  p{n}: {{boolean: true}}\n")),
    # -- files
    "the passwords": included("/etc/passwd"),
    "the passwords as a table": text("space: s\ntable: /etc/passwd\n"),
    "the passwords as data": text(space(more="data: {d: /etc/passwd}\n")),
    "shadow by a way around": included("../../../../../../../../etc/shadow"),
    "a way out of the library": included("library:../../../../etc/passwd"),
    "a folder": included("inner", inner=make_folder),
    "this folder": included("."),
    "the root": included("/"),
    "an endless device": included("/dev/zero"),
    "an endless table": text("space: s\ntable: /dev/zero\n"),
    "the terminal": included("/dev/tty"),
    "standard input": included("/dev/stdin"),
    "a pipe": included("p.yaml", p__yaml=make_fifo),
    "a pipe as a table": tabled(make_fifo),
    "a socket": included("s.yaml", s__yaml=make_socket),
    "a link to itself": included("l.yaml", l__yaml=make_loop),
    "a terabyte of nothing": included("n.yaml", n__yaml=make_sparse),
    "a terabyte of nothing as a table": tabled(make_sparse),
    "a process's memory": included("/proc/self/mem"),
    "a process's environment": text("space: s\ntable: /proc/self/environ\n"),
    "a web page": included("https://example.org/x.yaml"),
    "a path of ten thousand letters": included("a" * 10_000 + ".yaml"),
    "a path of ten thousand folders": included("a/" * 10_000 + "x.yaml"),
    "a path with a NUL": included("x\0.yaml"),
    "a path of blanks": included("   "),
    "a home": included("~/x.yaml"),
    "a wildcard": included("*.yaml"),
    "a file that includes itself": included("x.yaml"),
    "two files that include each other": included("b.yaml", b__yaml="space: b\ninclude: {x: x.yaml}\n"),
    "a thousand includes in a row": (chain(1_000, "include"), ("check", "f0.yaml")),
    "a file that extends itself": text("space: s\nextends: x.yaml\n"),
    "five hundred extensions in a row": (chain(500, "extends"), ("check", "f0.yaml")),
    "two to the thirtieth includes": (doubled(30), ("check", "f0.yaml")),
    # -- domains
    "a thousand million values": domain("{integer: [0, 1000000000]}"),
    "a million million values in a list": domain("{ordinal: 'range(0 .. 1e12, 1)'}"),
    "tiny steps": domain("{ordinal: 'range(0 .. 1, 1e-300)'}"),
    "powers of a tower": domain("{ordinal: 'pow2(1 .. 2**100000)'}"),
    "powers up to 1e308": domain("{ordinal: pow2(1 .. 1e308)}"),
    "tiny multiples": domain("{ordinal: 'multiples(1e-300, 1 .. 2)'}"),
    "divisors beyond counting": domain("{ordinal: divisors(10**17)}"),
    "divisors of a tower": domain("{ordinal: divisors(9**9**9)}"),
    "divisors within divisors": domain("{ordinal: " + "divisors(" * 200 + "a" + ")" * 200 + "}"),
    "a list of a thousand million": domain("{each: 1000000000, boolean: true}"),
    "a list of a tower": domain("{each: 9**9**9, boolean: true}"),
    "an order of a hundred thousand": domain("{permutation: 100000}"),
    "an order of five thousand": domain("{permutation: 5000}"),
    "subsets of two thousand": domain("{subset: 2000, size: 1000}"),
    "partitions of five thousand": domain("{partition: 5000, parts: [1, 5000]}"),
    "shares of fifty in thousandths": domain("{simplex: 50, step: 0.001}"),
    "a number of 25,000 digits": domain("{each: 5000, integer: [1, 100000]}", words=COUNT),
    "a number of 25,000 digits, described": domain(
        "{each: 5000, integer: [1, 100000]}", words=("space", "describe", "x.yaml")
    ),
    "a number of 25,000 digits as JSON": domain(
        "{each: 5000, integer: [1, 100000]}", words=(*COUNT, "--format", "json")
    ),
    "sixty thousand values in a line": domain("{ordinal: " + str(list(range(60_000))) + "}"),
    # -- rules
    "a tower": rule("9**9**9 >= a"),
    "a higher tower": rule("9**9**9**9**9 >= a"),
    "a tower of a parameter": rule("a ** a ** a ** a >= 1"),
    "beyond the largest number": rule("1e308 * 10 * a >= 1"),
    "a negative tower": rule("2 ** (-10**9) * a >= 0"),
    "a hundred thousand parentheses": rule("(" * N + "a" + ")" * N + " >= 1"),
    "three thousand parentheses": rule("(" * 1_900 + "a" + ")" * 1_900 + " >= 1"),
    "a thousand nots": rule("not " * 990 + "a >= 1"),
    "three thousand minuses": rule("-" * 3_000 + "a <= 8"),
    "nine hundred sums": rule(" + ".join(["a"] * 900) + " >= 1"),
    "nine hundred ands": rule(" and ".join(["a > 0"] * 400)),
    "a thousand arrows": rule(" -> ".join(["a > 0"] * 350)),
    "a bomb for a regular expression": rule("'" + "a" * 3_000 + "!' == a"),
    "blanks for a regular expression": rule("a" + " " * 3_900 + "\u00a0"),
    "units for a regular expression": rule("a <= 3 " + "m/" * 1_500 + "s"),
    "a unit to a power beyond": rule("a <= 3 m^999999999"),
    "a unit of a tower": rule("a <= 3 m**9**9**9"),
    "quotes that are not closed": rule("a == '" + "x" * 3_000),
    "nothing through nothing": rule("0 / 0 == a % 0"),
    "inside Python": rule("a.__class__.__mro__[1].__subclasses__() == 1"),
    "an import": rule("__import__('os').system('echo gone') == 0"),
    "a lambda": rule("(lambda: a)() >= 1"),
    "a comprehension": rule("sum([x for x in range(10**9)]) >= 1"),
    "an item far away": rule("a[10**18] >= 1"),
    "a hundred functions deep": rule("abs(" * 990 + "a" + ")" * 990 + " >= 1"),
    "a list of a thousand": rule(f"a in {list(range(700))}"),
    "ten thousand rules": text(space(rules=lines_of(10_000, "  - a >= {n} - 10000\n"))),
    "pigeons": text(pigeons(20, 19)),
    "five thousand pigeons": text(pigeons(5_000, 4_999)),
    "a hard question": text(clauses(258)),
    "a hard sum": text(space("  c: {each: 60, integer: [1, 60]}\n", "  - sum(c * c) == 7919\n  - sum(c) == 601\n")),
    "a hard product": text(space("  c: {each: 12, integer: [1, 3000]}\n", "  - product(c) == 6469693230\n")),
    "a circle of conditions": text(
        "space: s\nparameters:\n" + lines_of(300, "  p{n}: {{boolean: true, when: p{n}x}}\n").replace("x}", "}")
    ),
    "a table of a hundred thousand rows": (
        {
            "x.yaml": space(more="tables:\n  - {allow: [a, b], file: t.csv}\n"),
            "t.csv": "a,b\n" + lines_of(N, "1,{n}\n"),
        },
        CHECK,
    ),
    # -- tables
    "a cell of ten megabytes": tabled("a,b\n1," + "x" * 10_000_000 + "\n"),
    "a table in Latin-1": tabled("a,b\n1,\u00e4\n".encode("latin-1")),
    "a table in UTF-16": tabled("a,b\n1,2\n".encode("utf-16")),
    "a table with NUL bytes": tabled("a,b\n1,\0\n"),
    "ten thousand columns": tabled(",".join(f"c{n}" for n in range(10_000)) + "\n" + ",".join(["1"] * 10_000) + "\n"),
    "rows of unlike lengths": tabled("a,b\n1\n1,2,3\n,,,,\n"),
    "an empty table": tabled(""),
    "a header alone": tabled("a,b\n"),
    "a quote that no cell closes": tabled('a,b\n1,"' + "x\n" * 10_000),
    "numbers that are none": tabled("a,b\ninf,nan\n-inf,1e999\n"),
    "a column twice": tabled("a,a\n1,2\n"),
    "a table of formulas": tabled("a,b\n=cmd|'/c calc'!A1,@SUM(1)\n"),
    "a header of escapes": tabled(f"{ESC},b\n1,2\n"),
    "a header of units beyond": tabled("a [GiB^99999],b\n1,2\n"),
    "a table that is no Parquet": tabled(b"PAR1" + b"\xff" * 1_000 + b"PAR1", "t.parquet"),
    "a table that is a short Parquet": tabled(b"PAR1", "t.parquet"),
    "measured: no Parquet": measured("t.parquet", b"PAR1" + b"\0" * 50 + b"PAR1"),
    "measured: two gigabytes in a small file": measured("t.csv.gz", make_bomb),
    "measured: no gzip": measured("t.csv.gz", b"\x1f\x8b" + b"\0" * 100),
    "measured: a pipe": measured("t.csv", make_fifo),
    "measured: a folder": measured("t.csv", make_folder),
    # -- studies
    "a formula of a tower": study(formula="9**9**9 * a * 1 s"),
    "a formula of parentheses": study(formula="(" * 1_900 + "a" + ")" * 1_900),
    "a formula of a hundred thousand letters": study(formula="a + " * 25_000 + "a"),
    "a unit of a formula beyond": study(unit="s^1e9"),
    "a unit of a thousand parts": study(unit="/".join(["s"] * 1_000)),
    "five hundred worsts": study('constraints: ["' + "worst(" * 60 + "m.time" + ")" * 60 + ' <= 1 s"]\n'),
    "an infinite reference": study("reference: {m.time: 1e308 yr}\n"),
    "a budget beyond": study("budget: {measurements: 99999999999999999}\n"),
    "a budget of ages": study("budget: {time: 1e308 yr}\n"),
    "a seed beyond": study("seed: 9223372036854775808\n"),
    "a name with a way out": text("study: ../../x\nspace: y.yaml\nevaluators: {}\n"),
    "two thousand evaluators": study(more=lines_of(2_000, "  e{n}: {{use: expression, metrics: {{t: {{formula: a * 1 s, unit: s}}}}}}\n")),
    "two thousand baselines": study("baselines:\n" + "  - {a: 1, b: 1}\n" * 2_000),
    "two thousand scenarios": study("scenarios:\n" + lines_of(2_000, "  s{n}: {{weight: 1}}\n")),
    "a command with a NUL": study(more='  c: {use: command, run: ["x\\0"], metrics: {p: W}}\n'),
    "a command of a device": study(more="  c: {use: command, run: [/dev/zero], metrics: {p: W}}\n"),
    "a storage in a device": study("storage: sqlite:////dev/zero\n"),
    "the passwords as a storage": typed("status", "--storage", "sqlite:////etc/passwd"),
    "a folder as a storage": typed("status", "--storage", "sqlite:////tmp"),
    "a device as a storage": typed("status", "--storage", "sqlite:////dev/zero"),
    # -- records and JSON
    "a million brackets": imported("[" * 1_000_000),
    "a million brackets that close": imported("[" * 1_000_000 + "]" * 1_000_000),
    "a record of nothing": imported(""),
    "a record of random bytes": imported(bytes((n * 7919) % 256 for n in range(50_000))),
    "a record of one long line": imported('{"a": "' + "x" * 10_000_000 + '"}'),
    "a record of a list": imported("[]\n"),
    "a record of numbers": imported("1\n2\n3\n"),
    "a record with another hash": imported('{"dse": 1, "study": "s", "sha256": "0"}\n{}\n'),
    "a record of a device": imported("", "studies", "import", "/dev/zero"),
    "a record of a folder": imported(make_folder),
    "a record of a pipe": imported(make_fifo),
    "a record that is no Parquet": imported(b"PAR1PAR1", "studies", "import", "x.parquet", name="x.parquet"),
    "a space of a million brackets": imported("[" * 1_000_000, "space", "import", "x.json", name="x.json"),
    "a space of NaN": imported('{"hyperparameters": NaN}', "space", "import", "x.json", name="x.json"),
    "a space of a thousand million": imported(
        '{"hyperparameters": [{"name": "a", "type": "uniform_int", "lower": 0, "upper": 1000000000000}]}',
        "space", "import", "x.json", name="x.json",
    ),
    "a record of nothing to compare": imported("", "compare", "x.jsonl", "x.jsonl"),
    # -- words
    "a hundred thousand million designs": typed("space", "sample", "s.yaml", "-n", "100000000000"),
    "a number of thirty digits": typed("run", "x.yaml", "--measurements", "9" * 30),
    "a number of five thousand digits": typed("run", "x.yaml", "--measurements", "9" * 5_000),
    "a number below zero": typed("space", "sample", "s.yaml", "-n", "-100000000000"),
    "a megabyte after --set": typed("space", "count", "s.yaml", "--set", "a=" + "9" * 1_000_000),
    "escapes after --set": typed("space", "count", "s.yaml", "--set", f"{ESC}=1"),
    "a way out after --name": typed("run", "x.yaml", "--name", "../../gone"),
    "escapes after --name": typed("run", "x.yaml", "--name", ESC),
    "a long name": typed("run", "x.yaml", "--name", "n" * 10_000),
    "escapes as a study": typed("front", ESC),
    "escapes as a file": typed("check", f"{ESC}.yaml"),
    "a long storage": typed("status", "--storage", "sqlite:///" + "a" * 10_000),
    "an age after --time": typed("run", "x.yaml", "--time", "1e999 yr"),
    "workers beyond": typed("run", "x.yaml", "--workers", "9" * 30),
    "a full device": typed("report", "none", "-o", "/dev/full"),
    "a thousand names": typed("compare", *[f"n{n}" for n in range(1_000)]),
    "a bad pattern": typed("compare", "[" * 5_000, "*" * 5_000),
}  # fmt: skip


# -- the judge ----------------------------------------------------------------------------------


class Judge:
    """Runs commands in another process, which is started again when it ends."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(self, folder: Path, words: tuple[str, ...]) -> dict[str, Any]:
        """Return how a command ended in a folder."""
        if self._process is None:
            self._process = self._started()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"folder": str(folder), "words": words}) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
        line = process.stdout.readline() if ready else ""
        if line:
            return dict(json.loads(line))
        self.close()
        pytest.fail("the program ended" if ready else "no answer in time")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    one = Judge()
    yield one
    one.close()


DAILY = [name for name in [*ATTACKS][::4] if name != "a hard question"]
"""A quarter, without the one that takes the ten seconds that a check may."""


@pytest.mark.parametrize("name", DAILY)
def test_an_attack_of_every_day_is_answered_in_plain_words(judge, tmp_path, name):
    check_attack(judge, tmp_path, name)


@pytest.mark.proof
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_answered_in_plain_words(judge, tmp_path, name):
    check_attack(judge, tmp_path, name)


def check_attack(judge, tmp_path, name):
    files, words = ATTACKS[name]
    for file, content in files.items():
        if callable(content):
            content(tmp_path / file)
        else:
            (tmp_path / file).write_bytes(content.encode() if isinstance(content, str) else content)
    verdict = judge.run(tmp_path, words)
    assert verdict["fault"] == "", verdict
    assert verdict["code"] in (0, 1, 2), verdict
    assert not CONTROL.search(verdict["said"]), verdict


def test_at_least_120_attacks_are_collected():
    assert len(ATTACKS) >= 120

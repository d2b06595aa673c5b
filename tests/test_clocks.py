"""A lint over the tests: none holds a clock, a rate or a load to a bound, and none gives up early.

A busy machine may take ten times as long. A figure of a clock is compared with nothing but a bound
against hanging, of a minute or more; how fast something is, `benchmarks/` says.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[1]
LEAST_S = 60.0
"""A bound against hanging is no shorter."""

CLOCKS = re.compile(
    r"(time|os|timeit|resource|psutil)\."
    r"((time|perf_counter|monotonic|process_time|thread_time)(_ns)?|times|timeit|repeat"
    r"|default_timer|getloadavg|cpu_percent|cpu_times)"
)
FIGURES = {"ru_utime", "ru_stime", "cost_s", "elapsed", "timed"}
"""Read from a clock elsewhere; the product measures too."""

WAITS = re.compile(r"(.*\.)?(communicate|join|settimeout|wait|WebDriverWait)")
STARTS = re.compile(r"(subprocess|urllib\.request|httpx2?)\.\w+")
"""Calls that give up after a time: their ``timeout``; of the first, else the last argument."""

PASSES_ON = re.compile(
    r"sum|min|max|abs|float|int|round|sorted|list|tuple|dict|zip|map|len|.*approx|(np|math|statistics)\..*"
)
"""A figure of their arguments is one of theirs; other functions are judged by what they return."""

ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Clocks:
    """The names of a file whose values come from a clock, those of each function apart."""

    def __init__(self, tree: ast.Module, foreign: frozenset[str] = frozenset()) -> None:
        self.nodes = [*ast.walk(tree)]
        self.imported = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in self.nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        rooms = (tree, *(node for node in self.nodes if isinstance(node, ast.ClassDef)))
        tops = [one for room in rooms for one in room.body if isinstance(one, ast.FunctionDef)]
        self.scopes = {id(part): id(top) for top in tops for part in ast.walk(top)}
        pairs = [pair for node in self.nodes for pair in _bindings(node)]
        self.values = {
            self._key(target): value
            for target, value in pairs
            if isinstance(target, ast.Name | ast.arg)
        }
        self.bound = {key for target, _ in pairs for key in self._at(target)}
        self.foreign = foreign - self.imported.keys() if foreign else foreign
        self.ticking = {(0, name) for name in foreign}
        before = -1
        while before != len(self.ticking):
            before = len(self.ticking)
            self.ticking |= {
                key for at, value in pairs if self.ticks(value) for key in self._at(at)
            }
        self.exports = frozenset(name for scope, name in self.ticking if not scope) - foreign

    def _key(self, node: ast.Name | ast.arg) -> tuple[int, str]:
        return self.scopes.get(id(node), 0), node.id if isinstance(node, ast.Name) else node.arg

    def _at(self, target: ast.AST | str) -> Iterator[tuple[int, str]]:
        """All names in the target; a key, a field or a function ticks wherever it is read."""
        if not isinstance(target, ast.AST):
            yield 0, target
            return
        for part in ast.walk(target):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                yield self._key(part)
            elif isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                yield 0, part.attr

    def ticks(self, node: ast.AST) -> bool:
        """True if the expression has a figure of a clock in it."""
        if self._is_figure(node):
            return True
        if isinstance(node, ast.Call) and not PASSES_ON.fullmatch(ast.unparse(node.func)):
            return self.ticks(node.func)
        return any(map(self.ticks, ast.iter_child_nodes(node)))

    def _is_figure(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=called) if CLOCKS.fullmatch(self.dotted(called)):
                return True
            case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=name)):
                return name in FIGURES or (0, name) in self.ticking
            case ast.Name(id=name):
                key = self._key(node)
                own = key in self.bound or name in self.foreign
                return name in FIGURES or (key if own else (0, name)) in self.ticking
        return False

    def dotted(self, called: ast.AST) -> str:
        text = ast.unparse(called)
        return self.imported.get(text, text)

    def number(self, node: ast.AST | None) -> float | None:
        """What the expression stands for, as far as the file says it; of a deadline, what is added."""
        match node:
            case ast.Constant(value=int() | float() as value):
                return float(value)
            case ast.Name(id=name) if self.imported.get(name, "").startswith("dse.testing."):
                module, _, constant = self.imported[name].rpartition(".")
                return self.number(ast.Constant(getattr(import_module(module), constant)))
            case ast.Name(id=name):
                found = self.values.get(self._key(node)) or self.values.get((0, name))
                return self.number(found)
            case ast.BinOp(left=one, op=ast.Mult(), right=other):
                pair = self.number(one), self.number(other)
                return None if None in pair else pair[0] * pair[1]
            case ast.BinOp(left=clock, op=ast.Add(), right=wait) if self.ticks(clock):
                return self.number(wait)
        return None

    def findings(self) -> Iterator[tuple[int, str]]:
        """Each comparison and each wait that a busy machine may decide: its line and its text."""
        for node in self.nodes:
            match node:
                case ast.Compare() if not self._patient(node):
                    yield node.lineno, ast.unparse(node)
                case ast.keyword(arg=str() as name) if name in FIGURES:
                    if "approx" in (text := ast.unparse(node)):
                        yield node.value.lineno, text
                case ast.Call() if self._gives_up(node):
                    yield node.lineno, ast.unparse(node)

    def _patient(self, node: ast.Compare) -> bool:
        exact = not any(isinstance(order, ORDERS) for order in node.ops)
        if exact and "approx" not in ast.unparse(node):
            return True
        sides = pairwise([node.left, *node.comparators])
        return all(map(self._hangs, sides, node.ops))

    def _hangs(self, pair: tuple[ast.AST, ast.AST], order: ast.cmpop) -> bool:
        """True unless a clock is compared with less than a deadline or a limit of a minute."""
        less, more = pair if isinstance(order, ast.Lt | ast.LtE) else reversed(pair)
        ticking, limits = [*map(self.ticks, pair)], [self.number(side) or 0 for side in pair]
        if not any(ticking) or any(self.number(side) == 0 for side in pair):
            return True
        if all(ticking):
            return max(limits) >= LEAST_S
        return self.ticks(less) and (self.number(more) or 0) >= LEAST_S

    def _gives_up(self, node: ast.Call) -> bool:
        name = self.dotted(node.func)
        limits = [one.value for one in node.keywords if one.arg == "timeout"]
        if WAITS.fullmatch(name):
            limit = self.number([*node.args, *limits][-1]) if node.args or limits else None
            return limit is not None and 0 < limit < LEAST_S
        if not STARTS.fullmatch(name):
            return False
        limit = self.number(limits[0]) if limits else None
        usual = name.startswith("httpx") and name.rpartition(".")[2].islower()  # of five seconds
        return usual if limit is None else limit < LEAST_S


def _bindings(node: ast.AST) -> Iterator[tuple[ast.AST | str, ast.AST]]:
    """What gets which value here: variables, fields, keys, and functions by what they return."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            yield from zip(targets, values, strict=True)
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case (
            ast.AnnAssign(target=target, value=ast.AST() as value)
            | ast.AugAssign(target=target, value=value)
            | ast.NamedExpr(target=target, value=value)
            | ast.For(target=target, iter=value)
            | ast.comprehension(target=target, iter=value)
        ):
            yield target, value
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            yield from ((key.value, value) for key, value in pairs if isinstance(key, ast.Constant))
        case ast.FunctionDef(name=name, args=args):
            yield from _defaults(args)
            parts = (one for one in ast.walk(node) if isinstance(one, ast.Return | ast.Yield))
            yield from ((name, part.value) for part in parts if part.value)


def _defaults(args: ast.arguments) -> Iterator[tuple[ast.arg, ast.AST]]:
    """What parameters are where a call leaves them out."""
    some = [*args.posonlyargs, *args.args]
    given = [*some[len(some) - len(args.defaults) :], *args.kwonlyargs]
    pairs = zip(given, [*args.defaults, *args.kw_defaults], strict=True)
    yield from ((one, value) for one, value in pairs if value)


MAY_TICK = re.compile(
    r"perf_counter|monotonic|(process|thread)_time|import time|getrusage|loadavg|cpu_(percent|times)"
    r"|cost_s|elapsed|\btimed\(|httpx|timeout=|\.wait\(|WebDriverWait|communicate|join\([\w.]+\)"
    r"|benchmarks(?!\.simulated_drivers)|timeit|settimeout|time\.time"
)
"""A file without any of these is not worth reading; the seconds of simulated drivers are no clock's."""


@cache
def exported() -> dict[str, frozenset[str]]:
    """The functions, fields and keys with a clock's figure, by the file that has them."""
    files = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/**/*.py")]
    found: dict[str, frozenset[str]] = {}
    for file in files:
        if not CLOCKS.search(text := file.read_text()):
            continue
        exports = Clocks(ast.parse(text)).exports
        found[file.stem] = found.get(file.stem, frozenset()) | exports
    return found


def named(tree: ast.Module) -> Iterator[str]:
    """The files that a file imports or runs, by their stems."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str() as name) | ast.alias(name=name):
                yield name.rpartition(".")[2]
            case ast.Constant(value=str() as text) if "\n" not in text:
                yield text.rpartition("/")[2].removesuffix(".py")


def findings(text: str) -> Iterator[tuple[int, str]]:
    """What the lint finds in a file, and in the programs that are strings in it."""
    if not MAY_TICK.search(text):
        return
    tree = ast.parse(text)
    foreign = (exported().get(name, frozenset()) for name in named(tree))
    yield from Clocks(tree, frozenset().union(*foreign)).findings()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "time" in node.value:
            try:
                found = [*Clocks(ast.parse(dedent(node.value))).findings()]
            except SyntaxError:
                continue  # prose, or a part of a program
            yield from ((node.lineno + line - 1, what) for line, what in found)


BAD = r"""
time.sleep(1); assert time.monotonic() - began < 10
from time import perf_counter as now; began = now(); work(); assert now() - began < 0.5
began = time.process_time(); spent = time.process_time() - began; assert 100 / spent > 1e5
def speed(): return 5 / (time.perf_counter() - began)\nassert speed() >= 100_000
told = {"seconds": time.thread_time()}\nassert told["seconds"] < 5
assert os.getloadavg()[0] < 2
assert resource.getrusage(resource.RUSAGE_SELF).ru_utime < 3
assert timeit.timeit("f()", number=3) < 1
assert outcome.cost_s < 1.5
assert spent == Outcome(cost_s=pytest.approx(0, abs=1))
assert time.time() - began == pytest.approx(2, abs=0.5)
until = time.monotonic() + 20\nwhile time.monotonic() < until: pass
assert max(time.perf_counter() - one for one in begun) < 3
class Told:\n    def end(self): self.took = time.perf_counter()\nassert Told().took < 1
run('''began = time.time()\nassert time.time() - began < 3''')
process.wait(timeout=30)
SHORT = 5.0; process.communicate(timeout=SHORT)
def soon(driver, seconds=10.0): return WebDriverWait(driver, seconds)
thread.join(2)
subprocess.run(words, timeout=30)
httpx.get("http://127.0.0.1")
httpx.get("http://127.0.0.1", timeout=5)
socket.settimeout(5)
""".strip().splitlines()
GOOD = r"""
until = time.monotonic() + 300\nwhile time.monotonic() < until: pass
LONG = 60.0; until = time.monotonic() + 3 * LONG\nassert time.monotonic() < until
from dse.testing.executor_contract import LONG_S; assert time.monotonic() - began < LONG_S
assert time.monotonic() - began < 120
assert outcome.cost_s > 0
assert outcome.cost_s == 3.5
assert step_time < 3e-3
begin = time.time(); end = time.time(); assert begin <= end + 60
process.wait(timeout=300); process.wait()
", ".join(names); threading.Event().wait()
httpx.get("http://127.0.0.1", timeout=60)
subprocess.run(words, timeout=120)
""".strip().splitlines()


@pytest.mark.parametrize("text", BAD)
def test_what_a_busy_machine_may_decide_is_found(text: str) -> None:
    assert [*findings(text.replace("\\n", "\n"))]


@pytest.mark.parametrize("text", GOOD)
def test_bounds_against_hanging_are_let_be(text: str) -> None:
    assert [*findings(text.replace("\\n", "\n"))] == []


def test_no_test_waits_for_a_clock() -> None:
    files = [
        file
        for file in ROOT.glob("tests/**/*.py")
        if not {"third_party", Path(__file__).name} & {*file.parts}
    ]
    found = [
        f"{file.relative_to(ROOT)}:{line}: {what}"
        for file in files
        for line, what in findings(file.read_text())
    ]
    assert found == []

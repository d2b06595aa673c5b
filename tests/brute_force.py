"""Random studies and what is true of them, by plain Python over all designs.

Nothing here imports the engine: formulas, absence, NaN, dominance and counts are computed anew.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, field

RAISE, IMPOSSIBLE = "raise", "impossible"
UNDEFINED = (None, math.nan, math.inf, -math.inf)


@dataclass
class Evaluator:
    """A table of answers by what is read, or formulas over it."""

    name: str
    kind: str  # modelled or measured
    reads: list[str]
    metrics: list[str]
    table: dict | None = None  # by the values read: an answer for each metric, RAISE or IMPOSSIBLE
    formulas: dict | None = None  # by metric: a tree


@dataclass
class Question:
    """A random study."""

    seed: int
    values: dict[str, list[int]]
    when: tuple[str, str, int] | None  # a parameter is there only when another has this value
    evaluators: list[Evaluator]
    objectives: list[tuple[str, tuple]]  # goal and tree
    limits: list[tuple[tuple, str, float]]
    optimizer: str


@dataclass
class Truth:
    """What is true of it."""

    total: int = 0
    impossible: int = 0
    failed: int = 0
    feasible: int = 0
    front: set = field(default_factory=set)
    vectors: dict = field(default_factory=dict)  # by design: its losses where it is feasible
    metrics: dict = field(default_factory=dict)  # by design: what is defined
    lost: set = field(default_factory=set)  # designs that failed


# -- formulas ------------------------------------------------------------------------------------


def text(tree):
    match tree:
        case str() | int() | float():
            return str(tree)
        case ("min" | "max" as word, a, b):
            return f"{word}({text(a)}, {text(b)})"
        case ("sqrt" | "abs" as word, a):
            return f"{word}({text(a)})"
        case (word, a, b):
            return f"({text(a)} {word} {text(b)})"
    raise ValueError(tree)


def names(tree):
    if isinstance(tree, str):
        return {tree}
    return set().union(*map(names, tree[1:])) if isinstance(tree, tuple) else set()


def value(tree, known):
    """A number as IEEE 754 has it, or None where something that is read is absent or undefined."""
    if isinstance(tree, str):
        return known.get(tree)
    if not isinstance(tree, tuple):
        return float(tree)
    inner = [value(part, known) for part in tree[1:]]
    if None in inner:
        return None
    if tree[0] in ("sqrt", "abs"):
        (a,) = inner
        return abs(a) if tree[0] == "abs" else math.sqrt(a) if a >= 0 else math.nan
    return two(tree[0], *inner)


def two(word, a, b):
    a, b = float(a), float(b)
    if word in ("min", "max"):
        if math.isnan(a) or math.isnan(b):
            return math.nan
        return min(a, b) if word == "min" else max(a, b)
    if word == "/":
        if b == 0:
            return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a)
        return a / b
    return {"+": a + b, "-": a - b, "*": a * b}[word]


# -- what is drawn -------------------------------------------------------------------------------


def drawn(seed):
    chance = random.Random(seed)
    values = {
        f"p{place}": chance.sample([-1, 0, 1, 2, 3, 4], chance.randint(2, 4))
        for place in range(chance.randint(2, 4))
    }
    when = None
    if chance.random() < 0.4:
        child, parent = chance.sample(sorted(values), 2)
        when = child, parent, chance.choice(values[parent])
    optimizer = chance.choice(
        ["exhaustive", "exhaustive", "decompose", "decompose", "auto", "random"]
    )
    evaluators = some_evaluators(chance, values, optimizer)
    every = [f"{one.name}.{metric}" for one in evaluators for metric in one.metrics]
    leaves = every + (sorted(values) if chance.random() < 0.3 else [])
    goals = [
        (
            chance.choice(["minimize", "maximize"]),
            chance.choice(every) if chance.random() < 0.6 else a_tree(chance, leaves, 1),
        )
        for _ in range(chance.randint(1, 3))
    ]
    objectives = list({text(tree): (goal, tree) for goal, tree in goals if names(tree)}.values())
    limits = [a_limit(chance, every)] if chance.random() < 0.5 else []
    objectives = objectives or [("minimize", every[0])]
    return Question(seed, values, when, evaluators, objectives, limits, optimizer)


def a_limit(chance, every):
    tree = chance.choice(every)
    if chance.random() < 0.3:
        tree = ("+", tree, a_tree(chance, every, 1))
    return tree, chance.choice(["<=", ">=", "<", ">"]), chance.choice([-1, 0, 1, 2, 2.5])


def some_evaluators(chance, values, optimizer):
    """Each parameter is read by one of them; what reads their metrics comes last."""
    measured = optimizer in ("exhaustive", "random") and chance.random() < 0.3
    wild = chance.choice([0.0, 0.1, 0.3, 1.0])  # how often an answer is none
    found = []
    left = chance.sample(sorted(values), len(values))
    while left:
        count = chance.randint(1, len(left))
        reads, left = left[:count], left[count:]
        found.append(an_evaluator(chance, f"e{len(found)}", reads, values, (wild, measured)))
    if optimizer != "decompose" and chance.random() < 0.4:
        every = [f"{one.name}.{metric}" for one in found for metric in one.metrics]
        joint = {"joint": a_tree(chance, every, 2)}
        reads = sorted(names(joint["joint"]))
        found.append(Evaluator("z", "modelled", reads, ["joint"], formulas=joint))
    return found


def an_evaluator(chance, name, reads, values, way):
    wild, measured = way
    metrics = ["a", "b"][: chance.randint(1, 2)]
    if chance.random() < 0.5:
        formulas = {metric: a_tree(chance, reads, 2) for metric in metrics}
        formulas["own"] = a_sum(reads)  # reads all of them
        return Evaluator(name, "modelled", reads, list(formulas), formulas=formulas)
    table = {}
    for key in itertools.product(*([*values[read], None] for read in reads)):
        fate = chance.random()
        if fate < wild / 3:
            table[key] = RAISE
        elif fate < wild / 2 and not measured:
            table[key] = IMPOSSIBLE
        else:
            table[key] = {
                metric: chance.choice(UNDEFINED)
                if chance.random() < wild / 2
                else float(chance.randint(-2, 4))
                for metric in metrics
            }
    return Evaluator(name, "measured" if measured else "modelled", reads, metrics, table=table)


def a_sum(reads):
    tree = reads[0]
    for read in reads[1:]:
        tree = ("+", tree, read)
    return tree


def a_tree(chance, leaves, depth):
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(leaves) if chance.random() < 0.8 else chance.randint(0, 3)
    word = chance.choice(["+", "-", "*", "/", "/", "min", "max", "sqrt", "abs"])
    if word in ("sqrt", "abs"):
        return word, a_tree(chance, leaves, depth - 1)
    return word, a_tree(chance, leaves, depth - 1), a_tree(chance, leaves, depth - 1)


# -- what is true --------------------------------------------------------------------------------


def designs(question):
    every = sorted(question.values)
    seen = set()
    for chosen in itertools.product(*(question.values[name] for name in every)):
        design = dict(zip(every, chosen, strict=True))
        if question.when is not None:
            child, parent, wanted = question.when
            if design[parent] != wanted:
                del design[child]
        key = tuple(sorted(design.items()))
        if key not in seen:
            seen.add(key)
            yield design


def needed(question):
    """Every metric that objectives and limits read, or that these are computed from."""
    found = set().union(
        *(names(tree) for _, tree in question.objectives),
        *(names(t) for t, _, _ in question.limits),
    )
    for one in reversed(question.evaluators):
        for metric, tree in (one.formulas or {}).items():
            if f"{one.name}.{metric}" in found:
                found |= names(tree)
    return found


def outcome(question, design, wanted):
    """The metrics that are defined, and whether the design is impossible, or failed."""
    known, impossible, failed = dict(design), False, False
    for one in question.evaluators:
        answers = dict.fromkeys(one.metrics)
        if one.formulas is not None:
            answers = {metric: value(tree, known) for metric, tree in one.formulas.items()}
        else:
            told = one.table[tuple(design.get(read) for read in one.reads)]
            impossible |= told == IMPOSSIBLE
            answers = told if isinstance(told, dict) else answers
        for metric, number in answers.items():
            name = f"{one.name}.{metric}"
            if number is not None and math.isfinite(number):
                known[name] = number
            elif name in wanted:
                failed = True
    return known, impossible, failed


def truth(question):
    found, wanted = Truth(), needed(question)
    for design in designs(question):
        found.total += 1
        key = tuple(sorted(design.items()))
        known, impossible, failed = outcome(question, design, wanted)
        losses = [
            value(tree, known) * (1 if goal == "minimize" else -1)
            if value(tree, known) is not None
            else math.nan
            for goal, tree in question.objectives
        ]
        sides = [(value(tree, known), word, bound) for tree, word, bound in question.limits]
        undefined = any(not math.isfinite(loss) for loss in losses)
        undefined |= any(number is None or math.isnan(number) for number, _, _ in sides)
        if impossible:
            found.impossible += 1
        elif failed or undefined:
            found.failed += 1
            found.lost.add(key)
        else:
            found.metrics[key] = {name: number for name, number in known.items() if "." in name}
            if all(keeps(*side) for side in sides):
                found.feasible += 1
                found.vectors[key] = tuple(loss + 0.0 for loss in losses)
    points = set(found.vectors.values())
    found.front = {one for one in points if not any(beats(other, one) for other in points)}
    return found


def keeps(number, word, bound):
    if math.isfinite(number) and abs(number - bound) <= 1e-12 * max(abs(number), abs(bound)):
        return "=" in word
    return number < bound if "<" in word else number > bound


def beats(one, other):
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))

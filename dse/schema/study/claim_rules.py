"""Conditions on a claim: a published figure, a rule that can fail, no choice by its data.

Source:
    docs/reproductions.md, "What a claim is".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dse.core.expressions.expression import Compare, Expression, Node, Number, children
from dse.errors import SpecError
from dse.schema.models import ClaimSpec, EvaluatorSpec, FindingSpec
from dse.schema.study.print_figure import PrintFigure, hides_figure, is_nothing

SIZED = ("exact", "held-out", "free")
"""Kinds of proof that say how large the number is."""

TEST = "test"
_OF_TEST = re.compile(r"(^|[._])test([._@]|$)")
_SIGNS = frozenset({"<", "<=", ">", ">="})


def check_figure(spec: ClaimSpec | FindingSpec, figure: PrintFigure | None) -> None:
    """Check that the claim has something published to be compared with.

    Raises:
        SpecError: it has not.
    """
    if isinstance(spec, FindingSpec) or spec.proof in ("identity", "not reproduced"):
        return
    if is_nothing(spec.published):
        words = "nothing" if spec.published is None else repr(spec.published)
        raise SpecError(
            f"the claim is held against {words} in print",
            hint="a finding of ours goes under 'finds:', what cannot fail is 'proof: identity'",
        )
    if figure is None and spec.proof in SIZED:
        raise SpecError(
            f"{spec.published!r} is no figure, and {spec.proof!r} is held against one",
            hint="a number, [a, b] or '< 2 %'; for words of print 'proof: direction'",
        )
    if figure is None and hides_figure(spec.published):
        raise SpecError(
            f"the words {spec.published!r} hold a figure that ours can be held against",
            hint="write the figure alone, as 48, '12 %', [2, 48] or '< 2 %'; words go in the note",
        )


def check_window(spec: ClaimSpec | FindingSpec, rule: Expression) -> None:
    """Check that a kind of proof that states a number's size does not accept a bare sign.

    Raises:
        SpecError: it does.
    """
    if spec.proof in SIZED and _is_bare_sign(rule):
        raise SpecError(
            f"{rule.text!r} is a sign and says no size, which {spec.proof!r} has to",
            hint="'proof: direction', or a window around the published figure",
        )


def judging_metrics(
    metrics: Iterable[str], evaluators: Mapping[str, EvaluatorSpec]
) -> frozenset[str]:
    """Return the metrics of data that judges: ``split: test``, or ``test`` in a name.

    Args:
        metrics: the names of all, ``LABEL.METRIC``.
        evaluators: by label.
    """
    labels = {name for name, one in evaluators.items() if TEST in one.options.values()}
    return frozenset(
        name
        for name in metrics
        if name.partition(".")[0] in labels or _OF_TEST.search(name) or ".test_" in name
    )


def check_choice(function: str, names: Iterable[str], judging: frozenset[str]) -> None:
    """Check that trials are not picked by what judges them.

    Args:
        function: the function that picks.
        names: what it picks by.
        judging: the metrics on data that judges.

    Raises:
        SpecError: they are.
    """
    chosen = sorted(set(names) & judging)
    if chosen:
        raise SpecError(
            f"{function}(...) picks trials by {chosen[0]!r}, which is to judge them",
            hint=f"pick by a metric of other data: where_most({chosen[0]}, search.accuracy), "
            "or name the trial as a baseline",
        )


def _is_bare_sign(rule: Expression) -> bool:
    """Return whether the rule compares with 0, or with 1 of no unit, and with nothing else."""
    nodes = list(_walk(rule.node))
    numbers = [one for one in nodes if isinstance(one, Number)]
    operators = {sign for one in nodes if isinstance(one, Compare) for sign in one.operators}
    bare = all(one.value == 0 or (one.value == 1 and not one.unit) for one in numbers)
    return bare and operators <= _SIGNS


def _walk(node: Node) -> Iterable[Node]:
    yield node
    for child in children(node):
        yield from _walk(child)

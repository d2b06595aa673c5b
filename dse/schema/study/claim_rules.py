"""Checks of the claims (published results of papers) in a study file.

A claim needs a published figure and an acceptance rule that can fail, and must not select trials by
a metric on test data.

Source:
    docs/reproductions.md, "What a claim is".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Compare, Node, Number, children
from dse.errors import SpecError
from dse.schema.models import ClaimSpec, EvaluatorSpec, FindingSpec
from dse.schema.study.print_figure import PrintFigure, hides_figure, is_nothing

SIZED = ("exact", "held-out", "free")
"""Kinds of proof for which the size of the number must agree with the published figure."""

TEST = "test"
_OF_TEST = re.compile(r"(^|[._])test([._@]|$)")
_SIGNS = frozenset({"<", "<=", ">", ">="})


def check_figure(spec: ClaimSpec | FindingSpec, figure: PrintFigure | None) -> None:
    """Check that a claim has the published figure or text that its kind of proof requires.

    Raises:
        SpecError: nothing is published, or a number is required and ``published`` is text.
    """
    if isinstance(spec, FindingSpec) or spec.proof in ("identity", "not reproduced"):
        return
    if is_nothing(spec.published):
        words = "nothing" if spec.published is None else repr(spec.published)
        raise SpecError(
            f"the claim is compared with {words} as the published figure",
            hint="put a finding of this study under 'finds:', or use 'proof: identity' for an "
            "identity, which cannot fail",
        )
    if figure is None and spec.proof in SIZED:
        raise SpecError(
            f"{spec.published!r} is no figure, and 'proof: {spec.proof}' requires one",
            hint="write a number, [a, b] or '< 2 %'; for published text use 'proof: direction'",
        )
    if figure is None and hides_figure(spec.published):
        raise SpecError(
            f"the text {spec.published!r} contains a figure that 'ours' can be compared with",
            hint="write the figure alone, as 48, '12 %', [2, 48] or '< 2 %'; put text in 'note'",
        )


def check_window(spec: ClaimSpec | FindingSpec, rule: Expression) -> None:
    """Check that ``accept`` bounds the value of ``ours``, if the kind of proof requires it.

    Raises:
        SpecError: the rule tests only a sign, such as ``ours > 0`` or ``ours < 1``.
    """
    if spec.proof in SIZED and _is_bare_sign(rule):
        raise SpecError(
            f"{rule.text!r} tests a sign, and 'proof: {spec.proof}' requires a size",
            hint="use 'proof: direction', or a window around the published figure",
        )


def judging_metrics(
    metrics: Iterable[str], evaluators: Mapping[str, EvaluatorSpec]
) -> frozenset[str]:
    """Return the metrics that are computed on test data.

    A metric is one if its evaluator has an option with the value ``test``, or by its own name.

    Args:
        metrics: the names of all metrics, ``LABEL.METRIC``.
        evaluators: the evaluators by label.
    """
    labels = {name for name, one in evaluators.items() if TEST in one.options.values()}
    return frozenset(
        name
        for name in metrics
        if name.partition(".")[0] in labels or _OF_TEST.search(name) or ".test_" in name
    )


def check_choice(function: str, names: Iterable[str], judging: frozenset[str]) -> None:
    """Check that a claim does not select trials by a metric on test data.

    Args:
        function: the function that selects a trial, for the message.
        names: the metrics by which it selects.
        judging: the metrics on test data.

    Raises:
        SpecError: a metric on test data is among the names.
    """
    chosen = sorted(set(names) & judging)
    if chosen:
        raise SpecError(
            f"{function}(...) selects trials by {chosen[0]!r}, a metric on test data",
            hint=f"select by a metric on other data: where_most({chosen[0]}, search.accuracy), "
            "or name the trial as a baseline",
        )


def _is_bare_sign(rule: Expression) -> bool:
    """Return whether the rule has only inequalities with 0 or 1, so it tests only a direction."""
    nodes = list(_walk(rule.node))
    numbers = [one for one in nodes if isinstance(one, Number)]
    operators = {sign for one in nodes if isinstance(one, Compare) for sign in one.operators}
    bare = all(one.value == 0 or (one.value == 1 and not one.unit) for one in numbers)
    return bare and operators <= _SIGNS


def _walk(node: Node) -> Iterable[Node]:
    yield node
    for child in children(node):
        yield from _walk(child)

"""Comparison of studies: quality of their fronts, with significance tests over seeds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dse.api.renamed_arguments import renamed_arguments
from dse.api.study import Study
from dse.errors import SpecError
from dse.system.terminal_text import visible

if TYPE_CHECKING:
    from dse.analysis import comparison as analysis
    from dse.analysis.comparability import Unlike
    from dse.analysis.comparison import GroupResult
    from dse.analysis.conclusions import Conclusion
    from dse.analysis.references import Indicator
    from dse.analysis.run_groups import RunGroup
    from dse.analysis.runs import Currency, Run
    from dse.protocols import Storage
    from dse.report.schemas.comparison_schema import ComparisonFacts

Compared = Study | str | Mapping[str, Study | Sequence[Study]]
"""A study; a study selector as ``dse compare`` takes it; or groups of studies by name."""


class Comparison:
    """Comparison of groups of studies (one group per method) of one problem at one budget.

    See :func:`compare`. ``found`` holds the numbers: groups, results, significance tests, and the
    growth of each front.
    """

    def __init__(self, found: analysis.ComparisonResult) -> None:
        self.found = found

    @property
    def facts(self) -> ComparisonFacts:
        """Comparison as ``dse compare --format json`` prints it: curves, medians and tests."""
        from dse.report.json.comparison_json import comparison_json

        return comparison_json(self.found)

    @property
    def groups(self) -> tuple[GroupResult, ...]:
        """Groups in the given order, each with the budget spent and quality reached per study."""
        return self.found.groups

    @property
    def claims(self) -> tuple[Conclusion, ...]:
        """Significance tests between groups of studies, by pair of groups and quality indicator."""
        return self.found.claims

    def shortfalls(self, share: float) -> list[str]:
        """Return a sentence on each group whose hypervolume is too far below the first group's.

        The medians over the studies of a group are compared. A shortfall counts only if the
        difference is significant, or if there are too few seeds for any difference to be
        significant.

        Args:
            share: the tolerated shortfall as a fraction of the first group's hypervolume, at least
                0 and below 1: ``0.05``.
        """
        from dse.analysis.comparison import shortfalls

        return shortfalls(self.found, share)

    def report(self, file: str | Path) -> Path:
        """Write the comparison as a page (``.html``) or as JSON (``.json``); return the path.

        Raises:
            StudyError: the file has another suffix.
            StorageError: it cannot be written.
        """
        from dse.report.html.comparison_page import comparison_text
        from dse.report.json.atomic_file import write_whole

        path = Path(file)
        write_whole(path, comparison_text(self.found, path))
        return path

    def _repr_html_(self) -> str:
        from dse.api.notebook.comparison_view import comparison_html
        from dse.api.notebook.parts import or_message

        return or_message("Comparison", lambda: comparison_html(self.found))

    def __repr__(self) -> str:
        from dse.report.words import share_text

        share = self.found.yardstick.share
        listed = ", ".join(
            f"{one.name} {share_text(share(one.quartiles('hypervolume')[1]))}"
            for one in self.found.groups
        )
        at = f"{self.found.at:g} {self.found.over}"
        return visible(f"<Comparison at {at}, median hypervolume: {listed}>")


@renamed_arguments(over="budget_axis", at="budget", may_differ="ignore")
def compare(
    *studies: Compared,
    storage: str | Storage | None = None,
    budget_axis: Currency | None = None,
    budget: float | None = None,
    indicators: Sequence[Indicator] | None = None,
    joint_reference: bool = False,
    ignore: Collection[Unlike] = (),
) -> Comparison:
    """Compare the fronts of studies of one problem at one budget, with tests over seeds.

    Example:
        ``compare("grey=edge.grey-box.*", "tpe=edge.tpe.*", storage="sqlite:///dse.db")``, or
        ``compare({"grey": [a, b, c], "tpe": [d, e, f]})``

    Args:
        studies: each is a study, a mapping from group names to studies, or a string that selects
            studies: the name of a stored study, an exported file, ``"study.*"``, or
            ``"name=study-*"`` for a group.
        storage: storage (or its URL) in which selectors are resolved.
        budget_axis: unit of the budget; default: measurements, or trials if nothing was measured.
        budget: budget at which the fronts are compared, in the unit of ``budget_axis`` (time in
            seconds, cost in dollars); default: the least that any study spent.
        indicators: indicators that are tested; default: hypervolume, IGD+, epsilon and R2.
        joint_reference: use the worst value of all fronts in each objective, plus a tenth of its
            range, as the reference point of the hypervolume.
        ignore: parts of the problem in which the studies may differ: space, evaluators.

    Raises:
        StudyError: the problems differ, a selector matches nothing, or there is no reference point.
        SpecError: an argument is no study.
    """
    from dse.analysis import comparison as analysis
    from dse.analysis.references import INDICATORS
    from dse.api.error_text import in_python
    from dse.services.studies.selection import check_distinct

    asked = analysis.ComparisonOptions(
        over=budget_axis,
        at=budget,
        joint_nadir=joint_reference,
        may_differ=ignore,
        indicators=INDICATORS if indicators is None else indicators,
    )
    with in_python():
        groups = [group for one in studies for group in _groups(one, storage)]
        check_distinct(groups)
        return Comparison(analysis.compare(groups, asked))


def _groups(one: Compared, storage: str | Storage | None) -> list[RunGroup]:
    from dse.analysis.run_groups import RunGroup
    from dse.services.studies.selection import gather_groups

    if isinstance(one, str):
        return gather_groups([one], storage)
    if isinstance(one, Study):
        return [RunGroup(one.name, (_run(one),))]
    if not isinstance(one, Mapping):
        raise SpecError(f"{one!r} is no study", hint=_HOW)
    return [
        RunGroup(name, tuple(map(_run, _wrap_in_list(studies)))) for name, studies in one.items()
    ]


_HOW = 'compare(first, second), compare({"one": [first, second], "two": [third]}) or study names'


def _wrap_in_list(studies: Study | Sequence[Study]) -> Sequence[Study]:
    """Return the studies of a group as a sequence; a single study becomes a list of one."""
    return [studies] if isinstance(studies, Study | str) else studies


def _run(one: Study) -> Run:
    if not isinstance(one, Study):
        raise SpecError(f"{one!r} is no study", hint=_HOW)
    from dse.analysis.runs import Run, is_swept

    study = one.engine
    price, swept = study.plan.budget.price_per_s, is_swept(study.events)
    return Run.of(study.name, study.problem, study.finished, price, swept=swept)

"""Studies side by side: which has the better front, and whether that can be more than chance."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    from dse.report.schemas.comparison import ComparisonFacts

Compared = Study | str | Mapping[str, Study | Sequence[Study]]
"""A study; a word as ``dse compare`` takes it; or groups of studies by name."""


class Comparison:
    """Groups of studies of one question at one budget; see :func:`compare`.

    ``found`` has the numbers as values: groups, results, claims, courses.
    """

    def __init__(self, found: analysis.ComparisonResult) -> None:
        self.found = found

    @property
    def facts(self) -> ComparisonFacts:
        """Data that ``dse compare --format json`` prints: curves, medians, tests."""
        from dse.report.json.comparison import comparison_json

        return comparison_json(self.found)

    @property
    def groups(self) -> tuple[GroupResult, ...]:
        """The groups in their order, each with what its studies spent and had for it."""
        return self.found.groups

    @property
    def claims(self) -> tuple[Conclusion, ...]:
        """Claims on each pair of groups with several seeds, each with its test."""
        return self.found.claims

    def shortfalls(self, share: float) -> list[str]:
        """A sentence for each group whose hypervolume is too far below the first one's.

        Of groups the medians count, and only where the difference can be claimed, or there are too
        few seeds to ever claim one.

        Args:
            share: how much of the first one's may be missing, from 0 to below 1: ``0.05``.
        """
        from dse.analysis.shortfall import shortfalls

        return shortfalls(self.found, share)

    def report(self, file: str | Path) -> Path:
        """Write the comparison as a page (``.html``), or as JSON (``.json``).

        Raises:
            StudyError: the file has another ending.
            StorageError: it cannot be written.
        """
        from dse.report.html.comparison_file import comparison_text
        from dse.report.json.atomic_file import write_whole

        path = Path(file)
        write_whole(path, comparison_text(self.found, path))
        return path

    def _repr_html_(self) -> str:
        from dse.api.notebook.comparison import comparison_html
        from dse.api.notebook.parts import or_message

        return or_message("Comparison", lambda: comparison_html(self.found))

    def __repr__(self) -> str:
        told = ", ".join(
            f"{one.name} {one.quartiles('hypervolume')[1]:.6g}" for one in self.found.groups
        )
        at = f"{self.found.at:g} {self.found.over}"
        return visible(f"<Comparison at {at}, median hypervolume: {told}>")


def compare(
    *studies: Compared,
    storage: str | Storage | None = None,
    over: Currency | None = None,
    at: float | None = None,
    indicators: Sequence[Indicator] | None = None,
    joint_reference: bool = False,
    may_differ: Collection[Unlike] = (),
) -> Comparison:
    """Compare studies of one question: fronts at one budget, with tests over groups of seeds.

    Example:
        ``compare("grey=edge.grey-box.*", "tpe=edge.tpe.*", storage="sqlite:///dse.db")``, or
        ``compare({"grey": [a, b, c], "tpe": [d, e, f]})``

    Args:
        studies: each a study; groups of studies by name; or a word: the name of a stored study,
            an exported file, ``"study.*"``, or ``"name=study-*"`` for a group.
        storage: where words are looked up, or its URL.
        over: what is spent; measurements without it, or trials where none were made.
        at: after how much of it, seconds and dollars included; the least that any study spent
            without it.
        indicators: what claims are made about; hypervolume, IGD+, epsilon and R2 without.
        joint_reference: take the worst of all fronts where no study states a reference point.
        may_differ: compare studies that differ in this all the same.

    Raises:
        StudyError: they do not ask the same, nothing fits a word, or there is no reference point.
        SpecError: one of them is no study.
    """
    from dse.analysis import comparison as analysis
    from dse.analysis.references import INDICATORS
    from dse.api.error_text import in_python
    from dse.services.studies.selection import check_distinct

    asked = analysis.ComparisonOptions(
        over=over,
        at=at,
        joint_nadir=joint_reference,
        may_differ=may_differ,
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


_HOW = 'compare(first, second), compare({"one": [first, second], "two": [third, fourth]}) or words'


def _wrap_in_list(studies: Study | Sequence[Study]) -> Sequence[Study]:
    """Return the studies of a group; a single study is a group too."""
    return [studies] if isinstance(studies, Study | str) else studies


def _run(one: Study) -> Run:
    if not isinstance(one, Study):
        raise SpecError(f"{one!r} is no study", hint=_HOW)
    from dse.analysis.runs import Run, is_swept

    study = one.engine
    price, swept = study.plan.budget.price_per_s, is_swept(study.events)
    return Run.of(study.name, study.problem, study.finished, price, swept=swept)

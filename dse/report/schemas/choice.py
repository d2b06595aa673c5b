"""JSON schema of ``dse choose``: answers, the next question, and the favourite design."""

from __future__ import annotations

from dse.report.schemas.base import Shape
from dse.report.schemas.front_schema import FrontRow
from dse.report.schemas.trials_schema import HeadingFacts


class AnswerFacts(Shape):
    """Answer of a user to the question which of two designs is better."""

    answer: int
    """Its number in the study, for `--forget`."""
    preferred: int
    """The trial that is preferred, or one of two that are equally good."""
    other: int
    """The other trial."""
    equal: bool
    """Whether both are equally good."""
    used: bool
    """Whether the answer counts: both of its trials are in the record and feasible."""


class ChoiceFacts(HeadingFacts):
    """Preferences between the designs of a study, as far as they were answered."""

    answers: list[AnswerFacts]
    """The answers that count or could count, oldest first; withdrawn ones are left out."""
    forgotten: list[int]
    """The numbers of the answers that this call has withdrawn."""
    question: list[FrontRow] | None
    """The two designs whose comparison would tell most; null where no question is left."""
    sure: bool
    """Whether the favourite is so probable that no further question is worth asking."""
    favourite: FrontRow
    """The design with the highest expected utility."""
    probability: float
    """The probability that the favourite loses at most 1 % of utility to the best design."""

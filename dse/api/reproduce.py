"""Reproduction of published results: run a study and check the claims that its file states."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dse.core.trial import Trial
    from dse.protocols import Storage
    from dse.services.studies.claim_evaluation import ClaimVerdict
    from dse.study.study_engine import StudyEngine

FORGETFUL = "memory://"


def reproduce(
    file: str | Path,
    *,
    storage: str | Storage = FORGETFUL,
    on_finished: Callable[[Trial], None] = lambda _: None,
    assumptions: bool = False,
) -> list[ClaimVerdict]:
    """Run a study file to the end of its budget and check the published results it states.

    Example:
        ``[one.verdict for one in reproduce("library:studies/yolo_bits.yaml")]``

    Args:
        file: the study file; ``library:studies/...`` is a shipped one.
        storage: the storage in which the study is kept and can be continued; default: in memory.
        on_finished: called with each trial when it is stored.
        assumptions: also run the study with each assumed input (``assumptions`` in its file) at
            both ends of its range; each claim's ``turned`` then holds a result for each of these
            runs.

    Returns:
        Each claim with the study's value, whether it ``holds``, and the ``verdict`` as text.

    Raises:
        SpecErrors: the file has mistakes.
        StudyError: it states no claims, or cannot be run.
    """
    from dse.schema.yaml.files import resolve_path
    from dse.services.studies.assumption_sensitivity import turn_assumptions
    from dse.services.studies.claim_evaluation import claiming, judged_claims
    from dse.study.study_engine import StudyEngine

    path = resolve_path(str(file), Path.cwd() / "study.yaml")
    claiming(path)
    study = StudyEngine.open(path, storage=storage)

    def run(one: StudyEngine) -> None:
        one.run(on_finished=on_finished)

    run(study)
    judged = judged_claims(study)
    return turn_assumptions(study, judged, run, storage=storage) if assumptions else judged

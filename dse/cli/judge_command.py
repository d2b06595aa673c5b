"""``dse judge``: measure the front of a study on the test split of its evaluators."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli.interrupts import stoppable
from dse.cli.options import (
    JsonOrTableOption,
    NameArgument,
    OutputFormat,
    StorageOption,
    TrustOption,
    say,
    show_json,
)


def judge(
    name: NameArgument,
    *,
    again: Annotated[
        bool, typer.Option("--again", help="Measure designs anew that have a result.")
    ] = False,
    trust: TrustOption = False,
    storage: StorageOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Measure the front of a study on the test split of its evaluators.

    `dse run` does this at its end, unless the study has `judge: none`. The results are kept; the
    optimizer never receives them.

    Example: dse judge quickstart
    """
    from dse.core.judged_trials import read_judged
    from dse.report.text.judged_table import print_judged
    from dse.services.studies.results_json import answer_json
    from dse.storage.trust import trust as trust_study
    from dse.study.study_engine import StudyEngine

    study = StudyEngine.load(name, storage)
    if trust:
        trust_study(study.storage, name)
    try:
        with stoppable():
            found = study.judge(again=again)
    except KeyboardInterrupt:
        say(f"interrupted; what was measured is kept; the rest: dse judge {name}")
        raise typer.Exit(3) from None
    if output is OutputFormat.JSON:
        show_json(answer_json(study))
        return
    say(f"{name}: {len(found)} designs measured on the test split")
    print_judged(study.problem, study.front.trials, read_judged(study.events))

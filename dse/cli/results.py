"""``dse status``, ``dse front`` and ``dse trials``: progress and results of a study."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from dse.cli import completion as completing
from dse.cli.options import (
    Format,
    FormatOption,
    JsonOrTableOption,
    NameArgument,
    OutputFormat,
    OutputOption,
    StorageOption,
    format_of,
    name_of_file,
    say,
    show,
    show_json,
)
from dse.cli.output.formats import write_result, write_texts
from dse.report.schemas.study_schema import Status
from dse.system.credentials import mask_url

if TYPE_CHECKING:
    from dse.core.pareto import ParetoSet
    from dse.core.recorded_gap import RecordedGap
    from dse.core.trials import Trials
    from dse.report.json.columns import Sheet
    from dse.services.studies.best_designs import BestDesigns
    from dse.study.study_engine import StudyEngine


def status(
    name: Annotated[
        str | None,
        typer.Argument(
            autocompletion=completing.study_names,
            callback=name_of_file,
            is_eager=True,
            help="A study's name, or its file; default: all.",
        ),
    ] = None,
    *,
    storage: StorageOption = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Show the progress of a study: trials by state, measurements, hypervolume, events.

    Without a name, show all studies; those that cannot be read are reported as errors at the end.

    Example: dse status quickstart
    """
    from dse.errors import DseError, raise_all
    from dse.report.text.terminal_table import print_lines
    from dse.services.studies.status import all_states, status_json
    from dse.study.storage_access import DEFAULT_STORAGE, opened_storage
    from dse.study.study_engine import StudyEngine

    opened = opened_storage(storage or DEFAULT_STORAGE)
    if name is not None:
        states, errors = [status_json(StudyEngine.load(name, opened))], list[DseError]()
    else:
        states, errors = all_states(opened)
    if output is OutputFormat.JSON:
        show_json(states[0] if name is not None else states)
    else:
        for one in states:
            print_lines(_state_lines(one))
        if not states and not errors:
            kept = mask_url(storage or DEFAULT_STORAGE)
            say(f"no studies in {kept}; begin one with: dse run STUDY.yaml")
    raise_all(errors)


def front(
    name: NameArgument,
    *,
    at: Annotated[
        list[str] | None,
        typer.Option(
            "--at",
            help="A further limit, as under constraints: 'chip.latency <= 20 ms'; repeatable.",
            metavar="LIMIT",
        ),
    ] = None,
    best: Annotated[
        str | None,
        typer.Option(
            help="Only the best design by this objective, metric or 'minimize: FORMULA'.",
            metavar="METRIC",
        ),
    ] = None,
    gap: Annotated[
        bool,
        typer.Option(
            "--gap",
            help="Estimate what the front may still miss from all finished trials.",
        ),
    ] = False,
    storage: StorageOption = None,
    output: FormatOption = Format.TABLE,
    file: OutputOption = None,
) -> None:
    """Show the Pareto front: the designs that no other design dominates.

    With --at, show the front of the designs that satisfy further limits; with --best, the best of
    them by one metric. Both search all finished trials. With --gap, estimate an upper bound on the
    share of the hypervolume that the front still misses, at the confidence that the budget states,
    or 90 %.

    Example: dse front quickstart --at 'chip.area <= 20 mm2' --best chip.latency
    """
    from dse.core.recorded_gap import RecordedGap
    from dse.errors import SpecError
    from dse.report.json.gap_json import gap_json
    from dse.services.studies.best_designs import find_best_designs
    from dse.services.studies.gap_estimation import estimate_gap
    from dse.services.studies.results_json import answer_json, best_designs_json
    from dse.study.study_engine import StudyEngine

    study = StudyEngine.load(name, storage)
    output = format_of(output, file)
    if gap and (at or best is not None or output in (Format.CSV, Format.PARQUET)):
        raise SpecError("--gap needs the complete front, as a table or JSON", where="--gap")
    if at or best is not None:
        chosen = find_best_designs(study, at or [], best)
        if output is Format.TABLE:
            _print_best_designs(chosen)
        else:
            facts = best_designs_json(study.name, chosen)
            write_result(output, file, facts, lambda: _columns(chosen.found, chosen.trials))
    elif output is Format.TABLE:
        _print_front(study, estimate_gap(study) if gap else RecordedGap.of(study.events))
    else:
        facts = answer_json(study)
        facts |= {"gap": gap_json(estimate_gap(study))} if gap else {}
        write_result(output, file, facts, lambda: _columns(study.front, study.finished))


def _columns(front: ParetoSet, finished: Trials) -> Sheet:
    from dse.report.json.columns import front_columns

    return front_columns(front, finished)


def _print_front(study: StudyEngine, gap: RecordedGap | None) -> None:
    from dse.analysis.error_intervals import find_intervals
    from dse.analysis.front_probability import membership
    from dse.core.judged_trials import read_judged
    from dse.core.pareto import ParetoSet
    from dse.evaluation.stated_errors import collect_model_errors
    from dse.report.html import fidelity, scenario_tables
    from dse.report.json.gap_json import gap_words
    from dse.report.text import trial_tables as table
    from dse.report.text.interval_table import print_intervals
    from dse.report.text.judged_table import print_judged

    finished = study.finished
    contrast = study.contrast
    chances = membership(study.problem, finished)
    front = ParetoSet.of(study.problem, finished)
    table.front_table(front, finished, proof=study.proof)
    print_judged(study.problem, front.trials, read_judged(study.events))
    errors = collect_model_errors(study.plan.pipeline, front.trials)
    print_intervals(
        study.problem, front.trials, find_intervals(study.problem, front.trials, errors)
    )
    words = gap_words(gap)
    show(words, line_feed=bool(words))
    if contrast is not None:
        scenario_tables.contrast_table(contrast)
    show(table.doubt_words(chances), line_feed=bool(chances))
    fidelity.rungs_table(fidelity.rungs(study.problem, finished))


def _print_best_designs(chosen: BestDesigns) -> None:
    from dse.report.text.summary import selection_words
    from dse.report.text.trial_tables import front_table

    words = selection_words(
        chosen.found, chosen.at, best=chosen.best, value=chosen.value, proof=chosen.proof
    )
    front_table(chosen.found, chosen.trials, proof=chosen.proof, heading=words)
    show(chosen.uncovered, line_feed=bool(chosen.uncovered))


def trials(
    name: NameArgument,
    *,
    storage: StorageOption = None,
    output: FormatOption = Format.TABLE,
    file: OutputOption = None,
) -> None:
    """List all trials, with their state and, for failed ones, the reason.

    Example: dse trials quickstart --format csv -o trials.csv
    """
    from dse.interop.archive.stream import open_trials
    from dse.report.json import columns as sheet
    from dse.report.json import front_json as export
    from dse.report.text import trial_tables as table
    from dse.study.study_engine import StudyEngine

    study = StudyEngine.load(name, storage)
    output = format_of(output, file)
    if output is Format.TABLE:
        table.trials_table(study.problem, study.trials)
        return
    if output is Format.PARQUET:
        write_result(output, file, {}, lambda: sheet.trials_columns(study.problem, study.trials))
        return
    with open_trials(study.storage, study.name) as stream:
        if output is Format.CSV:
            texts = sheet.csv_texts(sheet.trials_sheets(study.problem, stream))
        else:
            chunks = export.trials_json_texts(study.name, study.problem, stream, indent=2)
            texts = chain(chunks, ["\n"])
        write_texts(output, file, texts)


def _driver_lines(state: Status) -> Iterator[str]:
    there = [one for one in state["drivers"] if not one["left"]]
    if there:
        words = ", ".join(f"process {one['pid']} of {one['host']}" for one in there)
        yield f"  active drivers, as far as known: {words}"
    busy, rate = state["busy"], state["per_hour"]
    if busy is not None and rate is not None:
        shown = f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
        yield f"  workers: {busy:.0%} busy, {shown} trials an hour"


def _state_lines(state: Status) -> Iterator[str]:
    import shlex

    from dse.report.text.space_words import format_count
    from dse.report.words import share_text

    name = shlex.quote(state["study"])
    counts = ", ".join(f"{count} {kind}" for kind, count in state["trials"].items())
    volume = share_text(state["hypervolume_share"], estimated=state["hypervolume_estimated"])
    seconds = state["seconds"] or 0.0
    yield f"{state['study']}: {state['question']}"
    yield f"  trials: {counts or 'none'}; {state['measurements']} measured, {seconds:.1f} s"
    kind = "exact front" if state["exact"] else "front"
    over = state["exact_over"]
    part = "" if state["exact"] or over is None else f", exact over the {over:,} that have values"
    yield f"  {kind}: {format_count(state['front'], 'design')}{part}, hypervolume {volume}"
    if state["failure"]:
        yield f"  failed: {state['failure']}"
    yield from _driver_lines(state)
    if not state["trusted"]:
        yield f"  not trusted: it was imported, and can be run after: dse studies trust {name}"
    for warning in state["warnings"]:
        yield f"  warning: {warning}"
    for kind, count in state["failures"].items():
        yield f"  failures: {count} {kind}"
    yield from _attribute_lines(state)
    for event in state["events"]:
        yield f"  {event['kind']}: {event['text']}"


def _attribute_lines(state: Status) -> Iterator[str]:
    """Yield the attributes that users have given the study and its trials, one a line."""
    import json

    for name, value in state["attributes"].items():
        yield f"  attribute {name}: {json.dumps(value, ensure_ascii=False)}"
    for number, own in state["trial_attributes"].items():
        for name, value in own.items():
            yield f"  attribute {name} of trial {number}: {json.dumps(value, ensure_ascii=False)}"

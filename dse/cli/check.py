"""``dse check``: validate study and space files, and on request reproduce their claims."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli import completion as completing
from dse.cli.options import JsonOrTableOption, OutputFormat, say, show, show_json, study_path
from dse.report.schemas.reproduction import JudgedFile

ReproduceOption = Annotated[
    bool, typer.Option("--reproduce", help="Run the studies and judge the claims that they state.")
]
AssumptionsOption = Annotated[
    bool,
    typer.Option(
        "--assumptions",
        help="With --reproduce: also run the studies at both ends of each assumption's interval.",
    ),
]
KeptIn = Annotated[
    str | None,
    typer.Option(
        "--storage",
        help="Keep the reproduced studies in this storage; without it they are discarded.",
        show_default=False,
    ),
]


def check(
    files: Annotated[
        list[str],
        typer.Argument(
            autocompletion=completing.any_files, help="Study and space files.", show_default=False
        ),
    ],
    *,
    reproduce: ReproduceOption = False,
    assumptions: AssumptionsOption = False,
    storage: KeptIn = None,
    output: JsonOrTableOption = OutputFormat.TABLE,
) -> None:
    """Validate study and space files; report each mistake with its line and its correction.

    No program that a file names is started; evaluators that were not probed for that reason are
    listed. With --reproduce, run the studies and compare their results with the papers' claims that
    the files state; the exit code is 1 if a result differs from the claim's label. With
    --assumptions, also run the studies at both ends of each assumption's interval.

    Example: dse check studies/quickstart.yaml spaces/edge_codesign.yaml
    """
    if reproduce:
        from dse.cli.reproduce_command import reproduce_claims

        paths = [study_path(file) for file in files]
        reproduce_claims(paths, storage, output, assumptions=assumptions)
        return
    if assumptions:
        raise typer.BadParameter("--assumptions needs --reproduce: a plain check runs no study")
    if storage is not None:
        raise typer.BadParameter("--storage needs --reproduce: a plain check runs no study")
    from dse.services.doctor.check_files import judged_file

    judged = [judged_file(file) for file in files]
    if output is OutputFormat.JSON:
        show_json(judged)
    else:
        _print(judged)
    if not all(one["ok"] for one in judged):
        raise typer.Exit(2)


def _print_unprobed_evaluators(judged: JudgedFile) -> None:
    """Print which evaluators were not probed on sample designs, why, and how to run them."""
    starting = [name for name, programs in judged["not_probed"].items() if programs]
    others = [name for name, programs in judged["not_probed"].items() if not programs]
    for names, one, several in (
        (starting, "evaluator starts a program", "evaluators start programs"),
        (others, "model is not declared pure", "models are not declared pure"),
    ):
        if names:
            what = f"1 {one}" if len(names) == 1 else f"{len(names)} {several}"
            them = "it" if len(names) == 1 else "them"
            show(f"  {what}: not probed; dse evaluate runs {them} ({', '.join(names)})")


def _print_notes(judged: JudgedFile) -> None:
    for name, notes in judged["notes"].items():
        for note in notes:
            show(f"  {name}: {note}")


def _print(judged: list[JudgedFile]) -> None:
    from dse.errors import unchecked_words

    for one in judged:
        if one["ok"]:
            show(f"{one['file']}: ok. {one['summary']}")
            _print_unprobed_evaluators(one)
            _print_notes(one)
    broken = [error for one in judged for error in one["errors"]]
    for error in broken:
        say(f"error: {error['message']}")
    if broken:
        say(f"{len(broken)} mistake{'s' if len(broken) > 1 else ''}")
    for one in judged:
        if one["unchecked"]:
            say(unchecked_words(one["unchecked"], len(one["errors"])))

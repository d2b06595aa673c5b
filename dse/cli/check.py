"""``dse check``: judge files without running what is measured, and without any program."""

from __future__ import annotations

from typing import Annotated

import typer

from dse.cli import completion as completing
from dse.cli.options import OutputFormat, ToldOption, say, show, show_json, study_path
from dse.report.schemas.reproduction import JudgedFile

ReproduceOption = Annotated[
    bool, typer.Option("--reproduce", help="Run the studies and judge the claims that they state.")
]
AssumptionsOption = Annotated[
    bool,
    typer.Option(
        "--assumptions",
        help="With --reproduce: run the studies at both ends of each assumption too.",
    ),
]
KeptIn = Annotated[
    str | None,
    typer.Option(
        "--storage",
        help="Keep the reproduced studies here, to go on with; else they are forgotten.",
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
    output: ToldOption = OutputFormat.TABLE,
) -> None:
    """Judge study and space files; report each mistake with its line and its correction.

    No program that a file names is started: what was not tried for that reason is listed.
    With --reproduce the studies are run, and the claims of papers that they state are held against
    what comes out: exit code 1 if one does not come out as it is labelled. With --assumptions they
    are run at both ends of what they assume as well.

    Example: dse check studies/quickstart.yaml spaces/edge_codesign.yaml
    """
    if reproduce:
        from dse.cli.reproduce import reproduce_claims

        paths = [study_path(file) for file in files]
        reproduce_claims(paths, storage, output, assumptions=assumptions)
        return
    if assumptions:
        raise typer.BadParameter("a plain check runs nothing: --assumptions goes with --reproduce")
    if storage is not None:
        raise typer.BadParameter("a plain check runs nothing: --storage goes with --reproduce")
    from dse.services.doctor.check_files import judged_file

    told = [judged_file(file) for file in files]
    if output is OutputFormat.JSON:
        show_json(told)
    else:
        _print(told)
    if not all(one["ok"] for one in told):
        raise typer.Exit(2)


def _print_unprobed_evaluators(told: JudgedFile) -> None:
    """Print which evaluators were not called, and how they can be called."""
    starting = [name for name, programs in told["not_probed"].items() if programs]
    others = [name for name, programs in told["not_probed"].items() if not programs]
    for names, one, several in (
        (starting, "evaluator starts a program", "evaluators start programs"),
        (others, "model is not declared pure", "models are not declared pure"),
    ):
        if names:
            what = f"1 {one}" if len(names) == 1 else f"{len(names)} {several}"
            them = "it" if len(names) == 1 else "them"
            show(f"  {what}: not probed; dse evaluate runs {them} ({', '.join(names)})")


def _print(told: list[JudgedFile]) -> None:
    from dse.errors import unchecked_words

    for one in told:
        if one["ok"]:
            show(f"{one['file']}: ok. {one['summary']}")
            _print_unprobed_evaluators(one)
    broken = [error for one in told for error in one["errors"]]
    for error in broken:
        say(f"error: {error['message']}")
    if broken:
        say(f"{len(broken)} mistake{'s' if len(broken) > 1 else ''}")
    for one in told:
        if one["unchecked"]:
            say(unchecked_words(one["unchecked"], len(one["errors"])))

"""The ``dse`` command: its subcommands, and what every mistake of a user ends in."""

from __future__ import annotations

import os
import sys

import typer

from dse.cli import (
    assets,
    check,
    compare,
    completing,
    doctor,
    effects,
    environments,
    evaluate,
    exchange,
    init,
    inspect_study,
    manage,
    plugins,
    portability,
    report,
    run,
    serve,
    space,
    space_describe,
    space_designs,
    space_why,
    sweep,
    verify,
)

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
USER_ERROR = 2

app = typer.Typer(
    name="dse",
    help="Design-space exploration for ML systems: write a space and a question, get the front.",
    epilog="Start with: dse run library:studies/quickstart.yaml",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
studies = typer.Typer(help="The studies of a storage.", no_args_is_help=True)
plugged = typer.Typer(help="Evaluators, optimizers, executors and storages.", no_args_is_help=True)
spaces = typer.Typer(help="Look at a space.", no_args_is_help=True)
data = typer.Typer(help="Models and data that measurements need.", no_args_is_help=True)
apart = typer.Typer(help="Programs in environments of their own.", no_args_is_help=True)

app.command("init")(init.init)
app.command("run")(run.run)
app.command("resume")(run.resume)
app.command("verify")(verify.verify)
app.command("status")(inspect_study.status)
app.command("front")(inspect_study.front)
app.command("trials")(inspect_study.trials)
app.command("compare")(compare.compare)
app.command("sweep")(sweep.sweep)
app.command("effects")(effects.effects)
app.command("report")(report.report)
app.command("serve")(serve.serve)
app.command("check")(check.check)
app.command("doctor")(doctor.doctor)
app.command("evaluate")(evaluate.evaluate)
spaces.command("count")(space.count)
spaces.command("describe")(space_describe.describe)
spaces.command("why")(space_why.why)
spaces.command("sample")(space_designs.sample)
spaces.command("neighbours")(space_designs.neighbours)
spaces.command("enumerate")(space_designs.enumerate_)
spaces.command("export")(exchange.export)
spaces.command("import")(exchange.import_)
spaces.command("diff")(exchange.diff)
plugged.command("list")(plugins.list_plugins)
plugged.command("show")(plugins.show_plugin)
studies.command("list")(manage.list_studies)
studies.command("delete")(manage.delete_study)
studies.command("migrate")(manage.migrate_study)
studies.command("export")(portability.export_study)
studies.command("import")(portability.import_study)
studies.command("merge")(portability.merge_studies)
data.command("list")(assets.list_assets)
data.command("install")(assets.install_assets)
data.command("where")(assets.where_assets)
data.command("remove")(assets.remove_assets)
apart.command("list")(environments.list_environments)
apart.command("install")(environments.install_environments)
apart.command("where")(environments.where_environments)
apart.command("remove")(environments.remove_environments)
app.add_typer(spaces, name="space")
app.add_typer(plugged, name="plugins")
app.add_typer(studies, name="studies")
app.add_typer(data, name="assets")
app.add_typer(apart, name="environments")


@app.callback(invoke_without_command=True)
def version(
    *,
    show: bool = typer.Option(False, "--version", help="Print the version and stop."),  # noqa: FBT003
) -> None:
    """Design-space exploration for ML systems: write a space and a question, get the front."""
    if show:
        from dse import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command; end with a line and a code, never with a traceback for a user's mistake."""
    for variable in _THREADS:  # before any library counts the cores: a study fills them itself
        os.environ.setdefault(variable, "1")
    from dse.errors import DseError

    try:
        if completing.VARIABLE in os.environ:
            completing.complete(app)
        app()
    except DseError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(USER_ERROR)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        sys.exit(0)

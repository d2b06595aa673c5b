"""A password is planted wherever one is given, and every byte is searched that could tell it."""

import json
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from sqlalchemy import create_engine, inspect, make_url, text
from starlette.testclient import TestClient
from typer.testing import CliRunner

from dse.cli.app import app
from dse.interop.archive import archive as portable
from dse.serve.access import AccessRules
from dse.serve.runners import Runners
from dse.serve.server import application
from dse.storage.sql.database_storage import SqlStorage
from tests.postgresql_servers import POSTGRES, needs_postgres, new_schema

SECRET = "hush/Qx7@9 Zk"
FORMS = (SECRET, quote(SECRET, safe=""), quote_plus(SECRET), quote(SECRET))
PARTS = ("hush", "Qx7", "9 Zk", "9%20Zk", "9+Zk")
AWAY = f"postgresql+psycopg://me:{quote(SECRET, safe='')}@127.0.0.1:1/dse"
TOKEN = f"{SECRET}-and-more"

SPY = """
import glob, json, os, sys
design = json.load(sys.stdin)
seen = {"environment": dict(os.environ), "lines": []}
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        seen["lines"].append(open(path, errors="replace").read())
    except OSError:
        pass
with open(f"seen-{os.getpid()}.json", "w") as file:
    json.dump(seen, file)
if design["n"] == 2:
    sys.exit(f"failed with {os.environ}")
print(json.dumps({"time": 1 / design["n"]}))
"""
STUDY = """
study: NAME
space: space.yaml
# once in AWAY
evaluators:
  spy: {use: command, run: [PYTHON, SPY], metrics: {time: s}}
  size: {use: expression, metrics: {area: {formula: n + 3}}}
objectives: [{minimize: spy.time}, {minimize: size.area}]
optimizer: {use: random}
executor: EXECUTOR
budget: {measurements: 3}
storage: AWAY
"""
SPACE = "space: s\nparameters: {n: {ordinal: [1, 2, 4]}}  # of AWAY\n"


def told(words):
    """All that a command says, its traceback too where there is one."""
    result = CliRunner().invoke(app, words)
    error = result.exception
    chain = []
    while error is not None and not isinstance(error, SystemExit):
        chain.append(f"{error!r} {error}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return f"{result.output}\n{chain}"


def check(where, content):
    content = content.decode("latin-1") if isinstance(content, bytes) else content
    for part in (*FORMS, *PARTS):
        place = content.find(part)
        assert place < 0, f"{where}: {content[max(0, place - 200) : place + 100]!r}"


def written(folder, monkeypatch, name, executor):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DSE_TOKEN", TOKEN)
    (folder / "spy.py").write_text(SPY)
    (folder / "space.yaml").write_text(SPACE.replace("AWAY", AWAY))
    study = STUDY.replace("AWAY", AWAY).replace("PYTHON", sys.executable).replace("NAME", name)
    study = study.replace("EXECUTOR", executor).replace("SPY", str(folder / "spy.py"))
    (folder / f"{name}.yaml").write_text(study)
    return f"{name}.yaml"


def used(folder, storage, name, file):
    """Use a study in every way that shows it; what was said comes back."""
    said = [told(["run", file, *storage])]
    for words in (
        ["check", file],
        ["run", file, "--measurements", "2"],
        ["resume", name, "--trials", "9"],
        ["status"],
        ["status", name, "--format", "json"],
        ["front", name],
        ["trials", name, "--format", "csv"],
        ["trials", name, "--format", "json"],
        ["studies", "list"],
        ["verify", name],
        ["front", "nothing"],
        ["doctor"],
        ["doctor", "--format", "json"],
        ["report", name, "-o", "report.html"],
        ["studies", "export", name, "-o", "out.jsonl"],
        ["studies", "export", name, "-o", "out.jsonl", "--with-machine"],
        ["studies", "export", name, "-o", "out.parquet"],
        ["studies", "export", name, "-o", "out.csv"],
        ["studies", "import", "out.jsonl", "--name", f"{name} again"],
        ["sweep", file, "--seeds", "1", "--optimizer", "random", "--name", f"{name} swept"],
    ):
        plain = words[0] == "check"
        said.append(f"{words} {told(words if plain else [*words, *storage])}")
    for url in (AWAY, AWAY.replace("postgresql", "postgres"), f"me:{SECRET}@host/dse"):
        said += [told([*words, "--storage", url]) for words in (["status"], ["doctor"])]
        said.append(told(["studies", "export", name, "--optuna", url, *storage]))
    return said


def pages(url, name):
    with TestClient(application(url, AccessRules.at("127.0.0.1", token=TOKEN))) as client:
        for path in (
            *("/", "/compare", "/login", "/api/studies", "/api/openapi.json", "/studies/none"),
            *(f"/studies/{name}{rest}" for rest in ("", "/parts", "/trials", "/trials/0")),
            f"/studies/{name}/report",
            *(f"/api/studies/{name}{rest}" for rest in ("", "/figures", "/trials")),
            f"/studies/{name}/download/study.jsonl",
        ):
            answer = client.get(path, headers={"host": "127.0.0.1:8321"})
            yield path, f"{answer.headers}{answer.text}"


def searched(folder):
    """Search all files of the folder but those in which it was planted."""
    found = [one for one in sorted(folder.rglob("*")) if one.is_file()]
    for path in found:
        if path.suffix != ".yaml":
            check(path.name, path.read_bytes())
    check("out.parquet", repr(portable.read_archive(folder / "out.parquet")))
    seen = [json.loads(one.read_text()) for one in found if one.name.startswith("seen-")]
    assert len(seen) >= 3
    assert all("PATH" in one["environment"] and one["lines"] for one in seen)


def driven_by_the_server(url, name):
    """Go on with a study as the live view does: in a process that it starts."""
    runners = Runners(url=url)
    try:
        runners.start(name, ["--trials", "12", "--measurements", "12"])
        until = time.monotonic() + 300
        while runners.of(name).runs and time.monotonic() < until:
            time.sleep(0.05)
        return runners.of(name).log.read_text()
    finally:
        runners.close()


@pytest.mark.parametrize("executor", ["serial", "{use: processes, workers: 1}"])
def test_a_password_and_a_token_are_nowhere_but_where_they_were_given(
    executor, tmp_path, monkeypatch, caplog
):
    file = written(tmp_path, monkeypatch, "planted", executor)
    monkeypatch.setenv("DSE_STORAGE", AWAY)
    url = f"sqlite:///{tmp_path}/dse.db"
    for said in used(tmp_path, ["--storage", url], "planted", file):
        check("said", said)
    for path, page in pages(url, "planted"):
        check(path, page)
    assert SqlStorage(url).trials("planted")
    if executor == "serial":
        check("the driver's log", driven_by_the_server(url, "planted"))
    check("log", caplog.text)
    searched(tmp_path)


@contextmanager
def role():
    """A schema of a user whose password is the secret, by its URL."""
    with new_schema() as schema:
        server = create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
        own = make_url(schema).query["options"].partition("=")[2]
        with server.connect() as connection:
            connection.exec_driver_sql(f"CREATE ROLE {own}_user LOGIN PASSWORD '{SECRET}'")
            connection.exec_driver_sql(f"GRANT ALL ON SCHEMA {own} TO {own}_user")
            try:
                url = make_url(schema).set(username=f"{own}_user", password=SECRET)
                yield url, own, server
            finally:
                connection.exec_driver_sql(f"DROP OWNED BY {own}_user")
                connection.exec_driver_sql(f"DROP ROLE {own}_user")
        server.dispose()


@needs_postgres
@pytest.mark.parametrize("given", ["in the URL", "in the query", "in PGPASSWORD"])
def test_on_a_server_too(given, tmp_path, monkeypatch, caplog):
    with role() as (whole, schema, server):
        url = whole
        if given == "in PGPASSWORD":
            monkeypatch.setenv("PGPASSWORD", SECRET)
            monkeypatch.setattr("dse.system.credentials._taken", {})
            url = url._replace(password=None)
        elif given == "in the query":
            url = url._replace(password=None).update_query_dict({"password": SECRET})
        address = url.render_as_string(hide_password=False)
        monkeypatch.setenv("DSE_STORAGE", address)
        file = written(tmp_path, monkeypatch, "planted", "{use: processes, workers: 1}")
        (tmp_path / "spy.py").write_text("raise SystemExit('no')" + SPY)
        said = told(["run", file, "--measurements", "1"])
        if given != "in PGPASSWORD":
            assert 'dse studies delete planted --storage "$DSE_STORAGE"' in said
        check("said", said)
        told(["studies", "delete", "planted", "--yes"])
        (tmp_path / "spy.py").write_text(SPY)
        for said in used(tmp_path, [], "planted", file):
            check("said", said)
        for path, page in pages(address, "planted"):
            check(path, page)
        with server.connect() as connection:
            for table in inspect(connection).get_table_names(schema=schema):
                rows = connection.execute(text(f"SELECT t::text FROM {schema}.{table} t"))
                check(table, "\n".join(row[0] for row in rows))
        check("log", caplog.text)
        searched(tmp_path)


def test_what_searches_finds(tmp_path):
    for form in FORMS:
        (tmp_path / "file").write_text(f"a {form} b")
        with pytest.raises(AssertionError):
            check("file", Path(tmp_path / "file").read_bytes())

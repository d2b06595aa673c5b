"""Passwords of storage URLs: hidden wherever a URL is shown, kept out of children's environments."""

import os
import shlex
import subprocess
import sys
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dse.errors import DseError, SpecError, StorageError
from dse.schema.study.plugin_checks import check_storage
from dse.system.credentials import (
    children_environment,
    has_secret,
    mask,
    mask_url,
    private_environment,
    storage_words,
    take_password,
)

SECRET = "hush-Qx7"

FORMS = (
    "postgresql://me:{}@host/db",
    "postgresql+psycopg://me:{}@host:5432/db?sslmode=require",
    "postgresql://:{}@host/db",
    "postgresql://me%3A{}@host/db",
    "postgresql://me:{}@[::1]:5432/db",
    "postgresql://me:{}@one,two:5433/db?target_session_attrs=any",
    "postgresql:///db?user=me&password={}&host=/run",
    "postgresql://host/db?p%61ssword={}",
    "postgresql://host/db?sslpassword={}&sslmode=require",
    "postgresql://host/db?passfile=/home/me/{}",
    "postgresql://host/db?options=-c%20role={}",
    "postgresql://host/db?scram_client_key={}",
    "sqlite:///studies.db?password={}",
    "postgres://me:{}@host/db",
    "postgersql://me:{}@host/db",
    "mysql+pymysql://me:{}@host/db",
    "postgresql:/me:{}@host/db",
    "postgresql://me/you:{}@host/db",
    "postgresql://me:{}/db",
    "postgresql://me:{}",
    "postgresql:///me:{}@host/db",
)
RAW = st.text(st.sampled_from("abcXYZ019@:/?#[]%&=+ '\"\\!$-._~ü"), min_size=0, max_size=12).map(
    lambda text: f"{text[: len(text) // 2]}{SECRET}{text[len(text) // 2 :]}"
)


@given(password=RAW, form=st.sampled_from([one for one in FORMS if "@" in one]))
@example(password=f"a@{SECRET}/b", form=FORMS[0])
@example(password=f"1234/{SECRET}", form=FORMS[0])
@example(password=f"a b?c={SECRET}", form=FORMS[0])
def test_no_part_of_a_password_before_an_at_is_shown(password, form):
    assert SECRET not in mask_url(form.format(password))
    assert SECRET not in mask_url(form.format(quote(password, safe="")))
    coded = form.format(quote(password, safe=""))
    for text in (coded, f"{coded!r} is no URL", f"cannot use {coded}: why\nsee a@b", f"({coded})"):
        assert SECRET not in mask(text)
    assert SECRET not in mask(f"{form.format(password)!r} is no URL")


@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_a_password_is_hidden_and_the_rest_stays(form):
    url = form.format(SECRET)
    assert has_secret(url)
    for text in (mask_url(url), mask(f"{url!r} is no URL"), mask(f"no study in {url}; begin one")):
        assert SECRET not in text
        assert "***" in text
    assert "host" not in form or "host" in mask_url(url)


@given(password=RAW, user=st.sampled_from(["me", "", "me%40corp"]))
def test_an_error_never_quotes_a_password(password, user):
    url = f"postgresql://{user}:{password}@/db?host="
    with pytest.raises(SpecError) as caught:
        check_storage(url)
    shown = f"{caught.value} {caught.value!r} {caught.value.args} {caught.value.problem}"
    assert SECRET not in shown
    assert caught.value.__cause__ is None or SECRET not in str(caught.value.__cause__)


def test_words_of_errors_are_masked_in_every_part():
    error = DseError(
        f"no study in {FORMS[0].format(SECRET)}",
        where=FORMS[6].format(SECRET),
        hint=f"host=h password='{SECRET}' dbname=d",
    )
    again = error.at(f"line 1 of {FORMS[1].format(SECRET)}")
    for one in (error, again):
        assert SECRET not in f"{one} {one!r} {one.problem} {one.where} {one.hint} {one.args}"
    assert "password=***" in error.hint


@pytest.mark.parametrize(
    "text",
    [
        "sqlite:///dse.db",
        "sqlite:////home/ann@corp/10:30/dse.db",
        "postgresql+psycopg://me@host:5432/db",
        "postgresql://me@/db?host=/tmp/x&connect_timeout=5",
        "look at http://127.0.0.1:8321/#token=abc, or ask ann@corp",
        "memory://",
        "postgresql://host:5432/db: is the server up?",
        "see ray://10.0.0.1:10001",
        "postgresql://h:5432, which is away",
        "time@slow: 10 ms",
        "a password must be given",
        "bench.py:12: ValueError: 3:4@x",
    ],
)
def test_what_holds_no_password_stays(text):
    assert mask(text) == text


def test_a_hint_names_a_storage_in_words_that_a_shell_can_run(monkeypatch):
    url = FORMS[0].format(SECRET)
    monkeypatch.delenv("DSE_STORAGE", raising=False)
    assert shlex.split(storage_words("sqlite:///a b.db")) == ["--storage", "sqlite:///a b.db"]
    assert storage_words(url).startswith("--storage postgresql://me@host/db (its password: PG")
    assert SECRET not in storage_words(FORMS[6].format(SECRET))
    assert storage_words(FORMS[6].format(SECRET)).startswith('--storage "$DSE_STORAGE" (set')
    monkeypatch.setenv("DSE_STORAGE", url)
    assert storage_words(url) == '--storage "$DSE_STORAGE"'
    with private_environment():
        assert storage_words(url) == '--storage "$DSE_STORAGE"'


def test_words_of_the_command_are_not_left_where_workers_get_them(monkeypatch, tmp_path, capsys):
    from dse.cli.app import main

    monkeypatch.chdir(tmp_path)
    away = f"postgresql://me:{SECRET}@127.0.0.1:1/db?connect_timeout=2"
    monkeypatch.setattr(sys, "argv", ["dse", "status", "--storage", away])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "127.0.0.1" in capsys.readouterr().err
    assert sys.argv == ["dse", "status", "--storage", away.replace(SECRET, "***")]


def test_children_get_neither_storage_nor_token(monkeypatch):
    monkeypatch.setenv("DSE_STORAGE", FORMS[0].format(SECRET))
    monkeypatch.setenv("DSE_TOKEN", SECRET)
    monkeypatch.setenv("MINE", "stays")
    names = {"DSE_STORAGE", "DSE_TOKEN"}
    assert not names & children_environment().keys()
    assert children_environment()["MINE"] == "stays"
    code = "import os; print(sorted(os.environ))"
    with private_environment():
        told = subprocess.check_output([sys.executable, "-I", "-S", "-c", code], text=True)
    assert not any(name in told for name in names)  # a test's own server has a DSE_ name too
    assert "MINE" in told
    assert names < os.environ.keys()


def test_a_password_of_the_server_is_the_programs_own_until_a_storage_takes_it(monkeypatch):
    monkeypatch.setattr("dse.system.credentials._taken", {})
    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert children_environment()["PGPASSWORD"] == SECRET
    assert take_password() == SECRET
    assert "PGPASSWORD" not in children_environment()
    with private_environment():
        assert "PGPASSWORD" not in os.environ
        assert take_password() == SECRET


# -- URLs that are none ---------------------------------------------------------------------------

WRONG = {
    "postgresql://": "postgresql+psycopg://user@host",
    "postgresql+psycopg://:@": "postgresql+psycopg://user@host",
    "postgresql://me:hush@host:abc/db": "port that is no number",
    "postgresql://me@host:99999/db": "1 to 65535",
    "postgresql://me@host:0/db": "1 to 65535",
    "postgresql://me@host:1\uff12/db": "port that is no number",
    "postgresql://me:hush/db": "port that is no number",
    "postgresql://one:5432,two:x/db": "port that is no number",
    "postgresql+foo://me@host/db": "did you mean postgresql+psycopg?",
    "postgresql+psycopg2://me@host/db": "psycopg2",
    "postgresql://me:hush@my host/db": "a space or a quote",
    "postgresql://me@host/db?host=": "gives 'host' no value",
    "postgresql://me@host/db?sslmode": "gives 'sslmode' no value",
    "postgresql://me@host/db?pasword=hush": "did you mean 'password'?",
    "postgresql://me@host/db?zzz=hush": "unknown parameter 'zzz'",
    "postgresql://me@host/db?connect_timeout=soon": "whole number of seconds",
    "postgresql://me:%zz@host/db": "'%' itself is written %25",
    "postgresql://me:hu%@host/db": "'%' itself is written %25",
    "postgresql://me:hu@sh@host/db": "'@' as %40",
    "postgresql://me:hu/sh@host/db": "'/' as %2F",
    "postgresql://me:hu?sh@host/db": "'?' as %3F",
    "postgresql://[::1/db": "[::1]:5432",
    "postgresql://[zz]/db": "[::1]:5432",
    "postgresql:/me:hush@host/db": "write postgresql+psycopg://me:***@host/db",
    "postgresql:me:hush@host/db": "write postgresql+psycopg://",
    "postgres://me:hush@host/db": "write postgresql+psycopg://me:***@host/db",
    "psycopg2://me:hush@host/db": "write postgresql+psycopg://me:***@host/db",
    "me:hush@host/db": "write postgresql+psycopg://me:***@host/db",
    "postgersql://me:hush@host/db": "did you mean 'postgresql'?",
    "sqlit:///dse.db": "did you mean 'sqlite'?",
    "mysql://me:hush@host/db": "postgresql+psycopg://user@host",
    "sqlite:///": "sqlite:///relative.db",
    "sqlite://": "sqlite:///relative.db",
    "sqlite://dse.db": "sqlite:///dse.db",
    "sqlite:dse.db": "sqlite:///dse.db",
    "sqlite+foo:///dse.db": "sqlite:///relative.db",
    "sqlite:///:memory:": "memory://",
    "sqlite:///dse.db?password=hush": "unknown parameter 'password'",
    "sqlite:///dse.db?timeout=soon": "whole number of seconds",
    "sqlite:///no/such/folder/dse.db": "mkdir -p",
    "sqlite:///.": "check that it is a file",
    "sqlite:///a\0b": "contains a NUL character",
    "memory://here": "memory://",
    "dse.db": "sqlite:///dse.db",
    "://": "sqlite:///relative.db",
    "": "sqlite:///relative.db",
    " ": "sqlite:///relative.db",
}


@pytest.mark.parametrize("url", WRONG)
def test_a_url_that_is_none_is_told_with_the_nearest_that_is(url, tmp_path, monkeypatch):
    from dse.study.storage_access import opened_storage

    monkeypatch.chdir(tmp_path)
    with pytest.raises(DseError) as caught:
        opened_storage(url, begins=True)
    assert isinstance(caught.value, SpecError | StorageError | DseError)
    assert WRONG[url] in str(caught.value)
    assert "hu" not in str(caught.value).replace("***", "")
    assert not list(tmp_path.iterdir())

"""What the tests of the live view look at: two small studies, hostile names, and a program."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dse.core.metric import Failure
from dse.core.trial import Driver, Event, Outcome, Report, State
from dse.protocols import Storage
from dse.schema.study.budget import Budget
from dse.serve.access import AccessRules
from dse.serve.server import application, server
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

TOKEN = "a-token-that-nobody-guesses"
HOSTILE = (
    "<script>alert(1)</script>",
    "\"' onmouseover='alert(2)",
    "x" * 10_000,
    "a/../../b",
    "line\nbreak",
    "`${alert(1)}`]]>&lt;b&gt;",
    "\u202egnp.exe\u2066",
)
REASON = "<img src=x onerror=alert(3)>"
TEXTS = (
    REASON,
    "</script><script>alert(1)</script>",
    "--><svg onload=alert(1)>]]>",
    "\"'`${alert(1)}`' onmouseover=alert(1) x=\"",
    "\u202egnp.exe\u2066 {{7*7}} %3Cscript%3E &lt;script&gt;",
    "long <" * 1_700,
)
"""What stands wherever a study may have words of its own."""

QUICK = """
const before = window.setTimeout;
window.setTimeout = (act, ms, ...more) => before(act, ms / 20, ...more);
"""

SPACE = """
space: toy
parameters:
  a: {integer: [1, 64]}
  b: {integer: [1, 64]}
  mode: {choice: [slow, fast]}
  bits: {choice: [4, 8], when: "mode == 'fast'"}
constraints: ["a * b <= 1024"]
"""

STUDY = """
study: toy
question: Which <b>toy</b> is best?
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: 1000 / (a * b) * 1 s, unit: s}, area: {formula: a * b + 3}}}
objectives: [{minimize: chip.time}, {minimize: chip.area}]
constraints: [chip.area <= 700]
optimizer: random
budget: {trials: 60}
seed: 5
unread: [mode, bits]
"""

PROGRAM = """
sleep 0.08
awk -F'[:,}]' '{
  printf "{\\"step\\": 1, \\"loss\\": %g}\\n", 200 / ($2 * $4)
  if ($2 * $4 > 1000) print "{\\"infeasible\\": \\"a times b is too much\\"}"
  else printf "{\\"loss\\": %g, \\"power\\": %g}\\n", 100 / ($2 * $4), $2 + 2 * $4
}'
"""

MEASURED = """
study: measured
space: space.yaml
evaluators:
  lab: {use: command, run: [sh, SCRIPT], metrics: {loss: "", power: W}, reads: [a, b]}
objectives: [{minimize: lab.loss}, {minimize: lab.power}]
optimizer: random
executor: {use: processes, workers: 1}
budget: {measurements: 400}
seed: 3
unread: [mode, bits]
"""

HOSTILE_SPACE = "{space: hostile, parameters: {a: {integer: [1, 64]}, word: {choice: WORDS}}}"

HOSTILE_STUDY = """
study: hostile
question: QUESTION
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {time: {formula: 1000 / a * 1 s, unit: s}, area: {formula: a + 3}}}
objectives: [{minimize: chip.time}, {minimize: chip.area}]
optimizer: random
budget: {trials: 12}
unread: [word]
"""


@pytest.fixture(scope="session")
def hostile_study(storage: Storage, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A study of the storage with markup wherever words can be."""
    path = tmp_path_factory.mktemp("hostile") / "study.yaml"
    words = json.dumps([text[:150] for text in TEXTS])
    question = json.dumps(" ".join(TEXTS)[:900])
    path.write_text(HOSTILE_STUDY.replace("QUESTION", question))
    path.with_name("space.yaml").write_text(HOSTILE_SPACE.replace("WORDS", words))
    StudyEngine.open(path, storage=storage).run(budget=Budget(trials=12))
    designs = [trial.design for trial in storage.trials("hostile")[:6]]
    storage.add("hostile", designs)
    failures = [Failure(kind="raised", reason=text) for text in TEXTS]
    told = {n: Outcome(state=State.FAILED, failure=f) for n, f in enumerate(failures, start=12)}
    storage.retry("hostile", told)
    storage.finish("hostile", told, [Event(kind=text[:40], text=text) for text in TEXTS])
    reports = [Report(number=12, step=n, metrics={text: 1.0}) for n, text in enumerate(TEXTS)]
    storage.report("hostile", reports)
    storage.enter("hostile", Driver(host=f"{REASON} 1 2", pid=77))
    return "hostile"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("studies")
    (made / "space.yaml").write_text(SPACE)
    (made / "toy.yaml").write_text(STUDY)
    (made / "measure.sh").write_text(PROGRAM)
    (made / "measured.yaml").write_text(MEASURED.replace("SCRIPT", str(made / "measure.sh")))
    return made


@pytest.fixture(scope="session")
def storage(folder: Path) -> Storage:
    """Two studies that ran, one that is damaged, and one of each hostile name."""
    kept = MemoryStorage()
    for seed in (5, 6):
        StudyEngine.open(folder / "toy.yaml", name=f"toy {seed}", storage=kept, seed=seed).run()
    spec = kept.spec("toy 5")
    for name in HOSTILE:
        kept.create(name, spec)
        kept.add(name, [kept.trials("toy 5")[0].design])
        failure = Failure(kind="raised", reason=REASON)
        kept.finish(name, {0: Outcome(state=State.FAILED, failure=failure)})
    kept.create("senseless", {"path": "nowhere"})
    return kept


@pytest.fixture(scope="session")
def local() -> AccessRules:
    return AccessRules.at("127.0.0.1", token=TOKEN)


@pytest.fixture(scope="session")
def client(storage: Storage, local: AccessRules) -> Iterator[TestClient]:
    app = application(storage, local)
    with TestClient(app, base_url="http://127.0.0.1:8321", raise_server_exceptions=False) as made:
        yield made


@pytest.fixture(scope="session")
def writer(client: TestClient) -> dict[str, str]:
    """The headers of somebody who may change things."""
    return {"authorization": f"Bearer {TOKEN}"}


@contextmanager
def served(storage: Storage | str, gate: AccessRules, port: int = 0) -> Iterator[str]:
    """The address of a real server, until the block is left."""
    said: list[str] = []
    made = server(storage, gate, "127.0.0.1", port, said.append)
    thread = threading.Thread(target=made.run)
    thread.start()
    until = time.monotonic() + 300
    while not said and thread.is_alive() and time.monotonic() < until:
        time.sleep(0.01)
    try:
        yield said[0].removeprefix("look at ").partition("/#")[0]
    finally:
        made.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def server_at():
    """Opens a real server over a storage: a context that gives its address."""
    return served


@pytest.fixture(scope="session")
def address(storage: Storage, hostile_study: str, local: AccessRules) -> Iterator[str]:
    """A server over studies that ran, those of hostile names and words among them."""
    with served(storage, local) as found:
        yield found


@pytest.fixture
def quick(chromium: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pages whose waiting takes a twentieth of its time, and a server that is as quick."""
    monkeypatch.setattr("dse.serve.server_sent_events.AGAIN_MS", 100)
    monkeypatch.setattr("dse.serve.server_sent_events._AWAY_S", 0.1)
    made = chromium.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": QUICK})
    yield
    chromium.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", made)


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """The browser at its usual size, in light colours, with an empty log and nothing kept."""
    chromium.set_window_size(1400, 1000)
    chromium.get_log("browser")
    yield chromium
    chromium.get("about:blank")

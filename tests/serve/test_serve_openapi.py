"""The API keeps what its OpenAPI says, whatever is asked of it over HTTP."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dse.serve.access import AccessRules

TOKEN = "x" * 20
STREAM = ("GET", "/api/studies/{name}/events")  # it has no end
OPERATIONS = [
    ("GET", "/api/studies"),
    ("GET", "/api/studies/{name}"),
    ("GET", "/api/studies/{name}/front"),
    ("GET", "/api/studies/{name}/figures"),
    ("GET", "/api/studies/{name}/trials"),
    ("GET", "/api/studies/{name}/trials/{number}"),
    ("POST", "/api/studies/{name}/start"),
    ("POST", "/api/studies/{name}/pause"),
    ("POST", "/api/studies/{name}/designs"),
    ("POST", "/api/session"),
]
SHORT = settings(
    max_examples=8,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def described(storage, server_at):
    with server_at(storage, AccessRules.at("127.0.0.1", token=TOKEN)) as address:
        yield schemathesis.openapi.from_url(f"{address}/api/openapi.json")


def test_every_operation_is_asked(described) -> None:
    found = {
        (method.upper(), path)
        for path, item in described.raw_schema["paths"].items()
        for method in item
    }
    assert found == {*OPERATIONS, STREAM}


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_who_has_no_token_is_answered_as_it_was_described(described, method, path) -> None:
    @SHORT
    @given(case=described[path][method].as_strategy())
    def asked(case) -> None:
        case.call_and_validate()

    asked()


@pytest.mark.parametrize("study", [None, "toy 5"])
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_an_answer_is_what_was_described(described, method: str, path: str, study) -> None:
    operation = described[path][method]
    modes = [schemathesis.GenerationMode.POSITIVE]
    if study is None:  # else what was wrong may have been the name
        modes.append(schemathesis.GenerationMode.NEGATIVE)

    @SHORT
    @given(data=st.data())
    def asked(data) -> None:
        mode = data.draw(st.sampled_from(modes))
        case = data.draw(operation.as_strategy(generation_mode=mode))
        if study is not None and "name" in case.path_parameters:
            case.path_parameters["name"] = study
        case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"})

    asked()

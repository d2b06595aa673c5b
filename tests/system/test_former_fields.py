"""Former names of fields and classes: given, read, and with a warning."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from dse.core import metric
from dse.core.metric import Failure, Metrics
from dse.core.trial import Outcome, State

BROKEN = Failure(kind="raised", reason="no")


def test_a_field_is_given_and_read_by_its_former_name() -> None:
    with pytest.warns(DeprecationWarning, match=r"Metrics\.faults is Metrics\.failures now"):
        old = Metrics(columns={"y": np.ones(1)}, faults={0: BROKEN})  # type: ignore[call-arg]
    assert old.failures == {0: BROKEN}
    with pytest.warns(DeprecationWarning, match=r"until 0\.3"):
        assert old.faults == {0: BROKEN}  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match=r"Outcome\.fault"):
        assert Outcome(state=State.FAILED, fault=BROKEN).failure == BROKEN  # type: ignore[call-arg]


def test_a_class_is_found_by_its_former_name() -> None:
    with pytest.warns(DeprecationWarning, match="Fault is Failure now"):
        assert metric.Fault is Failure  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="Faulty"):
        _ = metric.Faulty  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("error")
def test_copies_and_absent_attributes_do_not_warn() -> None:
    outcome = Outcome(state=State.FAILED, failure=BROKEN)
    assert pickle.loads(pickle.dumps(outcome)) == copy.deepcopy(outcome) == outcome
    with pytest.raises(AttributeError, match="faulty"):
        _ = outcome.faulty  # type: ignore[attr-defined]

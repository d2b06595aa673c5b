"""Designs as points for surrogates."""

import numpy as np

from dse.core.design import Design
from dse.core.encoding import encoded
from dse.core.expressions.parser import parse
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.space import DesignSpace

SPACE = DesignSpace(
    parameters=(
        Real(name="clock", low=1.0, high=100.0, scale="log"),
        Ordinal(name="tp", values=(1, 2, 4, 8, 16)),
        Integer(name="width", low=1, high=16, scale="log"),
        Choice(name="format", values=("int8", "fp8", "mxfp4")),
        Choice(name="symmetric", values=(False, True)),
        Ordinal(name="group", values=(32, 64)),
    ),
    conditions={"group": parse("format == 'int8'")},
)


def test_each_parameter_is_encoded_on_its_scale():
    design = Design({"clock": 10.0, "tp": 4, "width": 4, "format": "fp8", "symmetric": True})
    point = encoded(SPACE, SPACE.batch([design]))[0]
    assert np.allclose(point, [0.5, 0.5, 0.5, 0, 1, 0, 1, 0.5])


def test_only_the_named_parameters_are_encoded():
    design = Design({"clock": 100.0, "tp": 16, "width": 1, "format": "fp8", "symmetric": False})
    point = encoded(SPACE, SPACE.batch([design]), frozenset({"tp", "clock"}))
    assert point.tolist() == [[1.0, 1.0]]

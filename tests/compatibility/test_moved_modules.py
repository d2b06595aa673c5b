"""Plug-ins that were written for the version before find the modules that documentation named."""

import subprocess
import sys
from importlib import import_module

import pytest

from dse import protocols
from dse.system.moved_modules import MOVED

OLD = """
import warnings
warnings.simplefilter("error")
try:
    from dse.assets.asset import Asset
except DeprecationWarning as warned:
    print(warned)
warnings.simplefilter("ignore")
from dse import supplies
from dse.assets.asset import Asset
from dse.checkpoints import current_trial
from dse.early import Stopped, report
from dse.resources.asset import Asset as Now
from dse.units import converted
print(Asset is Now, supplies.assets is not None, converted(2.0, "ms", "s"))
"""


@pytest.mark.parametrize("name", MOVED)
def test_a_moved_module_is_there(name):
    assert import_module(MOVED[name]).__doc__


def test_a_plug_in_imports_by_the_names_of_before():
    done = subprocess.run([sys.executable, "-c", OLD], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["dse.assets is dse.resources now", "True True 0.002"]


def test_what_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"dse\.drivers_of_yore"):
        import_module("dse.drivers_of_yore")


def test_a_renamed_class_of_the_protocols_has_its_former_name_too():
    with pytest.warns(DeprecationWarning, match="MetricPrediction"):
        former = protocols.MetricBelief
    assert former is protocols.MetricPrediction

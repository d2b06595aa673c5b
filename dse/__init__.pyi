"""Public names of ``dse``, declared for type checkers; :mod:`dse` imports them on first use."""

from dse.api.design_space import Space as Space
from dse.api.front import Front as Front
from dse.api.function_evaluators import evaluator as evaluator
from dse.api.live_view import live_view as live_view
from dse.api.program import check as check
from dse.api.program import doctor as doctor
from dse.api.program import plugin as plugin
from dse.api.program import plugins as plugins
from dse.api.reproduce import reproduce as reproduce
from dse.api.storages import import_study as import_study
from dse.api.storages import merge as merge
from dse.api.storages import studies as studies
from dse.api.study import Study as Study
from dse.api.study_comparison import Comparison as Comparison
from dse.api.study_comparison import compare as compare
from dse.api.study_sweep import sweep as sweep
from dse.core.design import Design as Design
from dse.core.metric import Metric as Metric
from dse.core.trial import Trial as Trial
from dse.errors import DseError as DseError
from dse.errors import InfeasibleError as InfeasibleError
from dse.evaluation.checkpoints import current_trial as current_trial
from dse.evaluation.reporting import report as report
from dse.evaluation.timing.call_time import time_call as time_call
from dse.services import resources as _resources
from dse.services.init.study_files import init as init
from dse.services.resources.calibrate_devices import calibrate_collectives as calibrate_collectives
from dse.services.resources.calibrate_devices import calibrate_devices as calibrate_devices
from dse.services.resources.calibrate_devices import calibrate_serving as calibrate_serving
from dse.services.resources.calibrate_devices import calibrate_training as calibrate_training
from dse.services.studies.compress_folder import compress as compress
from dse.services.studies.learn_model import learn as learn

__version__: str
supplies = _resources

"""What ``dse`` offers; :mod:`dse` says where it is."""

from dse import report as report
from dse.api.evaluators import evaluator as evaluator
from dse.api.front import Front as Front
from dse.api.space import Space as Space
from dse.api.study import Study as Study
from dse.core.design import Design as Design
from dse.core.metric import Metric as Metric
from dse.core.trial import Trial as Trial
from dse.errors import DseError as DseError
from dse.errors import InfeasibleError as InfeasibleError

__version__: str

"""Offer the configuration files of ``dse deploy --to PROGRAM`` to the program's own parser.

    python benchmarks/launch_flags.py vllm --python other/bin/python [--files 300] [--seed 7]

Random settings that the table of flags can express are written as files; the other interpreter, in
which the program is installed, must accept each of them and find the same values. ``dynamo`` needs
``pip install --no-deps ai-dynamo ai-dynamo-runtime`` and ``kubernetes>=37 pydantic pyyaml``: its
profiler's models of a deployment must know all fields, its planner must find the same components,
and Kubernetes' models must know all fields of the pods.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dse.core.values import Value
from dse.interop.launch.flag_rules import FlagRule, encode_settings, program_rules
from dse.interop.launch.launch_files import LAUNCHERS, encode_flags, literal_of

_NUMBERS = {"memory_share": (0.8, 0.9, 0.95), "zero": (0, 1, 2, 3), "block_size": (16, 32, 64)}
_LOOKUP = """
def differences(read, flags):
    return [n for n, v in flags.items() if read.get(n.replace("-", "_")) != v and v is not False]
"""
_PARSERS = {
    "vllm": """
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.utils.argparse_utils import FlexibleArgumentParser
parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser())
def read(file):
    return vars(parser.parse_args(["--config", file]))
""",
    "sglang": """
import argparse
from sglang.srt.server_args import ServerArgs
from sglang.srt.utils.server_args_config_parser import ConfigArgumentMerger
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
def read(file):
    words = ["--model-path", "model", "--config", file]
    return vars(parser.parse_args(ConfigArgumentMerger(parser).merge_config_with_args(words)))
""",
    "accelerate": """
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.dataclasses import DynamoBackend
def read(file):
    config = load_config_from_file(file)
    count = [] if config.num_processes > 0 else ["--num_processes", "1"]
    words = ["--config_file", file, *count, "train.py"]
    args, _, _ = _validate_launch_command(launch_command_parser().parse_args(words))
    DynamoBackend(args.dynamo_backend.upper())
    found = {name: getattr(args, name, None) for name in ("num_processes", "num_machines")}
    found["mixed_precision"] = args.mixed_precision
    for name in ("zero_stage", "gradient_accumulation_steps"):
        found["deepspeed_config." + name] = getattr(args, name)
    for name in ("offload_optimizer_device", "offload_param_device"):
        found["deepspeed_config." + name] = getattr(args, name)
    found["dynamo_config.dynamo_backend"] = args.dynamo_backend
    return found
""",
    "kubernetes": """
import yaml
from kubernetes.client import ApiClient
client = ApiClient()
def read(file):
    given = yaml.safe_load(open(file))
    parsed = client.deserialize(json.dumps(given), "V1Deployment", "application/json")
    if client.sanitize_for_serialization(parsed) != given:
        raise ValueError("the models have no such field, or another value")
    found = {"replicas": parsed.spec.replicas}
    words = parsed.spec.template.spec.containers[0].args
    for word, after in zip(words, [*words[1:], "--"]):
        if word.startswith("--"):
            value = True if after.startswith("--") else yaml.safe_load(after)
            found[word[2:].replace("-", "_")] = value
    return found
""",
    "dynamo": """
import importlib.util, types, yaml
from kubernetes.client import ApiClient
(root,) = importlib.util.find_spec("dynamo").submodule_search_locations
for name in ("planner", "profiler"):  # their initialisation needs packages that no parser uses
    package = types.ModuleType("dynamo." + name)
    package.__path__ = [root + "/" + name]
    sys.modules[package.__name__] = package
from dynamo.planner.config.defaults import SubComponentType
from dynamo.planner.errors import SubComponentNotFoundError
from dynamo.planner.monitoring.dgd_services import get_component_from_type_or_name
from dynamo.profiler.utils.config import Config, find_main_container
client = ApiClient()
def words_of(component):
    words, found = find_main_container(component).args, {}
    for word, after in zip(words, [*words[1:], "--"]):
        if word.startswith("--"):
            found[word[2:]] = True if after.startswith("--") else yaml.safe_load(after)
    return found
def read(file):
    given = yaml.safe_load(open(file))
    config = Config.model_validate(given)
    fields = Config.model_fields
    if [config.apiVersion, config.kind] != [fields["apiVersion"].default, fields["kind"].default]:
        raise ValueError("another kind or version of resource than the package reads")
    for part in (config, config.spec, config.metadata, *config.spec.components):
        if part.model_extra:
            raise ValueError(f"no such field: {sorted(part.model_extra)}")
    for one in given["spec"]["components"]:
        template = json.dumps(one["podTemplate"])
        parsed = client.deserialize(template, "V1PodTemplateSpec", "application/json")
        if client.sanitize_for_serialization(parsed) != one["podTemplate"]:
            raise ValueError("the models have no such field, or another value")
    components = {one.name: one for one in config.spec.components}
    decode = get_component_from_type_or_name(given, SubComponentType.DECODE)
    found = {"replicas": decode.number_replicas(), **words_of(components[decode.name])}
    try:
        prefill = get_component_from_type_or_name(given, SubComponentType.PREFILL)
    except SubComponentNotFoundError:
        own = {"replicas": 0}
    else:
        own = {"replicas": prefill.number_replicas(), **words_of(components[prefill.name])}
    found |= {"prefill." + name: value for name, value in own.items()}
    return {name.replace("-", "_"): value for name, value in found.items()}
""",
    "deepspeed": """
from deepspeed.runtime.config import DeepSpeedConfig
def read(file):
    given = json.load(open(file))
    config = DeepSpeedConfig({"train_micro_batch_size_per_gpu": 1, **given})
    zero = config.zero_config
    optimizer, weights = zero.offload_optimizer, zero.offload_param
    return {
        "train_micro_batch_size_per_gpu": config.train_micro_batch_size_per_gpu,
        "zero_optimization.stage": int(zero.stage),
        "zero_optimization.overlap_comm": zero.overlap_comm,
        "zero_optimization.offload_optimizer.device": getattr(optimizer, "device", None),
        "zero_optimization.offload_param.device": getattr(weights, "device", None),
        "bf16.enabled": config.bfloat16_config.enabled,
        "fp16.enabled": config.float16_config.enabled,
    }
""",
}
_CHILD = """
import json, sys
{parser}
{lookup}
for file, flags in json.load(sys.stdin):
    try:
        wrong = differences(read(file), flags)
    except (Exception, SystemExit) as error:
        wrong = [f"{{type(error).__name__}}: {{error}}"]
    if wrong:
        print("refused", file, wrong[0], file=sys.stderr)
    else:
        print("accepted")
"""


def main() -> int:
    """Print the number of files that were accepted with equal values; 1 if one was not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", choices=sorted(_PARSERS))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    wanted = parser.parse_args()
    random_ = random.Random(wanted.seed)
    rules, launcher = program_rules(wanted.program), LAUNCHERS[wanted.program]
    extension = launcher.extensions[0]
    offered = []
    with tempfile.TemporaryDirectory() as folder:
        while len(offered) < wanted.files:
            made = encode_settings(rules, _draw_settings(rules, random_), wanted.program)
            if made.flags:
                file = Path(folder, f"{len(offered)}{extension}")
                file.write_bytes(encode_flags(made.flags, launcher, extension))
                offered.append((str(file), _own_flags(made.flags)))
        child = _CHILD.format(parser=_PARSERS[wanted.program], lookup=_LOOKUP)
        ended = subprocess.run(
            [wanted.python, "-c", child],
            input=json.dumps(offered),
            capture_output=True,
            text=True,
            check=False,
        )
    accepted = ended.stdout.split().count("accepted")
    print(f"{wanted.program}: {accepted} of {wanted.files} files accepted with equal values")
    if accepted < wanted.files:
        print(ended.stderr.strip()[-2000:], file=sys.stderr)
    return int(accepted < wanted.files)


def _own_flags(flags: Mapping[str, Value]) -> dict[str, Value]:
    """Return flags without those of prefill that are 0, which means: as in decode."""
    return {name: v for name, v in flags.items() if v != 0 or not name.startswith("prefill.")}


def _draw_settings(rules: tuple[FlagRule, ...], random_: random.Random) -> dict[str, Value]:
    """Return random settings, at most one for each flag."""
    flags = {one.setting: {r.flag for r in rules if r.setting == one.setting} for one in rules}
    found: dict[str, Value] = {}
    taken: set[str] = set()
    for rule in random_.sample(rules, len(rules)):
        own = flags[rule.setting] - {""}
        if rule.setting in found or taken & own or random_.random() < 0.3:
            continue
        taken |= own
        match rule.kind:
            case "number":
                choices = _NUMBERS.get(rule.setting, (1, 2, 4, 8, 64, 256))
                found[rule.setting] = random_.choice(choices)
            case "switch" | "inverse":
                found[rule.setting] = random_.random() < 0.5
            case "all-or-one":
                found[rule.setting] = 1
            case "choice" | "only" | "absent":
                found[rule.setting] = literal_of(random_.choice(sorted(rule.values)))
    if any(
        name.startswith("prefill_") and value for name, value in found.items()
    ):  # else the flags have no pods
        found["prefill_replicas"] = found.get("prefill_replicas") or random_.choice((1, 2, 8))
    return found


if __name__ == "__main__":
    sys.exit(main())

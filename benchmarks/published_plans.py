"""Plans of measured services that the table leaves open, from published benchmark configurations.

Most services of the table were measured by InferenceX, which publishes its configurations
(SemiAnalysisAI/InferenceX, Apache-2.0, ``.github/configs/nvidia-master.yaml``): for each software
image, model, lengths and number of clients, the replicas and devices of both pools, whether groups
of attention are data parallel, and whether tokens are guessed. Every version of the file counts,
until a week after the newest measurement. Of a service's configurations, those with another image
or other devices than its row are left out; the plan is known if one remains. A row without an image
has the configurations in force on its day; those of November 2025 are older than the first version,
which still states the rules by which their scripts chose ``ep`` and groups, not in the table yet.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml

FILE = ".github/configs/nvidia-master.yaml"
FIRST, LAST = "2025-11-03", "2026-05-05"
SLACK = timedelta(days=14)
"""How long before or after its days in the file an entry may have been measured.

Of 2,205 services that match one plan by image and devices, 2,202 were measured on or after its
first day and 3 at most 14 days before; 22 were measured up to 3 days after its last day.
"""

PREFIXES = {
    "dsr1": "deepseek-v3",
    "glm5": "glm-5",
    "gptoss": "gpt-oss-120b",
    "kimik2.5": "kimi-k2",
    "minimaxm2.5": "minimax-m2",
    "qwen3.5": "qwen3.5-397b-a17b",
    "70b": "llama3-70b",
}
BACKENDS = {"trt": "trtllm"}
DEVICE = re.compile(r"-(g?b[23]00|h[12]00)-")
SXM = ("h100", "h200", "b200", "b300")
TOO_LARGE = ("deepseek-v3",)
"""Models that no device holds: entries with one device leave the plan to another file."""

EXPERTS = {"deepseek-v3": 256, "glm-5": 256, "kimi-k2": 384}
"""Experts of a layer of models that are spread over many devices."""

GUESSES = {"trt": 3, "trt with groups": 1, "sglang deepseek-v3": 2, "sglang": 3}
"""Tokens guessed by services of one node, as their published scripts set them."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Replicas that do the same work."""

    replicas: int
    devices: int
    ep: int
    grouped: bool
    """Whether each device computes the attention of sequences of its own."""

    def design(self, prefix: str = "") -> dict[str, int]:
        """Return the inputs of ``clusters.serving`` for a replica."""
        groups = self.devices if self.grouped else 1
        degrees = {"tp": self.devices // groups, "pp": 1, "attention_dp": groups, "ep": self.ep}
        return {prefix + name: value for name, value in degrees.items()}


@dataclass(frozen=True, kw_only=True)
class PublishedPlan:
    """Published plan of a service."""

    prefill: Pool | None
    decode: Pool
    guesses: int
    """Tokens guessed per step."""
    slots: int = 0
    """Experts of a layer with their copies; 0: without copies."""

    def design(self, clients: int, model: str) -> dict[str, float]:
        """Return the inputs of ``clusters.serving`` for a number of clients of all replicas.

        Where the devices do not divide the experts, copies fill the last ones: a server has no
        other way.
        """
        pools: dict[str, float] = dict(self.decode.design())
        if self.prefill is not None:
            pools |= self.prefill.design("prefill_")
            pools |= {"prefill_replicas": self.prefill.replicas, "replicas": self.decode.replicas}
        copies = self.decode.replicas * pools["attention_dp"]
        experts = EXPERTS.get(model, 0)
        slots = self.slots or -(-experts // self.decode.ep) * self.decode.ep
        copied = {"redundant_experts": max(0, slots - experts)} if experts else {}
        return {**pools, **copied, "batch": max(1, round(clients / copies))}


@dataclass(frozen=True, kw_only=True)
class Use:
    """Software image of a plan, and the first and the last day of it in the file."""

    image: str
    first: str
    last: str


Key = tuple[object, ...]
Catalogue = Mapping[Key, Mapping[PublishedPlan, set[Use]]]
"""Uses of each plan, by what a row states of its service."""


def read_published(clone: Path) -> Catalogue:
    """Return the published plans of a clone of InferenceX with its history."""
    found = defaultdict[Key, dict[PublishedPlan, set[Use]]](lambda: defaultdict(set))
    for name, block, days in _blocks(clone):
        device = DEVICE.search(name)
        if device is None or block.get("model-prefix") not in PREFIXES:
            continue
        framework = str(block["framework"]).removeprefix("dynamo-")
        system = device[1] + ("_sxm" if device[1] in SXM else "")
        model = PREFIXES[block["model-prefix"]]
        service = (model, system, block["precision"], BACKENDS.get(framework, framework))
        for lengths in block.get("seq-len-configs") or block["scenarios"].get("fixed-seq-len", ()):
            for entry in lengths["search-space"]:
                plan = _plan(entry, framework, model)
                if model in TOO_LARGE and plan.decode.devices == 1:
                    continue
                for clients in _clients(entry):
                    split = plan.prefill is not None
                    key = (*service, split, lengths["isl"], lengths["osl"], clients)
                    use = Use(image=_image(block["image"]), first=days[0], last=days[-1])
                    found[key][plan].add(use)
    return found


def _blocks(clone: Path) -> Iterator[tuple[str, Mapping[str, Any], list[str]]]:
    """Yield every distinct entry of all versions of the file, with the days it was in force."""
    log = ("log", f"--before={LAST}", "--reverse", "--format=%H %cs", "HEAD", "--", FILE)
    versions = [line.split() for line in _git(clone, *log).splitlines()]
    if not versions:
        sys.exit(f"{clone}: no version of {FILE} before {LAST}; clone it with its history")
    days = defaultdict[str, list[str]](list)
    ends = [day for _, day in versions[1:]] + [LAST]
    for (commit, first), last in zip(versions, ends, strict=True):
        file = _git(clone, "show", f"{commit}:{FILE}")
        for text in re.split(r"^(?=[a-z])", file, flags=re.MULTILINE):
            if re.match(r"[a-z]", text):
                days[text] += [first, last]
    for text, known in days.items():
        for name, block in yaml.load(text, yaml.CSafeLoader).items():
            yield name, block, known


def _git(clone: Path, *command: str) -> str:
    done = subprocess.run(["git", "-C", clone, *command], capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{clone}: {done.stderr.decode().strip()} (clone SemiAnalysisAI/InferenceX)")
    return done.stdout.decode()


def _plan(entry: Mapping[str, Any], framework: str, model: str) -> PublishedPlan:
    split = "decode" in entry
    decode = _pool(entry["decode"] if split else entry)
    settings: Sequence[str] = entry["decode"].get("additional-settings", ()) if split else ()
    prefill: Sequence[str] = entry["prefill"].get("additional-settings", ()) if split else ()
    text = " ".join([*prefill, *settings])
    named = re.search(r"_mtp(\d)", text)
    guesses = 0
    if entry.get("spec-decoding", "none") != "none":
        usual = [f"{framework} {model}", framework + " with groups" * decode.grouped, framework]
        guesses = next(GUESSES[name] for name in usual if name in GUESSES)
        guesses = int(named[1]) if named else guesses
    slots = re.search(r"_eplb(\d{2,})", text)
    return PublishedPlan(
        prefill=_pool(entry["prefill"]) if split else None,
        decode=decode,
        guesses=guesses,
        slots=int(slots[1]) if slots else 0,
    )


def _pool(entry: Mapping[str, Any]) -> Pool:
    return Pool(
        replicas=entry.get("num-worker", 1),
        devices=entry["tp"],
        ep=entry.get("ep", 1),
        grouped=bool(entry.get("dp-attn")),
    )


def _clients(entry: Mapping[str, Any]) -> list[int]:
    if "conc-list" in entry:
        return list(entry["conc-list"])
    found = [int(entry["conc-start"])]
    while 2 * found[-1] <= entry["conc-end"]:
        found.append(2 * found[-1])
    return found


def _image(text: str) -> str:
    return text.replace("#", "/").strip()


def find_plans(catalogue: Catalogue, row: Mapping[str, str], model: str) -> list[PublishedPlan]:
    """Return the published plans that agree with a row of the table.

    Args:
        catalogue: that of :func:`read_published`.
        row: a row of the table.
        model: our name of its model.
    """
    clients = count_clients(row)
    if clients is None:
        return []
    split = row["mode"] == "disagg"
    service = (model, row["system"], row["precision"], row["backend"], split)
    plans = catalogue.get((*service, int(row["isl"]), int(row["osl"]), clients), {})
    return [
        plan
        for plan, uses in plans.items()
        if any(_is_use(one, row) for one in uses)
        and _agrees(plan.decode, row, "decode_" if split else "")
        and (plan.prefill is None or _agrees(plan.prefill, row, "prefill_"))
    ]


def _is_use(use: Use, row: Mapping[str, str]) -> bool:
    """Return whether a row may have been measured with an entry of the file."""
    found = re.search(r"measured=([\d-]{10})", row["silicon_data_source"])
    if found is None:
        return False
    image, day = _named_image(row), max(found[1], FIRST)
    slack = SLACK if image else timedelta(0)
    first, last, measured = (date.fromisoformat(text) for text in (use.first, use.last, day))
    return image in ("", use.image) and first - slack <= measured <= last + slack


def _named_image(row: Mapping[str, str]) -> str:
    found = re.search(r"(?:image=|; )([^;= ]+:[^;: ]+)$", row["silicon_data_source"])
    return _image(found[1]) if found else ""


def count_clients(row: Mapping[str, str]) -> int | None:
    """Return the number of clients of a service, if its row states one."""
    found = re.search(r"silicon_concurrency=(\d+)", row["silicon_data_source"])
    return int(found[1]) if found else None


def _agrees(pool: Pool, row: Mapping[str, str], prefix: str) -> bool:
    """Return whether a row may have a pool.

    The table multiplies the devices of some services by the groups of their attention or of their
    experts, and has the expert parallelism of prefill for both pools: only that of services without
    separate prefill is compared, preferably as their names have it.
    """
    tp, groups, ep, workers = (
        int(row.get(prefix + name) or 1) or 1
        for name in ("tp_size", "attention_dp_size", "moe_ep_size", "num_workers")
    )
    named = re.search(r"_tp(\d+)_(?:\d_)?ep(\d+)_", row["id"]) if not prefix else None
    devices = {int(named[1])} if named else {tp, tp * groups, tp * groups / ep}
    alike = prefix or not _named_image(row)
    alike = alike or (pool.ep == int(named[2]) if named else groups > 1 or pool.ep == ep)
    stated = bool(row.get(prefix + "num_workers"))
    return (
        pool.devices in devices
        and bool(alike)
        and (groups == 1 or pool.grouped)
        and not (stated and pool.replicas != workers)
    )

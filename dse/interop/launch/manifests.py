"""Kubernetes manifests of an inference service: replicas, accelerators, and flags of the engine.

Flags are those of the engine; ``replicas`` is the number of its pods. A flag that begins with
``prefill.`` belongs to the pods that run prefill alone, which have the other flags, too.

Source:
    Kubernetes 1.34, concepts: Deployments, and "Define a command and arguments for a container"
    (a variable ``$(NAME)`` in a command); the image vllm/vllm-openai of vLLM. NVIDIA Dynamo 1.6.1:
    dynamo/profiler/templates/dgd/vllm of the package ai-dynamo, the types of its operator
    (deploy/operator/api/v1beta1), and "Disaggregated Serving" of its documentation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal

import yaml

from dse.core.values import Value

Manifest = Literal["kubernetes", "dynamo"]
Flags = Mapping[str, Value]

_REPLICAS = "replicas"
_PREFILL = "prefill."
_DEGREES = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size")
_MODEL = "$(MODEL)"
_NAME = "server"
_NIXL = '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'
_WORKER, _DECODE, _PREFILL_ONLY = "worker", "decode", "prefill"
"""Types of the components that run the engine: alone, or for one of the two phases."""


def encode_manifest(flags: Flags, kind: Manifest) -> bytes:
    """Return a Kubernetes manifest in YAML with the flags of a serving engine."""
    written = _deployment(flags) if kind == "kubernetes" else _dynamo_graph(flags)
    return (_USE + yaml.safe_dump(written, sort_keys=False)).encode()


def decode_manifest(content: bytes, kind: Manifest) -> dict[str, list[str] | int]:
    """Return the engine's command-line words and the replicas that a manifest holds."""
    found = yaml.safe_load(content)
    if kind == "kubernetes":
        pod = found["spec"]["template"]["spec"]["containers"][0]
        return {"words": pod["args"], _REPLICAS: found["spec"]["replicas"]}
    components = {one["type"]: one for one in found["spec"]["components"]}
    decode = components.get(_DECODE) or components[_WORKER]
    words = _engine_words(decode)
    parts: dict[str, list[str] | int] = {"words": words, _REPLICAS: decode["replicas"]}
    if (prefill := components.get(_PREFILL_ONLY)) is not None:
        own = _engine_words(prefill)[len(words) :]
        parts |= {f"{_PREFILL}words": own, f"{_PREFILL}{_REPLICAS}": prefill["replicas"]}
    return parts


def flag_words(flags: Flags) -> list[str]:
    """Return the words of a command line; a false switch is ``--no-FLAG``."""
    words: list[str] = []
    for name, value in flags.items():
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            words += [f"--{name}", str(value)]
    return words


def _deployment(flags: Flags) -> dict[str, Any]:
    labels = {"app": _NAME}
    container = {
        "name": "vllm",
        "image": "vllm/vllm-openai:${VERSION}",
        "command": ["vllm", "serve", _MODEL],
        "args": flag_words({n: v for n, v in flags.items() if n != _REPLICAS}),
        "env": [deepcopy(_MODEL_VARIABLE)],
        "ports": [{"containerPort": 8000}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}},
        "resources": {"limits": {"nvidia.com/gpu": str(_count_devices(flags))}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": _NAME},
        "spec": {
            _REPLICAS: flags.get(_REPLICAS, 1),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _dynamo_graph(flags: Flags) -> dict[str, Any]:
    own = {n.removeprefix(_PREFILL): v for n, v in flags.items() if n.startswith(_PREFILL)}
    decode = {n: v for n, v in flags.items() if not n.startswith(_PREFILL)}
    separate = bool(own.get(_REPLICAS, 0))
    front = {
        "name": "main",
        "image": _DYNAMO_IMAGE,
        "command": ["python3", "-m", "dynamo.frontend"],
    }
    components = [
        _component("Frontend", "frontend", 1, front),
        _worker(_DECODE if separate else _WORKER, [decode]),
    ]
    if separate:
        changed = {n: v for n, v in own.items() if v != 0}  # 0: as in decode
        components.append(_worker(_PREFILL_ONLY, [decode, changed]))
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": _NAME},
        "spec": {"components": components},
    }


def _component(
    name: str, kind: str, replicas: Value, container: Mapping[str, Any]
) -> dict[str, Any]:
    pod = {"spec": {"containers": [dict(container)]}}
    return {"name": name, "type": kind, _REPLICAS: replicas, "podTemplate": pod}


def _worker(kind: str, layers: Sequence[Flags]) -> dict[str, Any]:
    """Return a component with the flags of all layers; later ones override earlier ones."""
    merged: dict[str, Value] = {}
    words = ["--model", _MODEL]
    if kind != _WORKER:
        words += ["--disaggregation-mode", kind, "--kv-transfer-config", _NIXL]
    for flags in layers:
        merged |= flags
        words += flag_words({n: v for n, v in flags.items() if n != _REPLICAS})
    container = {
        "name": "main",
        "image": _DYNAMO_IMAGE,
        "command": ["python3", "-m", "dynamo.vllm"],
        "args": words,
        "env": [deepcopy(_MODEL_VARIABLE)],
        "resources": {"limits": {"nvidia.com/gpu": str(_count_devices(merged))}},
    }
    return _component(kind, kind, layers[-1].get(_REPLICAS, 1), container)


def _engine_words(component: Mapping[str, Any]) -> list[str]:
    """Return the part of a worker's command line that has the flags of the engine."""
    words: list[str] = component["podTemplate"]["spec"]["containers"][0]["args"]
    return words[2:] if component["type"] == _WORKER else words[6:]


def _count_devices(flags: Flags) -> int:
    return math.prod(int(flags.get(name, 1)) for name in _DEGREES)


_USE = """\
# kubectl create configmap model --from-literal=name=MODEL
# VERSION=TAG envsubst '$VERSION' < FILE | kubectl apply -f -
"""
_DYNAMO_IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:${VERSION}"
_MODEL_VARIABLE = {
    "name": "MODEL",
    "valueFrom": {"configMapKeyRef": {"name": "model", "key": "name"}},
}

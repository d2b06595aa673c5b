"""Plans for training a large language model on 64, 512 and 4,096 GPUs, and for serving one."""

from __future__ import annotations

from statement import Statement

_LAYERS, _HEADS, _EXPERTS, _BATCH, _NODE = 64, 48, 8, 2048, 8
_MICROBATCHES = (1, 2, 4, 8, 16)
_WEIGHT_BITS = {"bf16": 16, "fp8": 8, "int8": 8, "awq_int4": 4.25, "gptq_int4": 4.25}
_CACHE_BITS = {"bf16": 16, "fp8_e4m3": 8, "fp8_e5m2": 8}
_SHARES = [round(0.8 + 0.02 * step, 2) for step in range(9)]


def training(gpus: int) -> Statement:
    """The library's plan of a training step on so many GPUs."""
    return Statement(
        name=f"training-{gpus}",
        file="clusters/llm_training_plan.yaml",
        arguments={"gpus": gpus},
        source="Megatron-LM, DeepSpeed; counted by nested loops",
        domains={
            "tp": divisors(gpus),
            "pp": divisors(_LAYERS),
            "dp": divisors(gpus),
            "ep": divisors(_EXPERTS),
            "microbatch": _MICROBATCHES,
            "interleave": divisors(_LAYERS),
            "sequence_parallel": [False, True],
            "recompute": ["none", "selective", "full"],
            "recompute_method": ["uniform", "block"],
            "recompute_layers": divisors(_LAYERS),
            "zero": [0, 1, 2, 3],
            "offload_optimizer": ["none", "cpu", "nvme"],
            "offload_weights": ["none", "cpu", "nvme"],
            "overlap_gradients": [False, True],
            "overlap_weights": [False, True],
            "precision": ["bf16", "fp8"],
        },
        guards={
            "interleave": {"pp": divisors(_LAYERS)[1:]},
            "sequence_parallel": {"tp": divisors(gpus)[1:]},
            "recompute_method": {"recompute": ["full"]},
            "recompute_layers": {"recompute": ["full"]},
            "offload_optimizer": {"zero": [1, 2, 3]},
            "offload_weights": {"zero": [3]},
            "overlap_gradients": {"dp": divisors(gpus)[1:]},
            "overlap_weights": {"overlap_gradients": [True], "zero": [1, 2, 3]},
        },
        rules=(
            f"tp * pp * dp == {gpus}",
            f"tp <= {_NODE}",
            f"{_HEADS} % tp == 0",
            "dp % ep == 0",
            "ep == 1 or sequence_parallel is not False",
            f"{_BATCH} % (dp * microbatch) == 0",
            f"interleave is None or {_LAYERS} % (pp * interleave) == 0",
            f"interleave is None or interleave == 1 or {_BATCH} // (dp * microbatch) % pp == 0",
            "recompute_method != 'uniform' or recompute_layers is None"
            f" or {_LAYERS} // pp % recompute_layers == 0",
            "recompute_method != 'block' or recompute_layers is None"
            f" or recompute_layers <= {_LAYERS} // pp",
            "zero == 0 or dp > 1",
            "zero < 2 or pp == 1",
            "offload_optimizer != 'nvme' or zero == 3",
        ),
        designs=lambda: _training_designs(gpus),
    )


def serving() -> Statement:
    """The library's plan of an inference server on eight GPUs."""
    weights = f"70.6e9 * {_WEIGHT_BITS}[weight_format] / 8"
    cache = f"2 * 80 * 8 * 128 * 8192 * {_CACHE_BITS}[kv_format] / 8"
    return Statement(
        name="serving-8",
        file="clusters/llm_serving_plan.yaml",
        source="vLLM's engine arguments; counted by nested loops",
        domains={
            "replicas": divisors(8),
            "tp": divisors(8),
            "pp": divisors(8),
            "weight_format": list(_WEIGHT_BITS),
            "kv_format": list(_CACHE_BITS),
            "block_size": [8, 16, 32, 64, 128],
            "memory_share": _SHARES,
            "max_sequences": [2**power for power in range(3, 11)],
            "max_batched_tokens": [2**power for power in range(9, 17)],
            "chunked_prefill": [False, True],
            "prefix_caching": [False, True],
            "policy": ["fcfs", "priority"],
            "graphs": [False, True],
            "speculation": ["none", "ngram", "draft", "eagle"],
            "speculative_tokens": range(1, 9),
            "lookup_least": range(1, 5),
            "lookup_most": range(2, 6),
        },
        guards={
            "speculative_tokens": {"speculation": ["ngram", "draft", "eagle"]},
            "lookup_least": {"speculation": ["ngram"]},
            "lookup_most": {"speculation": ["ngram"]},
        },
        rules=(
            "replicas * tp * pp == 8",
            "max_batched_tokens >= max_sequences",
            "chunked_prefill or max_batched_tokens >= 8192",
            "pp == 1 or speculation == 'none'",
            "lookup_least is None or lookup_most is None or lookup_least <= lookup_most",
            f"{weights} + {cache} <= tp * pp * memory_share * 80e9",
        ),
        designs=_serving_designs,
    )


def _serving_designs() -> int:
    """The count by nested loops over what is coupled and products over what is not."""
    lookups = sum(least <= most for least in range(1, 5) for most in range(2, 6))
    speculations = 1 + 8 * lookups + 8 + 8
    batches = sum(
        2 if tokens >= 8192 else 1
        for tokens in (2**power for power in range(9, 17))
        for sequences in (2**power for power in range(3, 11))
        if tokens >= sequences
    )
    fitting = 0
    for tp, pp in ((tp, pp) for tp in divisors(8) for pp in divisors(8) if 8 % (tp * pp) == 0):
        ways = speculations if pp == 1 else 1
        for weight in _WEIGHT_BITS.values():
            for cache in _CACHE_BITS.values():
                need = 70.6e9 * weight / 8 + 2 * 80 * 8 * 128 * 8192 * cache / 8
                fitting += ways * sum(need <= tp * pp * share * 80e9 for share in _SHARES)
    return fitting * batches * 5 * 2 * 2 * 2


def divisors(number: int) -> list[int]:
    """The divisors, from 1 up."""
    return [d for d in range(1, number + 1) if number % d == 0]


def _training_designs(gpus: int) -> int:
    """The count by nested loops over what is coupled and products over what is not."""
    total = 0
    for tp in divisors(gpus):
        for pp in divisors(_LAYERS):
            if tp > _NODE or _HEADS % tp or gpus % (tp * pp):
                continue
            dp = gpus // (tp * pp)
            sequence = sum(
                2 if tp > 1 and ep == 1 else 1 for ep in divisors(_EXPERTS) if dp % ep == 0
            )
            total += sequence * _schedules(pp, dp) * _recomputations(pp) * _memories(pp, dp) * 2
    return total


def _schedules(pp: int, dp: int) -> int:
    """Microbatch sizes, and stages on each GPU."""
    ways = 0
    for size in _MICROBATCHES:
        if _BATCH % (dp * size):
            continue
        rounds = _BATCH // (dp * size)
        fits = [v for v in divisors(_LAYERS) if _LAYERS % (pp * v) == 0]
        ways += 1 if pp == 1 else sum(v == 1 or rounds % pp == 0 for v in fits)
    return ways


def _recomputations(pp: int) -> int:
    mine = _LAYERS // pp
    uniform = sum(mine % layers == 0 for layers in divisors(_LAYERS))
    return 2 + uniform + sum(layers <= mine for layers in divisors(_LAYERS))


def _memories(pp: int, dp: int) -> int:
    """ZeRO's stage, what is off-loaded, and what overlaps."""
    if dp == 1:
        return 1
    ways = {0: 1 * 1 * 2, 1: 2 * 1 * 3, 2: 2 * 1 * 3, 3: 3 * 3 * 3}
    return sum(count for zero, count in ways.items() if zero < 2 or pp == 1)


PLANS = (*(training(gpus) for gpus in (64, 512, 4096)), serving())

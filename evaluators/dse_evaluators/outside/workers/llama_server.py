"""Program that runs the server of llama.cpp until it is ended; its settings are its argument."""

from __future__ import annotations

import json
import signal
import sys

import xllamacpp

_KV_TYPES = {
    name: getattr(xllamacpp.ggml_type, f"GGML_TYPE_{name.upper()}")
    for name in ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
}
_FLASH = {"off": "DISABLED", "on": "ENABLED", "auto": "AUTO"}


def main() -> None:
    """Start the server on the port of the settings, and wait for a signal."""
    given = json.loads(sys.argv[1])
    params = xllamacpp.CommonParams()
    params.model.path = given["model"]
    params.port = given["port"]
    params.n_ctx = given["context"]
    params.n_batch = given["batch"]
    params.n_ubatch = given["ubatch"]
    params.n_parallel = given["parallel"]
    params.cpuparams.n_threads = given["threads"]
    params.cpuparams_batch.n_threads = given["batch_threads"] or given["threads"]
    params.cache_type_k = _KV_TYPES[given["kv_type_k"]]
    params.cache_type_v = _KV_TYPES[given["kv_type_v"]]
    flash = f"LLAMA_FLASH_ATTN_TYPE_{_FLASH[given['flash_attention']]}"
    params.flash_attn_type = getattr(xllamacpp.llama_flash_attn_type, flash)
    params.fit_params = False  # the settings are measured as they are
    params.cache_ram_mib = 0  # no prompt is served from an earlier one
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)  # noqa: T201 - it is the program's output
    signal.pause()


if __name__ == "__main__":
    main()

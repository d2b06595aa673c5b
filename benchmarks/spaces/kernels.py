"""Kernel-tuning spaces from the literature and from open measurements."""

from __future__ import annotations

from statement import Statement

_KERNEL_TUNER = "Kernel Tuner (Willemsen et al.), benchmarks of python-constraint2"

_GEMM = {
    "MWG": [16, 32, 64, 128],
    "NWG": [16, 32, 64, 128],
    "KWG": [16, 32],
    "MDIMC": [8, 16, 32],
    "NDIMC": [8, 16, 32],
    "MDIMA": [8, 16, 32],
    "NDIMB": [8, 16, 32],
    "VWM": [1, 2, 4, 8],
    "VWN": [1, 2, 4, 8],
    "STRM": [0, 1],
    "STRN": [0, 1],
    "SA": [0, 1],
    "SB": [0, 1],
}
_GEMM_RULES = (
    "MWG % (MDIMC * VWM) == 0",
    "NWG % (NDIMC * VWN) == 0",
    "MWG % (MDIMA * VWM) == 0",
    "NWG % (NDIMB * VWN) == 0",
    "KWG % ((MDIMC * NDIMC) / MDIMA) == 0",
    "KWG % ((MDIMC * NDIMC) / NDIMB) == 0",
)

GEMM_PORTABLE = Statement(
    name="gemm-portable",
    file="kernels/gemm_portable.yaml",
    source="CLBlast, open measurements of benchmark_hub: 17,956 rows",
    domains={n: v for n, v in _GEMM.items() if n not in ("KWG", "STRM", "STRN")},
    rules=tuple(rule.replace("KWG", "32") for rule in _GEMM_RULES),
    designs=lambda: 17_956,
)

GEMM = Statement(
    name="gemm",
    file="kernels/gemm.yaml",
    source="CLBlast as in Kernel Tuner (Willemsen et al.): 116,928",
    domains=_GEMM,
    rules=(*_GEMM_RULES, "not (MWG == 128 and NWG == 128 and MDIMC == 8 and NDIMC == 8)"),
    designs=lambda: 116_928,
)

HOTSPOT = Statement(
    name="hotspot",
    file="kernels/hotspot.yaml",
    source=f"{_KERNEL_TUNER}: 349,853",
    domains={
        "block_size_x": [1, 2, 4, 8, 16, *range(32, 1025, 32)],
        "block_size_y": [1, 2, 4, 8, 16, 32],
        "tile_size_x": range(1, 11),
        "tile_size_y": range(1, 11),
        "temporal_tiling_factor": range(1, 11),
        "loop_unroll_factor_t": range(1, 11),
        "sh_power": [0, 1],
        "blocks_per_sm": [0, 1, 2, 3, 4],
    },
    rules=(
        "block_size_x*block_size_y >= 32",
        "temporal_tiling_factor % loop_unroll_factor_t == 0",
        "block_size_x*block_size_y <= 1024",
        "(block_size_x*tile_size_x + temporal_tiling_factor * 2)"
        " * (block_size_y*tile_size_y + temporal_tiling_factor * 2) * (2+sh_power) * 4 <= 49152",
        "blocks_per_sm == 0 or (((block_size_x*tile_size_x + temporal_tiling_factor * 2)"
        " * (block_size_y*tile_size_y + temporal_tiling_factor * 2) * (2+sh_power) * 4)"
        " * blocks_per_sm <= 102400)",
    ),
    designs=lambda: 349_853,
)

DEDISPERSION = Statement(
    name="dedispersion",
    file="kernels/dedispersion.yaml",
    source=f"{_KERNEL_TUNER}: 11,130",
    domains={
        "block_size_x": [1, 2, 4, 8, 16, 32],
        "block_size_y": range(32, 257, 8),
        "tile_size_x": [1, 2, 3, 4],
        "tile_size_y": [1, 2, 3, 4, 5, 6, 7, 8],
        "tile_stride_x": [0, 1],
        "tile_stride_y": [0, 1],
    },
    rules=(
        "32 <= block_size_x * block_size_y <= 1024",
        "tile_size_x > 1 or tile_stride_x == 0",
        "tile_size_y > 1 or tile_stride_y == 0",
    ),
    designs=lambda: 11_130,
)

MICROHH = Statement(
    name="microhh",
    file="kernels/microhh.yaml",
    source=f"{_KERNEL_TUNER}: 138,600",
    domains={
        "BLOCK_SIZE_X": [1, 2, 4, 8, 16, 32, 128, 256, 512, 1024],
        "BLOCK_SIZE_Y": [1, 2, 4, 8, 16, 32],
        "BLOCK_SIZE_Z": [1, 2, 4],
        "TILING_FACTOR_X": [1, 2, 4, 8],
        "TILING_FACTOR_Y": [1, 2, 4],
        "TILING_FACTOR_Z": [1, 2, 4],
        "LOOP_UNROLL_FACTOR_X": [1, 2, 4, 8],
        "LOOP_UNROLL_FACTOR_Y": [1, 2, 4],
        "LOOP_UNROLL_FACTOR_Z": [1, 2, 4],
        "BLOCKS_PER_MP": [0, 1, 2, 3, 4],
    },
    rules=(
        "BLOCK_SIZE_X * BLOCK_SIZE_Y * BLOCK_SIZE_Z * BLOCKS_PER_MP <= 1024",
        "32 <= BLOCK_SIZE_X * BLOCK_SIZE_Y * BLOCK_SIZE_Z <= 1536",
        "TILING_FACTOR_X % LOOP_UNROLL_FACTOR_X == 0",
        "TILING_FACTOR_Y % LOOP_UNROLL_FACTOR_Y == 0",
        "TILING_FACTOR_Z % LOOP_UNROLL_FACTOR_Z == 0",
    ),
    designs=lambda: 138_600,
)

EXPDIST = Statement(
    name="expdist",
    file="kernels/expdist.yaml",
    source="Kernel Tuner (Willemsen et al.); counted alike by three tools",
    domains={
        "block_size_x": [32, 64, 128, 256, 512, 1024],
        "block_size_y": [1, 2, 4, 8, 16, 32],
        "tile_size_x": range(1, 9),
        "tile_size_y": range(1, 9),
        "use_shared_mem": [0, 1, 2],
        "loop_unroll_factor_x": range(1, 9),
        "loop_unroll_factor_y": range(1, 9),
        "use_column": [0, 1],
        "n_y_blocks": [2**power for power in range(11)],
    },
    rules=(
        "block_size_x * block_size_y <= 1024",
        "use_column != 0 or n_y_blocks <= 1",
        "use_column != 0 or use_shared_mem != 2",
        "loop_unroll_factor_x <= tile_size_x and (tile_size_x % loop_unroll_factor_x == 0)",
        "loop_unroll_factor_y <= tile_size_y and (tile_size_y % loop_unroll_factor_y == 0)",
    ),
    designs=lambda: 294_000,
)


def _sobel() -> int:
    """The generator of Spector, written anew: two families of designs, each of them once."""
    found = set()
    for lines, vectors in (("y", "x"), ("x", "y")):
        for a in (1, 2, 4) if lines == "y" else (1, 2, 4, 8, 16):
            for b in (1, 2, 4, 8) if vectors == "x" else (1, 2, 4):
                sub = (1, a) if lines == "y" else (a, 1)
                simd = (b, 1) if vectors == "x" else (1, b)
                found |= {
                    (x, y, *sub, *simd, s)
                    for x in (2, 4, 8, 16, 32)
                    for y in (2, 4, 8)
                    for s in (1, 2, 4, 8)
                    if not (1920 % (x * sub[0] * simd[0]) or 1080 % (y * sub[1] * simd[1]) or x % s)
                }
    return 3 * len(found)


SOBEL = Statement(
    name="sobel",
    file="kernels/sobel.yaml",
    source="Spector (Gautier et al., FPT 2016), its generator; 1,381 of these fitted the FPGA",
    domains={
        "block_x": [2, 4, 8, 16, 32],
        "block_y": [2, 4, 8],
        "sub_block_x": [1, 2, 4, 8, 16],
        "sub_block_y": [1, 2, 4],
        "manual_simd_x": [1, 2, 4, 8],
        "manual_simd_y": [1, 2, 4],
        "simd": [1, 2, 4, 8],
        "compute_units": [1, 2, 4],
    },
    rules=(
        "1920 % (block_x * sub_block_x * manual_simd_x) == 0",
        "1080 % (block_y * sub_block_y * manual_simd_y) == 0",
        "block_x % simd == 0",
        "(sub_block_x == 1 and manual_simd_y == 1) or (sub_block_y == 1 and manual_simd_x == 1)",
    ),
    designs=_sobel,
)

KERNELS = (GEMM_PORTABLE, SOBEL, DEDISPERSION, GEMM, MICROHH, EXPDIST, HOTSPOT)

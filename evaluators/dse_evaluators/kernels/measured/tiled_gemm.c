/* c = a b for row-major matrices of M x K, K x N and M x N, in tiles of TILE_M x TILE_N x TILE_K.
 *
 * FIRST, SECOND and THIRD are the loops over tiles, from the outside. In a tile, ROWS x UNROLL
 * vectors of c stay in registers while k runs. The loop over tiles of m is shared by threads: with
 * the same schedule each time, a thread always has the same rows, so that none waits for others.
 */
#include "scalar_types.h"

#define WIDTH (VECTOR * UNROLL)
#define LEAST(x, y) ((x) < (y) ? (x) : (y))
#define LOOP_M _Pragma("omp for schedule(static) nowait") for (ptrdiff_t m0 = 0; m0 < M; m0 += TILE_M)
#define LOOP_N for (ptrdiff_t n0 = 0; n0 < N; n0 += TILE_N)
#define LOOP_K for (ptrdiff_t k0 = 0; k0 < K; k0 += TILE_K)

static inline void multiply_block(const REAL *a, const REAL *b, REAL *c, ptrdiff_t depth) {
    vector sums[ROWS][UNROLL];
    for (int i = 0; i < ROWS; i++)
        for (int u = 0; u < UNROLL; u++) sums[i][u] = load(c + i * (ptrdiff_t)N + u * VECTOR);
    for (ptrdiff_t k = 0; k < depth; k++)
        for (int u = 0; u < UNROLL; u++) {
            vector right = load(b + k * (ptrdiff_t)N + u * VECTOR);
            for (int i = 0; i < ROWS; i++) sums[i][u] += a[i * (ptrdiff_t)K + k] * right;
        }
    for (int i = 0; i < ROWS; i++)
        for (int u = 0; u < UNROLL; u++) store(c + i * (ptrdiff_t)N + u * VECTOR, sums[i][u]);
}

static inline void multiply_rest(const REAL *a, const REAL *b, REAL *c, ptrdiff_t rows,
                                 ptrdiff_t columns, ptrdiff_t depth) {
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t k = 0; k < depth; k++)
            for (ptrdiff_t j = 0; j < columns; j++)
                c[i * (ptrdiff_t)N + j] += a[i * (ptrdiff_t)K + k] * b[k * (ptrdiff_t)N + j];
}

static inline void multiply_tile(const REAL *a, const REAL *b, REAL *c, ptrdiff_t m0, ptrdiff_t n0,
                                 ptrdiff_t k0) {
    ptrdiff_t m1 = LEAST(m0 + TILE_M, M), n1 = LEAST(n0 + TILE_N, N);
    ptrdiff_t depth = LEAST(TILE_K, K - k0), i = m0;
    for (; i + ROWS <= m1; i += ROWS) {
        const REAL *left = a + i * (ptrdiff_t)K + k0;
        ptrdiff_t j = n0;
        for (; j + WIDTH <= n1; j += WIDTH)
            multiply_block(left, b + k0 * (ptrdiff_t)N + j, c + i * (ptrdiff_t)N + j, depth);
        multiply_rest(left, b + k0 * (ptrdiff_t)N + j, c + i * (ptrdiff_t)N + j, ROWS, n1 - j, depth);
    }
    multiply_rest(a + i * (ptrdiff_t)K + k0, b + k0 * (ptrdiff_t)N + n0, c + i * (ptrdiff_t)N + n0,
                  m1 - i, n1 - n0, depth);
}

void run(const REAL *a, const REAL *b, REAL *c, int threads) {
    memset(c, 0, sizeof(REAL) * (size_t)M * N);
#pragma omp parallel num_threads(threads)
    FIRST SECOND THIRD multiply_tile(a, b, c, m0, n0, k0);
}

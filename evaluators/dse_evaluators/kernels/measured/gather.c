/* Copy COUNT rows of COLUMNS numbers from a table, by index, as an embedding lookup does.
 *
 * COPY: 1 calls memcpy for a row, 2 moves vectors. PREFETCH: how many rows ahead the first lines of
 * a row are requested; 0: none.
 */
#include "scalar_types.h"

#define LINE 64
#define BYTES (COLUMNS * (ptrdiff_t)sizeof(REAL))

void run(const REAL *table, const int64_t *index, REAL *out, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < COUNT; row++) {
#if PREFETCH
        if (row + PREFETCH < COUNT) {
            const char *next = (const char *)(table + index[row + PREFETCH] * COLUMNS);
            for (ptrdiff_t at = 0; at < BYTES && at < PREFETCHED; at += LINE)
                __builtin_prefetch(next + at);
        }
#endif
        const REAL *from = table + index[row] * COLUMNS;
        REAL *to = out + row * COLUMNS;
#if COPY == 1
        memcpy(to, from, BYTES);
#else
        ptrdiff_t i = 0;
        for (; i + VECTOR <= COLUMNS; i += VECTOR) store(to + i, load(from + i));
        for (; i < COLUMNS; i++) to[i] = from[i];
#endif
    }
}

/* Softmax of each of ROWS rows of COLUMNS numbers.
 *
 * PASSES: 2 keeps exponentials as a pair of mantissa and exponent, so that no maximum is needed;
 * 3 finds the maximum, sums, and computes exponentials again; 4 keeps them in the output instead;
 * 1 corrects the sum whenever the maximum grows (online), block by block.
 *
 * Sources of the methods: Dukhan, Ablavatski: The Two-Pass Softmax Algorithm, 2020; Milakov,
 * Gimelshein: Online normalizer calculation for softmax, 2018.
 */
#include "scalar_types.h"
#include <math.h>

#define LOWEST (sizeof(REAL) == 4 ? (REAL)-3.4e38 : (REAL)-1.7e308)

typedef struct { REAL mantissa, exponent; } scaled;

/* e^x = mantissa * 2^exponent with |log2 mantissa| <= 1/2. The rest is reduced by ln 2 in two parts,
 * the first of which has 17 bits (Cody, Waite, 1980), and its exponential is a Taylor polynomial. */
static inline scaled split_exp(REAL x) {
    REAL exponent = sizeof(REAL) == 4 ? (REAL)rintf((float)(x * (REAL)1.4426950408889634))
                                      : (REAL)rint((double)(x * (REAL)1.4426950408889634));
    REAL rest = x - exponent * (REAL)0.693145751953125 - exponent * (REAL)1.42860682030941723212e-6;
    /* Products with constants: a compiler may not turn a division by 7 into one. */
    static const double inverse_factorial[] = {
        1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
        1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
    };
    const int last = sizeof(REAL) == 4 ? 7 : 13;
    REAL sum = (REAL)inverse_factorial[last];
#pragma GCC unroll 14
    for (int term = last - 1; term >= 0; term--) sum = (REAL)inverse_factorial[term] + sum * rest;
    return (scaled){sum, exponent};
}

/* 2^exponent, zero below the range of normal numbers. The exponent is limited before its conversion,
 * which may trap, so that a loop over lanes has no branch. */
static inline REAL power_of_two(REAL exponent) {
    if (sizeof(REAL) == 4) {
        int32_t bits = ((int32_t)(exponent < -127 ? -127 : exponent) + 127) << 23;
        float value;
        memcpy(&value, &bits, 4);
        return (REAL)value;
    }
    int64_t bits = ((int64_t)(exponent < -1023 ? -1023 : exponent) + 1023) << 52;
    double value;
    memcpy(&value, &bits, 8);
    return (REAL)value;
}

static inline REAL exp_of(REAL x) {
    scaled parts = split_exp(x);
    return parts.mantissa * power_of_two(parts.exponent);
}

static inline REAL largest(const REAL *x, ptrdiff_t count) {
    REAL most = LOWEST;
#pragma omp simd reduction(max : most)
    for (ptrdiff_t i = 0; i < count; i++) most = x[i] > most ? x[i] : most;
    return most;
}

static inline REAL sum_exp(const REAL *x, ptrdiff_t count, REAL most) {
    REAL sums[VECTOR] = {0}, sum = 0;
    ptrdiff_t i = 0;
    for (; i + VECTOR <= count; i += VECTOR)
        for (int lane = 0; lane < VECTOR; lane++) sums[lane] += exp_of(x[i + lane] - most);
    for (int lane = 0; lane < VECTOR; lane++) sum += sums[lane];
    for (; i < count; i++) sum += exp_of(x[i] - most);
    return sum;
}

static inline void write_exp(const REAL *x, REAL *y, REAL most, REAL scale) {
    for (ptrdiff_t i = 0; i < COLUMNS; i++) y[i] = scale * exp_of(x[i] - most);
}

/* Add e^x to sum * 2^top, and let top be the larger exponent. */
static inline void add_scaled(REAL x, REAL *sum, REAL *top) {
    scaled one = split_exp(x);
    REAL most = one.exponent > *top ? one.exponent : *top;
    *sum = *sum * power_of_two(*top - most) + one.mantissa * power_of_two(one.exponent - most);
    *top = most;
}

static void softmax_row(const REAL *x, REAL *y) {
#if PASSES == 2
    REAL sums[VECTOR], tops[VECTOR];
    for (int lane = 0; lane < VECTOR; lane++) sums[lane] = 0, tops[lane] = LOWEST;
    ptrdiff_t at = 0;
    for (; at + VECTOR <= COLUMNS; at += VECTOR)
        for (int lane = 0; lane < VECTOR; lane++) add_scaled(x[at + lane], sums + lane, tops + lane);
    for (; at < COLUMNS; at++) add_scaled(x[at], sums, tops);
    REAL sum = 0, top = largest(tops, VECTOR);
    for (int lane = 0; lane < VECTOR; lane++) sum += sums[lane] * power_of_two(tops[lane] - top);
    REAL scale = 1 / sum;
    for (ptrdiff_t i = 0; i < COLUMNS; i++) {
        scaled one = split_exp(x[i]);
        y[i] = scale * one.mantissa * power_of_two(one.exponent - top);
    }
#elif PASSES == 1
    REAL most = LOWEST, sum = 0;
    for (ptrdiff_t i = 0; i < COLUMNS; i += BLOCK) {
        ptrdiff_t count = i + BLOCK < COLUMNS ? BLOCK : COLUMNS - i;
        REAL here = largest(x + i, count), now = here > most ? here : most;
        sum = sum * exp_of(most == LOWEST ? (REAL)0 : most - now) + sum_exp(x + i, count, now);
        most = now;
    }
    write_exp(x, y, most, 1 / sum);
#elif PASSES == 4
    REAL most = largest(x, COLUMNS), sum = 0;
    write_exp(x, y, most, 1);
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < COLUMNS; i++) sum += y[i];
    REAL scale = 1 / sum;
    for (ptrdiff_t i = 0; i < COLUMNS; i++) y[i] *= scale;
#else
    REAL most = largest(x, COLUMNS);
    write_exp(x, y, most, 1 / sum_exp(x, COLUMNS, most));
#endif
}

void run(const REAL *x, REAL *y, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (ptrdiff_t row = 0; row < ROWS; row++) softmax_row(x + row * COLUMNS, y + row * COLUMNS);
}

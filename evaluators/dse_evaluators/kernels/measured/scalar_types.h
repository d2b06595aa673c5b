/* Element type REAL and vectors of VECTOR elements, as GCC and Clang have them. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef REAL vector __attribute__((vector_size(VECTOR * sizeof(REAL)), aligned(sizeof(REAL)), may_alias));

static inline vector load(const REAL *from) { return *(const vector *)from; }
static inline void store(REAL *to, vector values) { *(vector *)to = values; }

/* backends/cpu/kernels/all_finite.c: all_finite is true if every element is finite. An element is infinite
 * or NaN if all bits of its exponent are ones. One pass over the operand stores a flag per chunk; the
 * decomposition would store one per element. */
#include <string.h>

#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/common/clones.h"
#include "backends/cpu/kernels/common/lane.h"

enum { ALL_FINITE_CHUNK = 1 << 16 /* elements */ };

#define DEFINE_FINITE(name, bits, exponent)                                                                  \
  static TN_CPU_CLONES uint32_t name(const void *data, int64_t n) {                                          \
    const bits *x = data;                                                                                    \
    uint32_t bad = 0;                                                                                        \
    for (int64_t i = 0; i < n; i++) bad |= (x[i] & exponent) == exponent;                                    \
    return !bad;                                                                                             \
  }
DEFINE_FINITE(finite_f16, uint16_t, 0x7c00u)
DEFINE_FINITE(finite_bf16, uint16_t, 0x7f80u)
DEFINE_FINITE(finite_f32, uint32_t, 0x7f800000u)
DEFINE_FINITE(finite_f64, uint64_t, 0x7ff0000000000000u)

static uint32_t (*const all_finite_of[TN_DTYPES])(const void *, int64_t) = {
    [TN_F16] = finite_f16, [TN_BF16] = finite_bf16, [TN_F32] = finite_f32, [TN_F64] = finite_f64};

static int64_t all_finite_chunks(const tn_type *x) {
  return (tn_type_count(x) + ALL_FINITE_CHUNK - 1) / ALL_FINITE_CHUNK;
}

static void all_finite_chunk(void *arg, int64_t chunk) {
  const tn_launch *l = arg;
  const tn_view *x = &l->in[0];
  int64_t first = chunk * ALL_FINITE_CHUNK, left = tn_type_count(&x->type) - first;
  ((uint8_t *)l->workspace)[chunk] = (uint8_t)all_finite_of[x->type.dtype](
      tn_cpu_at(x->data, x->type.dtype, first), left < ALL_FINITE_CHUNK ? left : ALL_FINITE_CHUNK);
}

/* The logical and of the flags, each 0 or 1. */
static void all_finite_combine(void *arg, int64_t chunk) {
  const tn_launch *l = arg;
  int64_t n = all_finite_chunks(&l->in[0].type);
  (void)chunk;
  *(uint8_t *)l->out[0].data = n == 0 || memchr(l->workspace, 0, (size_t)n) == NULL;
}

static tn_status all_finite_launch(tn_launch *l) {
  int64_t n = all_finite_chunks(&l->in[0].type);
  if (n > 0) tn_parallel(l, n, all_finite_chunk, l);
  tn_parallel(l, 1, all_finite_combine, l);
  return TN_OK;
}

static tn_status all_finite_query(tn_query *q) {
  const tn_type *x = q->match->in[0];
  return tn_offer(q, (tn_variant){.name = "exponents", .workspace_bytes = all_finite_chunks(x)});
}

TN_DEFINE_KERNEL(cpu, all_finite, "all_finite", "y = all_finite(x)", "tests every exponent for all ones",
                 .query = all_finite_query, .launch = all_finite_launch);

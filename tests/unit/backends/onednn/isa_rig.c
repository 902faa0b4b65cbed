#include "tests/unit/backends/onednn/isa_rig.h"

#include <math.h>

#include "tenon/plugin/storage.h"
#include "backends/onednn/onednn.h"

/* ---- instruction sets ---- */

static int32_t isa_limit = TN_ISAS;

static void *isa_backend;

static int64_t isa_cached_bytes = INT64_MAX;

void ways_use_cached_bytes(int64_t bytes) { isa_cached_bytes = bytes; }
int64_t tn_onednn_cached_bytes(void) { return isa_cached_bytes; }

void ways_use_isa(int32_t at_most) { isa_limit = at_most; }
void ways_use_backend(void *backend) { isa_backend = backend; }

static int32_t best_isa(void) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return TN_ISA_PLAIN;
  if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) return TN_ISA_AVX2;
  return TN_ISA_AVX512;
#else
  return TN_ISA_PLAIN;
#endif
}

int32_t tn_onednn_isa(void) {
  int32_t best = best_isa();
  return best < isa_limit ? best : isa_limit;
}

/* ---- layouts ---- */

static size_t storage_bytes(const tn_type *type, const tn_layout *layout) {
  return (size_t)tn_storage_of(type, layout).count * tn_dtype_size(type->dtype);
}

static int64_t position(const tn_type *type, const tn_storage *s, int64_t at) {
  int64_t c[TN_MAX_RANK], sum = 0;
  rig_coordinates(type, at, c);
  for (int32_t d = 0; d < type->rank; d++) sum += tn_storage_offset(s, d, c[d]);
  return sum;
}

/* Each tensor in an allocation that ends with it, so that a sanitizer sees accesses beyond. */
static void *laid(const tn_type *type, const tn_layout *layout, const void *row_major) {
  size_t size = tn_dtype_size(type->dtype);
  tn_storage s = tn_storage_of(type, layout);
  uint8_t *data = malloc(storage_bytes(type, layout) + (tn_type_count(type) == 0));
  memset(data, 0, storage_bytes(type, layout));
  for (int64_t i = 0; i < tn_type_count(type) && row_major != NULL; i++)
    memcpy(data + (size_t)position(type, &s, i) * size, (const uint8_t *)row_major + (size_t)i * size, size);
  return data;
}

static void *plain(const tn_type *type, const tn_layout *layout, const void *data) {
  size_t size = tn_dtype_size(type->dtype);
  tn_storage s = tn_storage_of(type, layout);
  uint8_t *row_major = rig_tensor(type);
  for (int64_t i = 0; i < tn_type_count(type); i++)
    memcpy(row_major + (size_t)i * size, (const uint8_t *)data + (size_t)position(type, &s, i) * size, size);
  return row_major;
}

/* ---- comparison ---- */

static bool close(const tn_type *type, double got, double want, double slack) {
  if (got == want || (got != got && want != want)) return true;
  return fabs(got - want) <= slack + 2 * rig_ulp(type->dtype, want) * (slack > 0);
}

static void compare(const char *name, const tn_type *type, const void *got, const void *want,
                    double tolerance) {
  double largest = 0;
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    double w = fabs(rig_get(type, want, i));
    if (w > largest && w < INFINITY) largest = w;
  }
  for (int64_t i = 0; i < tn_type_count(type); i++) {
    double g = rig_get(type, got, i), w = rig_get(type, want, i);
    if (!close(type, g, w, tolerance * largest))
      fail_msg("%s, isa %d: element %lld of %s is %.9g, expected %.9g (largest %.9g)", name,
               (int)tn_onednn_isa(), (long long)i, tn_dtype_name(type->dtype), g, w, largest);
  }
}

/* ---- one combination ---- */

typedef struct way {
  void *in[RIG_VALUES], *out[RIG_VALUES];
  tn_layout in_layout[RIG_VALUES], out_layout[RIG_VALUES];
} way;

static tn_layout layout_of(const tn_operand_layout *rule, const tn_type *type) {
  bool preferred = rule->rule == TN_LAYOUT_PREFERRED && rule->layout.set;
  assert_true(rule->rule >= TN_LAYOUT_ROW_MAJOR && rule->rule <= TN_LAYOUT_PREFERRED);
  assert_int_not_equal(rule->rule, TN_LAYOUT_SAME_AS);
  return rule->rule == TN_LAYOUT_FIXED || preferred ? rule->layout : tn_layout_row_major(type->rank);
}

static void start_way(way *w, const rig_match *m, const rig_answer *a, void *const *in) {
  for (int32_t i = 0; i < m->match.n_in; i++) {
    w->in[i] = NULL;
    if (m->in[i] == NULL) continue;
    w->in_layout[i] = layout_of(&a->in[i], m->in[i]);
    w->in[i] = laid(m->in[i], &w->in_layout[i], in[i]);
  }
  for (int32_t i = 0; i < m->match.n_out; i++) {
    w->out_layout[i] = layout_of(&a->out[i], m->out[i]);
    w->out[i] = laid(m->out[i], &w->out_layout[i], NULL);
  }
}

static void finish_way(way *w, const rig_match *m) {
  for (int32_t i = 0; i < m->match.n_in; i++) free(w->in[i]);
  for (int32_t i = 0; i < m->match.n_out; i++) free(w->out[i]);
}

static void run_way(const tn_kernel *kernel, const rig_match *m, way *w, int32_t variant, void *const *want,
                    double tolerance) {
  void *first[RIG_VALUES];
  for (int32_t threads = 1; threads <= 4; threads += threads == 1 ? 2 : 1) {
    rig_memory memory = {w->in, w->out, w->in_layout, w->out_layout, threads, variant, isa_backend};
    for (int32_t i = 0; i < m->match.n_out; i++)
      memset(w->out[i], 0x5a, storage_bytes(m->out[i], &w->out_layout[i]));
    assert_int_equal(rig_run(kernel, m, &memory, NULL), TN_OK);
    for (int32_t i = 0; i < m->match.n_out; i++) {
      size_t bytes = storage_bytes(m->out[i], &w->out_layout[i]);
      if (threads == 1)
        first[i] = memcpy(malloc(bytes + 1), w->out[i], bytes);
      else
        assert_memory_equal(first[i], w->out[i], bytes);
    }
  }
  for (int32_t i = 0; i < m->match.n_out; i++) {
    void *got = plain(m->out[i], &w->out_layout[i], w->out[i]);
    compare(kernel->item.name, m->out[i], got, want[i], tolerance);
    free(got);
    free(first[i]);
  }
}

static void check_isa(const tn_kernel *kernel, const rig_match *m, void *const *in, void *const *want,
                      double tolerance, int32_t variants) {
  rig_answer all = rig_query(kernel, m);
  assert_int_equal(all.status, TN_OK);
  if (variants > 0) assert_int_equal(all.n_variants, variants);
  for (int32_t v = 1; v <= all.n_variants; v++) {
    way w;
    rig_answer answer = rig_query_variant(kernel, m, v);
    start_way(&w, m, &answer, in);
    run_way(kernel, m, &w, v, want, tolerance);
    finish_way(&w, m);
  }
}

void ways_check(const tn_kernel *kernel, const tn_kernel *reference, const rig_match *m, void *const *in,
                double tolerance, int32_t variants) {
  void *want[RIG_VALUES];
  for (int32_t i = 0; i < m->match.n_out; i++) want[i] = rig_tensor(m->out[i]);
  rig_memory memory = {.in = in, .out = want, .threads = 1};
  assert_int_equal(rig_run(reference, m, &memory, NULL), TN_OK);
  for (int32_t isa = isa_backend == NULL ? TN_ISA_PLAIN : TN_ISA_AVX2; isa <= TN_ISA_AVX512; isa++) {
    ways_use_isa(isa);
    if (tn_onednn_isa() == isa) check_isa(kernel, m, in, want, tolerance, variants);
  }
  ways_use_isa(TN_ISAS);
  for (int32_t i = 0; i < m->match.n_out; i++) free(want[i]);
}

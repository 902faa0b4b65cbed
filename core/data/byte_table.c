/* core/data/byte_table.c: makes tables, and looks up. */
#include "core/data/byte_table.h"

#include <string.h>

/* A table should stay in the first-level cache. */
enum { VALUES = 256, MOST_CHANNELS = 16 };

static bool keeps_dims(const tn_type *in, const tn_type *out) {
  return in->rank == out->rank && memcmp(in->dims, out->dims, (size_t)in->rank * sizeof(int64_t)) == 0;
}

static bool is_pointwise(const tn_stage *stage) {
  return stage->transform->pointwise && stage->n == 1 && keeps_dims(&stage->in[0], &stage->out[0]);
}

/* Whether a table may begin here: bytes, with channels in front. */
static bool may_begin(const tn_stage *stage) {
  const tn_type *in = &stage->in[0];
  return is_pointwise(stage) && in->dtype == TN_U8 && in->rank >= 2 && in->dims[0] >= 1 &&
         in->dims[0] <= MOST_CHANNELS;
}

/* Stages from `first` on that work on one field, and on nothing else. */
static int32_t count_run(const tn_chain *chain, int32_t first) {
  int32_t n = 1;
  for (; first + n < chain->n_sample_stages; n++) {
    const tn_stage *stage = &chain->stages[first + n];
    if (!is_pointwise(stage) || stage->field[0] != chain->stages[first].field[0]) break;
  }
  return n;
}

/* Every channel with every value. */
static tn_type ramp_type(const tn_type *in, int32_t dtype) {
  tn_type type = {dtype, in->rank, {in->dims[0], VALUES}};
  for (int32_t d = 2; d < type.rank; d++) type.dims[d] = 1;
  return type;
}

/* One transform on a ramp; false: it does something else with it than it says it does with a sample. */
static bool run_stage(const tn_env *env, const tn_stage *stage, const tn_type *in_type, tn_type *out_type,
                      const void *in, void *out) {
  tn_scratch scratch = {NULL, 0};
  tn_transform_call call = {.env = *env,
                            .struct_size = sizeof call,
                            .n = 1,
                            .in_type = in_type,
                            .out_type = out_type,
                            .in = &in,
                            .out = &out,
                            .scratch = &scratch};
  tn_status status = stage->transform->apply(&call, stage->options);
  tn_release(env, scratch.memory);
  return status == TN_OK;
}

static bool infer_ramp(tn_env *env, const tn_stage *stage, const tn_type *in, tn_type *out) {
  *out = *in;
  if (stage->transform->infer(env, stage->options, 1, in, out) != TN_OK) return false;
  return keeps_dims(in, out) && out->dtype == stage->out[0].dtype;
}

/* `values` and `other` have room for a ramp of the widest type, and the result is in *values. */
static bool run_all(tn_env *env, const tn_stage *stages, int32_t n, void **values, void **other) {
  tn_type in = ramp_type(&stages[0].in[0], TN_U8), out;
  for (int64_t i = 0; i < in.dims[0] * VALUES; i++) ((uint8_t *)*values)[i] = (uint8_t)(i % VALUES);
  for (int32_t s = 0; s < n; s++) {
    if (!infer_ramp(env, &stages[s], &in, &out)) return false;
    if (!run_stage(env, &stages[s], &in, &out, *values, *other)) return false;
    void *result = *other;
    *other = *values;
    *values = result;
    in = out;
  }
  return true;
}

/* Channels that are all alike need one row. */
static int64_t distinct_rows(const char *entries, int64_t channels, size_t row) {
  for (int64_t c = 1; c < channels; c++)
    if (memcmp(entries, entries + (size_t)c * row, row) != 0) return channels;
  return 1;
}

static tn_status take_entries(tn_chain *chain, tn_stage *stage, int32_t n, const void *values) {
  int32_t dtype = stage[n - 1].out[0].dtype;
  size_t row = VALUES * tn_dtype_size(dtype);
  tn_table *table = tn_arena_alloc(&chain->arena, sizeof(*table));
  if (table == NULL) return TN_ENOMEM;
  *table =
      (tn_table){.n_stages = n, .dtype = dtype, .channels = distinct_rows(values, stage->in[0].dims[0], row)};
  table->entries = tn_arena_copy(&chain->arena, values, (size_t)table->channels * row);
  if (table->entries == NULL) return TN_ENOMEM;
  stage->table = table;
  return TN_OK;
}

static tn_status make_table(tn_env *env, tn_chain *chain, tn_stage *stage, int32_t n) {
  size_t room = (size_t)stage->in[0].dims[0] * VALUES * sizeof(double);
  void *values = tn_alloc(env, room), *other = tn_alloc(env, room);
  tn_status status = values != NULL && other != NULL ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && run_all(env, stage, n, &values, &other))
    status = take_entries(chain, stage, n, values);
  else if (status == TN_OK)
    tn_error_clear(env); /* whatever it was, the transform says it when a sample comes */
  tn_release(env, values);
  tn_release(env, other);
  return status;
}

tn_status tn_table_find(tn_env *env, tn_chain *chain) {
  for (int32_t s = 0; s < chain->n_sample_stages; s++) {
    if (!may_begin(&chain->stages[s])) continue;
    int32_t n = count_run(chain, s);
    TN_TRY(make_table(env, chain, &chain->stages[s], n));
    s += n - 1;
  }
  return TN_OK;
}

/* Plain loads: gathers take longer wherever they were measured. */
#define LOOK_UP(name, T)                                                                                     \
  static void name(const uint8_t *restrict in, int64_t n, const T *restrict table, T *restrict out) {        \
    for (int64_t i = 0; i < n; i++) out[i] = table[in[i]];                                                   \
  }
LOOK_UP(look_up_1, uint8_t)
LOOK_UP(look_up_2, uint16_t)
LOOK_UP(look_up_4, uint32_t)
LOOK_UP(look_up_8, uint64_t)

void tn_table_apply(const tn_table *table, const tn_type *type, const void *in, void *out) {
  size_t item = tn_dtype_size(table->dtype);
  int64_t rows = table->channels > 1 ? type->dims[0] : 1, n = tn_type_count(type) / rows;
  for (int64_t c = 0; c < rows; c++) {
    const uint8_t *from = (const uint8_t *)in + c * n;
    const void *row = (const char *)table->entries + (size_t)(c * VALUES) * item;
    void *to = (char *)out + (size_t)(c * n) * item;
    switch (item) {
    case 1: look_up_1(from, n, row, to); break;
    case 2: look_up_2(from, n, row, to); break;
    case 4: look_up_4(from, n, row, to); break;
    default: look_up_8(from, n, row, to);
    }
  }
}

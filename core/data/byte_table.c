/* core/data/byte_table.c: construction and application of byte tables. */
#include "core/data/byte_table.h"

#include <string.h>

/* The limit on channels keeps a table within the first-level cache. */
enum { VALUES = 256, MOST_CHANNELS = 16 };

static bool byte_table_keeps_dims(const tn_type *in, const tn_type *out) {
  return in->rank == out->rank && memcmp(in->dims, out->dims, (size_t)in->rank * sizeof(int64_t)) == 0;
}

static bool byte_table_is_pointwise(const tn_stage *stage) {
  return stage->transform->pointwise && stage->n == 1 && byte_table_keeps_dims(&stage->in[0], &stage->out[0]);
}

/* Whether a table may begin at this stage: the input is u8 with few channels as the first dimension. */
static bool byte_table_may_begin(const tn_stage *stage) {
  const tn_type *in = &stage->in[0];
  return byte_table_is_pointwise(stage) && in->dtype == TN_U8 && in->rank >= 2 && in->dims[0] >= 1 &&
         in->dims[0] <= MOST_CHANNELS;
}

/* The number of consecutive pointwise stages from `first` that use the same single field. */
static int32_t byte_table_count_run(const tn_transform_chain *chain, int32_t first) {
  int32_t n = 1;
  for (; first + n < chain->n_sample_stages; n++) {
    const tn_stage *stage = &chain->stages[first + n];
    if (!byte_table_is_pointwise(stage) || stage->field[0] != chain->stages[first].field[0]) break;
  }
  return n;
}

/* The type of a ramp: every byte value once per channel. */
static tn_type byte_table_ramp_type(const tn_type *in, int32_t dtype) {
  tn_type type = {dtype, in->rank, {in->dims[0], VALUES}};
  for (int32_t d = 2; d < type.rank; d++) type.dims[d] = 1;
  return type;
}

/* Applies one transform to a ramp; false if the transform fails. */
static bool byte_table_run_stage(const tn_env *env, const tn_stage *stage, const tn_type *in_type,
                                 tn_type *out_type, const void *in, void *out) {
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

static bool byte_table_infer_ramp(tn_env *env, const tn_stage *stage, const tn_type *in, tn_type *out) {
  *out = *in;
  if (stage->transform->infer(env, stage->options, 1, in, out) != TN_OK) return false;
  return byte_table_keeps_dims(in, out) && out->dtype == stage->out[0].dtype;
}

/* Applies all stages to the ramp. Both buffers have room for a ramp of the widest type; the result is in
 * *values. */
static bool byte_table_run_stages(tn_env *env, const tn_stage *stages, int32_t n, void **values,
                                  void **other) {
  tn_type in = byte_table_ramp_type(&stages[0].in[0], TN_U8), out;
  for (int64_t i = 0; i < in.dims[0] * VALUES; i++) ((uint8_t *)*values)[i] = (uint8_t)(i % VALUES);
  for (int32_t s = 0; s < n; s++) {
    if (!byte_table_infer_ramp(env, &stages[s], &in, &out)) return false;
    if (!byte_table_run_stage(env, &stages[s], &in, &out, *values, *other)) return false;
    void *result = *other;
    *other = *values;
    *values = result;
    in = out;
  }
  return true;
}

/* The number of rows to store: 1 if all channels are equal. */
static int64_t byte_table_distinct_rows(const char *entries, int64_t channels, size_t row) {
  for (int64_t c = 1; c < channels; c++)
    if (memcmp(entries, entries + (size_t)c * row, row) != 0) return channels;
  return 1;
}

static tn_status byte_table_take_entries(tn_transform_chain *chain, tn_stage *stage, int32_t n,
                                         const void *values) {
  int32_t dtype = stage[n - 1].out[0].dtype;
  size_t row = VALUES * tn_dtype_size(dtype);
  tn_byte_table *table = tn_arena_alloc(&chain->arena, sizeof(*table));
  if (table == NULL) return TN_ENOMEM;
  *table = (tn_byte_table){
      .n_stages = n, .dtype = dtype, .channels = byte_table_distinct_rows(values, stage->in[0].dims[0], row)};
  table->entries = tn_arena_copy(&chain->arena, values, (size_t)table->channels * row);
  if (table->entries == NULL) return TN_ENOMEM;
  stage->table = table;
  return TN_OK;
}

static tn_status byte_table_make(tn_env *env, tn_transform_chain *chain, tn_stage *stage, int32_t n) {
  size_t room = (size_t)stage->in[0].dims[0] * VALUES * sizeof(double);
  void *values = tn_alloc(env, room), *other = tn_alloc(env, room);
  tn_status status = values != NULL && other != NULL ? TN_OK : TN_ENOMEM;
  if (status == TN_OK && byte_table_run_stages(env, stage, n, &values, &other))
    status = byte_table_take_entries(chain, stage, n, values);
  else if (status == TN_OK)
    tn_error_clear(env); /* the transform reports its error on the first sample */
  tn_release(env, values);
  tn_release(env, other);
  return status;
}

tn_status tn_byte_tables_make(tn_env *env, tn_transform_chain *chain) {
  for (int32_t s = 0; s < chain->n_sample_stages; s++) {
    if (!byte_table_may_begin(&chain->stages[s])) continue;
    int32_t n = byte_table_count_run(chain, s);
    TN_TRY(byte_table_make(env, chain, &chain->stages[s], n));
    s += n - 1;
  }
  return TN_OK;
}

/* Scalar loads: gather instructions were slower in measurements. */
#define BYTE_TABLE_LOOK_UP(name, T)                                                                          \
  static void name(const uint8_t *restrict in, int64_t n, const T *restrict table, T *restrict out) {        \
    for (int64_t i = 0; i < n; i++) out[i] = table[in[i]];                                                   \
  }
BYTE_TABLE_LOOK_UP(byte_table_look_up_1, uint8_t)
BYTE_TABLE_LOOK_UP(byte_table_look_up_2, uint16_t)
BYTE_TABLE_LOOK_UP(byte_table_look_up_4, uint32_t)
BYTE_TABLE_LOOK_UP(byte_table_look_up_8, uint64_t)

void tn_byte_table_apply(const tn_byte_table *table, const tn_type *type, const void *in, void *out) {
  size_t item = tn_dtype_size(table->dtype);
  int64_t rows = table->channels > 1 ? type->dims[0] : 1, n = tn_type_count(type) / rows;
  for (int64_t c = 0; c < rows; c++) {
    const uint8_t *from = (const uint8_t *)in + c * n;
    const void *row = (const char *)table->entries + (size_t)(c * VALUES) * item;
    void *to = (char *)out + (size_t)(c * n) * item;
    switch (item) {
    case 1: byte_table_look_up_1(from, n, row, to); break;
    case 2: byte_table_look_up_2(from, n, row, to); break;
    case 4: byte_table_look_up_4(from, n, row, to); break;
    default: byte_table_look_up_8(from, n, row, to);
    }
  }
}

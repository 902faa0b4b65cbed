#include "core/data/lengths.h"

#include <string.h>

#include "core/base/text/text.h"

static const char lengths_field[] = "length";
/* The class number that cross_entropy and accuracy leave out. */
enum { NO_CLASS = -100 };

/* ---- the chain ---- */

static const tn_padded_field *lengths_find(const tn_loader_options *o, const char *name) {
  for (int32_t i = 0; i < o->n_padded; i++)
    if (tn_text_equal(o->padded[i].name, name)) return &o->padded[i];
  return NULL;
}

static tn_status lengths_pad_field(tn_env *env, const tn_loader_options *o, tn_transform_chain *chain,
                                   int32_t i) {
  tn_field *field = &chain->fields[i];
  const tn_padded_field *padded = lengths_find(o, field->name);
  int64_t longest = o->lengths[o->n_lengths - 1];
  chain->axis[i] = -1;
  if (padded == NULL || padded->axis >= field->type.rank) return TN_OK; /* its type does not fit the model */
  int64_t *dim = &field->type.dims[padded->axis];
  if (*dim > longest)
    return tn_failf(
        env, TN_EINVAL,
        "field '%s' has size %lld in dimension %d, which is more than the longest of [model] lengths, "
        "%lld; expected a length that holds it",
        field->name, (long long)*dim, padded->axis, (long long)longest);
  chain->axis[i] = padded->axis;
  *dim = longest;
  chain->sampled[i] = field->type;
  return TN_OK;
}

/* The source may give `length` itself. */
static tn_status lengths_find_field(tn_env *env, tn_transform_chain *chain) {
  for (int32_t i = 0; i < chain->n_fields; i++) {
    const tn_field *field = &chain->fields[i];
    if (!tn_text_equal(field->name, lengths_field)) continue;
    if (field->type.rank != 0 || field->type.dtype != TN_I32)
      return tn_failf(env, TN_EINVAL,
                      "field 'length' is %s of rank %d, expected i32[], the size of each sample",
                      tn_dtype_name(field->type.dtype), field->type.rank);
    chain->length = i;
  }
  return TN_OK;
}

/* Room for one more field behind the source's. */
static tn_status lengths_add_field(tn_transform_chain *chain) {
  size_t n = (size_t)chain->n_fields;
  tn_field *fields = tn_arena_alloc(&chain->arena, (n + 1) * sizeof *fields);
  tn_type *sampled = tn_arena_alloc(&chain->arena, (n + 1) * sizeof *sampled);
  if (fields == NULL || sampled == NULL) return TN_ENOMEM;
  memcpy(fields, chain->fields, n * sizeof *fields);
  memcpy(sampled, chain->sampled, n * sizeof *sampled);
  fields[n] = (tn_field){.struct_size = sizeof(tn_field),
                         .name = lengths_field,
                         .type = {.dtype = TN_I32},
                         .role = TN_FIELD_INPUT};
  sampled[n] = fields[n].type;
  chain->fields = fields;
  chain->sampled = sampled;
  chain->length = chain->n_outputs++;
  return TN_OK;
}

tn_status tn_lengths_prepare(tn_env *env, const tn_loader_options *o, tn_transform_chain *chain) {
  chain->length = -1;
  if (o->n_lengths == 0) return TN_OK;
  if (chain->n_stages > chain->n_sample_stages)
    return tn_failf(env, TN_EINVAL,
                    "transform '%s' works on batches, and [model] lengths gives them several sizes; expected "
                    "transforms that work on samples",
                    chain->stages[chain->n_sample_stages].transform->item.name);
  chain->axis = tn_arena_alloc(&chain->arena, tn_size_mul((size_t)chain->n_fields, sizeof *chain->axis));
  if (chain->axis == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < chain->n_fields; i++) TN_TRY(lengths_pad_field(env, o, chain, i));
  chain->where = o->where != NULL ? o->where : "the data";
  chain->lengths = o->lengths;
  chain->n_lengths = o->n_lengths;
  TN_TRY(lengths_find_field(env, chain));
  return chain->length >= 0 ? TN_OK : lengths_add_field(chain);
}

/* ---- a sample ---- */

/* The blocks of a value around a dimension: `outer` times `size` times `inner` bytes. */
typedef struct lengths_blocks {
  int64_t outer, size;
  size_t inner;
} lengths_blocks;

static lengths_blocks lengths_divide(const tn_type *type, int32_t axis) {
  lengths_blocks b = {.outer = 1, .size = type->dims[axis], .inner = tn_dtype_size(type->dtype)};
  for (int32_t i = 0; i < axis; i++) b.outer *= type->dims[i];
  for (int32_t i = axis + 1; i < type->rank; i++) b.inner *= (size_t)type->dims[i];
  return b;
}

/* Zeros; targets of whole numbers get a class that no loss counts. */
static void lengths_fill(const tn_field *field, char *to, size_t bytes) {
  bool classes = field->role == TN_FIELD_TARGET;
  memset(to, 0, bytes);
  if (classes && field->type.dtype == TN_I32)
    for (size_t k = 0; k < bytes / sizeof(int32_t); k++) ((int32_t *)(void *)to)[k] = NO_CLASS;
  if (classes && field->type.dtype == TN_I64)
    for (size_t k = 0; k < bytes / sizeof(int64_t); k++) ((int64_t *)(void *)to)[k] = NO_CLASS;
}

static void lengths_copy(const tn_reader *reader, int32_t i, int64_t length) {
  const tn_transform_chain *chain = reader->chain;
  const tn_reader_field *field = &reader->fields[i];
  lengths_blocks from = lengths_divide(&field->type, chain->axis[i]);
  size_t used = (size_t)length * from.inner, room = (size_t)chain->lengths[chain->n_lengths - 1] * from.inner;
  for (int64_t k = 0; k < from.outer; k++) {
    char *to = (char *)field->target + (size_t)k * room;
    if (used > 0) memcpy(to, (const char *)field->data + (size_t)k * (size_t)from.size * from.inner, used);
    lengths_fill(&chain->fields[i], to + used, room - used);
  }
}

/* The size of the sample: what the source's field `length` says, or that of the first padded field. */
static int64_t lengths_of_sample(const tn_reader *reader) {
  const tn_transform_chain *chain = reader->chain;
  int32_t given;
  if (chain->length < chain->n_fields) {
    memcpy(&given, reader->fields[chain->length].data, sizeof given);
    return given;
  }
  for (int32_t i = 0; i < chain->n_fields; i++)
    if (chain->axis[i] >= 0) return reader->fields[i].type.dims[chain->axis[i]];
  return 0;
}

/* A sample has the same length in all of its padded fields, or a `length` that none of them exceeds. */
static tn_status lengths_check(tn_reader *reader, int64_t length) {
  const tn_transform_chain *chain = reader->chain;
  bool given = chain->length < chain->n_fields;
  int64_t longest = chain->lengths[chain->n_lengths - 1];
  if (length < 0 || length > longest)
    return tn_failf(reader, TN_EINVAL,
                    "%s: sample %lld has length %lld, expected at most %lld, the longest of [model] lengths",
                    chain->where, (long long)reader->host.pub.index, (long long)length, (long long)longest);
  for (int32_t i = 0; i < chain->n_fields; i++) {
    int64_t size = chain->axis[i] >= 0 ? reader->fields[i].type.dims[chain->axis[i]] : length;
    if (size == length || (given && size > length)) continue;
    return tn_failf(reader, TN_EINVAL,
                    "%s: sample %lld has %lld elements in field '%s', expected its length, %lld",
                    chain->where, (long long)reader->host.pub.index, (long long)size, chain->fields[i].name,
                    (long long)length);
  }
  return TN_OK;
}

tn_status tn_lengths_pad_sample(tn_reader *reader) {
  const tn_transform_chain *chain = reader->chain;
  if (chain->n_lengths == 0) return TN_OK;
  int64_t length = lengths_of_sample(reader);
  TN_TRY(lengths_check(reader, length));
  for (int32_t i = 0; i < chain->n_fields; i++)
    if (chain->axis[i] >= 0) lengths_copy(reader, i, length);
  int32_t counted = (int32_t)length;
  if (reader->length != NULL) memcpy(reader->length, &counted, sizeof counted);
  return TN_OK;
}

/* ---- a batch ---- */

/* The smallest length that holds the longest of the rows. */
static int32_t lengths_choose(const tn_transform_chain *chain, const int32_t *lengths, int64_t rows) {
  int32_t longest = 0, k = 0;
  for (int64_t row = 0; row < rows; row++)
    if (lengths[row] > longest) longest = lengths[row];
  while (k < chain->n_lengths - 1 && chain->lengths[k] < longest) k++;
  return k;
}

/* The blocks move towards the start, so none is overwritten before it has moved. */
static void lengths_shrink_field(const tn_type *type, int32_t axis, int64_t length, char *values,
                                 int64_t batch) {
  lengths_blocks b = lengths_divide(type, axis);
  size_t from = (size_t)b.size * b.inner, to = (size_t)length * b.inner;
  for (int64_t k = 1; k < batch * b.outer; k++)
    memmove(values + (size_t)k * to, values + (size_t)k * from, to);
}

int32_t tn_lengths_shrink(const tn_transform_chain *chain, void *const *fields, int64_t rows, int64_t batch) {
  if (chain->n_lengths == 0) return 0;
  int32_t k = lengths_choose(chain, fields[chain->length], rows);
  for (int32_t i = 0; i < chain->n_fields && k < chain->n_lengths - 1; i++)
    if (chain->axis[i] >= 0)
      lengths_shrink_field(&chain->sampled[i], chain->axis[i], chain->lengths[k], fields[i], batch);
  return k;
}

/* core/onnx/file/onnx_tensor.c: tensors: their types, and their contents in the model or in a file beside it.
 */
#include <math.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/formats/input.h"
#include "core/onnx/file/onnx_messages.h"

/* ---- texts ---- */

tn_status onnx_damaged(const tn_onnx_file *f, const char *what) {
  return tn_failf(f->env, TN_EINVAL, "%s: %s is damaged or cut off, expected a model of ONNX", f->path, what);
}

tn_status onnx_take_text(tn_onnx_file *f, const tn_proto_field *field, const char **text) {
  const void *bytes = field->bytes.at;
  size_t n = tn_proto_left(&field->bytes);
  if (n > 0 && memchr(bytes, '\0', n) != NULL) n = strlen(bytes);
  char *copy = tn_arena_alloc(&f->arena, n + 1);
  if (copy == NULL) return TN_ENOMEM;
  if (n > 0) memcpy(copy, bytes, n);
  *text = copy;
  return TN_OK;
}

/* ---- types ---- */

typedef struct onnx_type_row {
  const char *name;
  int32_t dtype;
  uint32_t form;   /* of typed contents */
  uint32_t number; /* of their field in TensorProto */
  size_t size;
} onnx_type_row;

/* By TensorProto.DataType. Whole numbers of 16 bits, and those without a sign of 32 and 64, become i32 and
 * i64. */
static const onnx_type_row onnx_types[] = {
    [TN_ONNX_FLOAT] = {"float", TN_F32, TN_PROTO_32, 4, 4},
    [TN_ONNX_UINT8] = {"uint8", TN_U8, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_INT8] = {"int8", TN_I8, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_UINT16] = {"uint16", TN_I32, TN_PROTO_VARINT, 5, 2},
    [TN_ONNX_INT16] = {"int16", TN_I32, TN_PROTO_VARINT, 5, 2},
    [TN_ONNX_INT32] = {"int32", TN_I32, TN_PROTO_VARINT, 5, 4},
    [TN_ONNX_INT64] = {"int64", TN_I64, TN_PROTO_VARINT, 7, 8},
    [TN_ONNX_STRING] = {"string", TN_ANY, 0, 0, 0},
    [TN_ONNX_BOOL] = {"bool", TN_BOOL, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_FLOAT16] = {"float16", TN_F16, TN_PROTO_VARINT, 5, 2},
    [TN_ONNX_DOUBLE] = {"double", TN_F64, TN_PROTO_64, 10, 8},
    [TN_ONNX_UINT32] = {"uint32", TN_I64, TN_PROTO_VARINT, 11, 4},
    [TN_ONNX_UINT64] = {"uint64", TN_I64, TN_PROTO_VARINT, 11, 8},
    [14] = {"complex64", TN_ANY, 0, 0, 0},
    [15] = {"complex128", TN_ANY, 0, 0, 0},
    [TN_ONNX_BFLOAT16] = {"bfloat16", TN_BF16, TN_PROTO_VARINT, 5, 2},
    [TN_ONNX_FLOAT8E4M3FN] = {"float8e4m3fn", TN_F32, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", TN_F32, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_FLOAT8E5M2] = {"float8e5m2", TN_F32, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", TN_F32, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_UINT4] = {"uint4", TN_U8, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_INT4] = {"int4", TN_I8, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_FLOAT4E2M1] = {"float4e2m1", TN_F32, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_UINT2] = {"uint2", TN_U8, TN_PROTO_VARINT, 5, 1},
    [TN_ONNX_INT2] = {"int2", TN_I8, TN_PROTO_VARINT, 5, 1},
};

static const onnx_type_row *onnx_type_of(int32_t data_type) {
  static const onnx_type_row unknown = {"an unknown type", TN_ANY, 0, 0, 0};
  bool known = data_type > 0 && (size_t)data_type < sizeof onnx_types / sizeof *onnx_types;
  return known && onnx_types[data_type].name != NULL ? &onnx_types[data_type] : &unknown;
}

int32_t tn_onnx_dtype(int32_t data_type) { return onnx_type_of(data_type)->dtype; }
const char *tn_onnx_type_name(int32_t data_type) { return onnx_type_of(data_type)->name; }

/* ---- tensors ---- */

static tn_status onnx_read_external(tn_onnx_file *f, tn_proto entry, tn_onnx_tensor *t) {
  const char *key = "", *value = "";
  tn_proto_field field;
  while (tn_proto_next(&entry, &field)) {
    if (field.number == 1) TN_TRY(onnx_take_text(f, &field, &key));
    if (field.number == 2) TN_TRY(onnx_take_text(f, &field, &value));
  }
  if (entry.bad) return onnx_damaged(f, "the place of a tensor's contents");
  if (strcmp(key, "location") == 0) t->location = value;
  int64_t *number = strcmp(key, "offset") == 0 ? &t->offset : strcmp(key, "length") == 0 ? &t->bytes : NULL;
  if (number != NULL && (!tn_text_to_int(value, number) || *number < 0))
    return tn_failf(f->env, TN_EINVAL, "%s: tensor '%s': its %s is '%.40s', expected a number of bytes",
                    f->path, t->name, key, value);
  return TN_OK;
}

typedef struct onnx_dims {
  tn_type *type;
  bool many;
} onnx_dims;

static void onnx_take_dim(void *context, uint64_t value) {
  onnx_dims *d = context;
  d->many = d->many || d->type->rank == TN_MAX_RANK;
  if (!d->many) d->type->dims[d->type->rank++] = (int64_t)value;
}

tn_status onnx_read_tensor(tn_onnx_file *f, tn_proto message, tn_onnx_tensor *t) {
  bool elsewhere = false;
  onnx_dims dims = {&t->type, false};
  *t = (tn_onnx_tensor){.name = "", .message = message, .bytes = -1};
  tn_proto_field field;
  while (tn_proto_next(&message, &field)) switch (field.number) {
    case 1: tn_proto_numbers(&field, TN_PROTO_VARINT, onnx_take_dim, &dims); break;
    case 2: t->data_type = (int32_t)field.value; break;
    case 8: TN_TRY(onnx_take_text(f, &field, &t->name)); break;
    case 13: TN_TRY(onnx_read_external(f, field.bytes, t)); break;
    case 14: elsewhere = field.value == 1; break;
    default: break;
    }
  int64_t bytes;
  t->type.dtype = tn_onnx_dtype(t->data_type);
  size_t size = t->type.dtype != TN_ANY ? tn_dtype_size(t->type.dtype) : 1;
  if (message.bad) return onnx_damaged(f, "a tensor");
  if (dims.many || !tn_checked_bytes(t->type.dims, t->type.rank, size, &bytes))
    return tn_failf(f->env, TN_EINVAL,
                    "%s: tensor '%s' has dimensions that no tensor has, expected at most %d", f->path,
                    t->name, TN_MAX_RANK);
  if (elsewhere && t->location == NULL) return onnx_damaged(f, "the place of a tensor's contents");
  if (!elsewhere) t->location = NULL;
  return TN_OK;
}

/* ---- contents of tensors ---- */

/* Where elements are written, of the size of the tensor's Tenon type. */
typedef struct onnx_contents {
  const onnx_type_row *row;
  int32_t data_type, dtype;
  uint8_t *to;
  int64_t at, count;
} onnx_contents;

/* ---- elements of 8 bits and fewer ---- */

/* A float of a sign, `exponent` and `mantissa` bits. Without infinities the largest codes are numbers but for
 * NaN: that of all ones, or with `unsigned zero` that of the sign alone, whose bias is one more. */
typedef struct onnx_small_float {
  int32_t data_type, exponent, mantissa, bias;
  bool infinities, unsigned_zero;
} onnx_small_float;

static const onnx_small_float onnx_small_floats[] = {
    {TN_ONNX_FLOAT8E4M3FN, 4, 3, 7, false, false}, {TN_ONNX_FLOAT8E4M3FNUZ, 4, 3, 8, false, true},
    {TN_ONNX_FLOAT8E5M2, 5, 2, 15, true, false},   {TN_ONNX_FLOAT8E5M2FNUZ, 5, 2, 16, false, true},
    {TN_ONNX_FLOAT4E2M1, 2, 1, 1, false, false},
};

static float onnx_small_value(const onnx_small_float *s, uint32_t code) {
  uint32_t bits = (uint32_t)(s->exponent + s->mantissa), rest = code & ((1U << bits) - 1);
  int32_t exponent = (int32_t)(rest >> s->mantissa), top = (1 << s->exponent) - 1;
  double fraction = (double)(rest & ((1U << s->mantissa) - 1)) / (1 << s->mantissa);
  double sign = code >> bits & 1 ? -1 : 1;
  if (s->unsigned_zero && rest == 0 && sign < 0) return NAN;
  if (s->infinities && exponent == top) return fraction == 0 ? (float)(sign * HUGE_VAL) : NAN;
  if (!s->unsigned_zero && bits == 7 && rest == 127) return NAN;
  double size = exponent == 0 ? ldexp(fraction, 1 - s->bias) : ldexp(1 + fraction, exponent - s->bias);
  return (float)(sign * size);
}

/* Bits of an element in contents that are packed. */
static int32_t onnx_packed_bits(int32_t data_type) {
  bool half = data_type == TN_ONNX_UINT4 || data_type == TN_ONNX_INT4 || data_type == TN_ONNX_FLOAT4E2M1;
  return half ? 4 : data_type == TN_ONNX_UINT2 || data_type == TN_ONNX_INT2 ? 2 : 8;
}

/* Bits of an element as those of its Tenon type. */
static uint64_t onnx_widen(int32_t data_type, uint64_t value) {
  uint32_t bits = 0;
  if (data_type == TN_ONNX_INT16) return (uint64_t)(int64_t)(int16_t)value;
  if (data_type == TN_ONNX_INT4) return (uint64_t)(int64_t)((int64_t)(value << 60) >> 60);
  if (data_type == TN_ONNX_INT2) return (uint64_t)(int64_t)((int64_t)(value << 62) >> 62);
  for (size_t i = 0; i < sizeof onnx_small_floats / sizeof *onnx_small_floats; i++) {
    if (onnx_small_floats[i].data_type != data_type) continue;
    float number = onnx_small_value(&onnx_small_floats[i], (uint32_t)value);
    memcpy(&bits, &number, sizeof bits);
    return bits;
  }
  return value;
}

/* One element, given by its bits. Narrower whole numbers are extended by their sign. */
static void onnx_put(void *context, uint64_t value) {
  onnx_contents *c = context;
  size_t size = tn_dtype_size(c->dtype);
  if (c->at < c->count) {
    value = onnx_widen(c->data_type, value);
    memcpy(c->to + (size_t)c->at * size, &value, size);
  }
  c->at++;
}

/* A byte with several elements, the first in its lowest bits; those behind the last element are padding. */
static void onnx_put_packed(void *context, uint64_t byte) {
  onnx_contents *c = context;
  int32_t bits = onnx_packed_bits(c->data_type);
  for (int32_t at = 0; at < 8; at += bits)
    if (bits == 8 || c->at < c->count || at == 0) onnx_put(c, byte >> at & ((1U << bits) - 1));
}

static void onnx_put_raw(onnx_contents *c, tn_proto bytes) {
  uint64_t value = 0;
  bool packed = onnx_packed_bits(c->data_type) < 8;
  if (c->row->size == tn_dtype_size(c->dtype) && !packed) {
    size_t count = tn_proto_left(&bytes), room = (size_t)c->count * c->row->size;
    if (count > 0) memcpy(c->to, bytes.at, count < room ? count : room);
    c->at = (int64_t)(count / c->row->size) + (count % c->row->size != 0);
    return;
  }
  while (tn_proto_left(&bytes) >= c->row->size) {
    memcpy(&value, bytes.at, c->row->size);
    bytes.at += c->row->size;
    if (packed)
      onnx_put_packed(c, value);
    else
      onnx_put(c, value);
  }
}

static tn_status onnx_read_elsewhere(tn_onnx_file *f, const tn_onnx_tensor *t, onnx_contents *c) {
  if (t->location[0] == '/' || strstr(t->location, "..") != NULL)
    return tn_failf(f->env, TN_EINVAL, "%s: tensor '%s' lies in '%s', expected a file in the model's folder",
                    f->path, t->name, t->location);
  char *folder = tn_path_folder(f->env, f->path);
  char *path = folder != NULL ? tn_path_join(f->env, folder, t->location) : NULL;
  tn_input input = {.fd = -1};
  size_t bytes = ((size_t)c->count * c->row->size * (size_t)onnx_packed_bits(t->data_type) + 7) / 8;
  tn_status status = path != NULL ? tn_input_open(f->env, path, &input) : TN_ENOMEM;
  uint8_t *raw = status == TN_OK ? tn_alloc(f->env, bytes + 1) : NULL;
  if (status == TN_OK && raw == NULL) status = TN_ENOMEM;
  if (status == TN_OK && t->bytes >= 0 && (uint64_t)t->bytes != bytes)
    status = tn_failf(f->env, TN_EINVAL, "%s: tensor '%s' has %lld bytes in %s, expected %zu", f->path,
                      t->name, (long long)t->bytes, t->location, bytes);
  if (status == TN_OK) status = tn_input_read(&input, f->env, (uint64_t)t->offset, raw, bytes);
  if (status == TN_OK) onnx_put_raw(c, tn_proto_of(raw, bytes));
  tn_release(f->env, raw);
  if (input.fd >= 0) tn_input_close(f->env, &input);
  tn_release(f->env, path);
  tn_release(f->env, folder);
  return status;
}

tn_status tn_onnx_tensor_read(tn_onnx_file *f, const tn_onnx_tensor *t, void *to) {
  onnx_contents c = {onnx_type_of(t->data_type), t->data_type, t->type.dtype, to, 0, tn_type_count(&t->type)};
  if (t->type.dtype == TN_ANY)
    return tn_failf(f->env, TN_EUNSUPPORTED, "%s: tensor '%s' is of %s, which Tenon lacks", f->path, t->name,
                    tn_onnx_type_name(t->data_type));
  if (t->make != NULL) return t->make(f, t, to);
  tn_proto message = t->message;
  tn_proto_field field;
  while (t->location == NULL && tn_proto_next(&message, &field)) {
    if (field.number == 9 && field.form == TN_PROTO_BYTES) onnx_put_raw(&c, field.bytes);
    if (field.number == c.row->number && field.number != 9)
      tn_proto_numbers(&field, c.row->form, onnx_packed_bits(t->data_type) < 8 ? onnx_put_packed : onnx_put,
                       &c);
  }
  if (t->location != NULL) TN_TRY(onnx_read_elsewhere(f, t, &c));
  if (c.at == c.count) return TN_OK;
  return tn_failf(f->env, TN_EINVAL, "%s: tensor '%s' has %lld elements, expected %lld", f->path, t->name,
                  (long long)c.at, (long long)c.count);
}

/* core/formats/npy.c: the .npy reader and writer. A file is "\x93NUMPY", two bytes of version, the length
 * of the header (two bytes in version 1, four bytes later), the header, which is a Python dict as text,
 * and the array. */
#include "core/formats/npy.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/formats/input.h"

static const char npy_magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

enum {
  PREFIX_BYTES = 12, /* magic, version, and the longer form of the length */
  LONGEST_HEADER = 65536,
  ALIGNMENT = 64 /* of the data, as NumPy writes it */
};

/* The types that NumPy and Tenon share. */
typedef struct npy_type {
  const char *descr, *name;
  int32_t dtype;
} npy_type;

static const npy_type npy_types[] = {{"|b1", "bool", TN_BOOL},   {"|u1", "uint8", TN_U8},
                                     {"|i1", "int8", TN_I8},     {"<i4", "int32", TN_I32},
                                     {"<i8", "int64", TN_I64},   {"<f2", "float16", TN_F16},
                                     {"<f4", "float32", TN_F32}, {"<f8", "float64", TN_F64}};
enum { NPY_TYPES = sizeof(npy_types) / sizeof(npy_types[0]) };

/* ---- the header's text: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } ---------------- */

typedef struct npy_scanner {
  const void *handle;
  const char *path, *text, *at;
} npy_scanner;

typedef struct npy_header {
  char descr[32];
  bool fortran_order;
  int64_t dims[TN_MAX_RANK];
  int32_t rank;
} npy_header;

static tn_status npy_expected(const npy_scanner *s, const char *what) {
  return tn_failf(s->handle, TN_EINVAL, "%s: its header is damaged at byte %zu (\"%.20s\"), expected %s",
                  s->path, (size_t)(s->at - s->text), s->at, what);
}

static void npy_skip_blanks(npy_scanner *s) { s->at += strspn(s->at, " \t\n\r"); }

/* Consumes a piece of text if it is next. */
static bool npy_take(npy_scanner *s, const char *piece) {
  npy_skip_blanks(s);
  if (!tn_text_starts(s->at, piece)) return false;
  s->at += strlen(piece);
  return true;
}

/* 'word' or "word" without escapes; the valid keys and values contain no escapes. */
static tn_status npy_take_string(npy_scanner *s, char *to, size_t capacity) {
  npy_skip_blanks(s);
  char quote = *s->at;
  if (quote != '\'' && quote != '"') return npy_expected(s, "a text in quotes");
  const char *end = strchr(s->at + 1, quote);
  size_t n = end != NULL ? (size_t)(end - s->at - 1) : capacity;
  if (n >= capacity) return npy_expected(s, "a short text in quotes");
  memcpy(to, s->at + 1, n);
  to[n] = '\0';
  s->at = end + 1;
  return TN_OK;
}

static tn_status npy_take_dim(npy_scanner *s, int64_t *dim) {
  int64_t value = 0;
  npy_skip_blanks(s);
  if (*s->at < '0' || *s->at > '9') return npy_expected(s, "a dimension");
  for (; *s->at >= '0' && *s->at <= '9'; s->at++)
    if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
        __builtin_add_overflow(value, (int64_t)(*s->at - '0'), &value))
      return npy_expected(s, "a dimension of at most 63 bits");
  npy_take(s, "L"); /* Python 2 suffix of long integers */
  *dim = value;
  return TN_OK;
}

/* "()", "(3,)", "(2, 3)" */
static tn_status npy_take_shape(npy_scanner *s, npy_header *header) {
  bool more = true;
  if (!npy_take(s, "(")) return npy_expected(s, "a shape in brackets");
  for (header->rank = 0; !npy_take(s, ")"); header->rank++) {
    if (!more) return npy_expected(s, "',' or ')'");
    if (header->rank == TN_MAX_RANK)
      return tn_failf(s->handle, TN_EUNSUPPORTED, "%s: more than %d dimensions are not supported", s->path,
                      TN_MAX_RANK);
    TN_TRY(npy_take_dim(s, &header->dims[header->rank]));
    more = npy_take(s, ",");
  }
  return TN_OK;
}

static tn_status npy_take_order(npy_scanner *s, npy_header *header) {
  header->fortran_order = npy_take(s, "True");
  return header->fortran_order || npy_take(s, "False") ? TN_OK : npy_expected(s, "True or False");
}

/* The descr of a structured type is a list, which is valid but unsupported. */
static tn_status npy_take_descr(npy_scanner *s, npy_header *header) {
  npy_skip_blanks(s);
  if (*s->at == '[')
    return tn_failf(s->handle, TN_EUNSUPPORTED,
                    "%s: structured types are not supported; store one plain array", s->path);
  return npy_take_string(s, header->descr, sizeof(header->descr));
}

static tn_status npy_take_member(npy_scanner *s, npy_header *header, unsigned *seen) {
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  char key[32];
  unsigned which = 0;
  TN_TRY(npy_take_string(s, key, sizeof(key)));
  while (which < 3 && !tn_text_equal(key, keys[which])) which++;
  if (which == 3 || (*seen & 1u << which) != 0)
    return npy_expected(s, "descr, fortran_order and shape, each once");
  *seen |= 1u << which;
  if (!npy_take(s, ":")) return npy_expected(s, "':'");
  if (which == 0) return npy_take_descr(s, header);
  return which == 1 ? npy_take_order(s, header) : npy_take_shape(s, header);
}

static tn_status npy_parse_header(npy_scanner *s, npy_header *header) {
  unsigned seen = 0;
  bool more = true;
  if (!npy_take(s, "{")) return npy_expected(s, "'{'");
  while (!npy_take(s, "}")) {
    if (!more) return npy_expected(s, "',' or '}'");
    TN_TRY(npy_take_member(s, header, &seen));
    more = npy_take(s, ",");
  }
  npy_skip_blanks(s);
  if (*s->at != '\0') return npy_expected(s, "its end");
  return seen == 7 ? TN_OK : npy_expected(s, "descr, fortran_order and shape, each once");
}

/* ---- reading ------------------------------------------------------------------------------------ */

static tn_status npy_refuse(const void *handle, const tn_input *input) {
  return tn_failf(handle, TN_EINVAL, "%s: not a .npy file: it does not start with \\x93NUMPY and a version",
                  input->path);
}

/* Reads the position and length of the header from the first bytes of the file. */
static tn_status npy_read_prefix(const tn_input *input, const void *handle, uint64_t *start,
                                 uint64_t *length) {
  unsigned char bytes[PREFIX_BYTES];
  if (input->bytes < PREFIX_BYTES) return npy_refuse(handle, input);
  TN_TRY(tn_input_read(input, handle, 0, bytes, PREFIX_BYTES));
  if (memcmp(bytes, npy_magic, sizeof(npy_magic)) != 0) return npy_refuse(handle, input);
  unsigned version = bytes[6];
  if (version < 1 || version > 3 || bytes[7] != 0)
    return tn_failf(handle, TN_EUNSUPPORTED, "%s: version %u.%u of the .npy format, expected 1.0, 2.0 or 3.0",
                    input->path, version, bytes[7]);
  *start = version == 1 ? 10 : 12;
  *length = (uint64_t)bytes[8] | (uint64_t)bytes[9] << 8;
  if (version > 1) *length |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
  if (*length > LONGEST_HEADER)
    return tn_failf(handle, TN_EINVAL, "%s: a header of %" PRIu64 " bytes, where at most %d are allowed",
                    input->path, *length, LONGEST_HEADER);
  if (*length > input->bytes - *start)
    return tn_failf(handle, TN_EINVAL, "%s: cut off in its header", input->path);
  return TN_OK;
}

static tn_status npy_read_header(const tn_input *input, const void *handle, npy_header *header,
                                 uint64_t *data) {
  uint64_t start = 0, length = 0;
  TN_TRY(npy_read_prefix(input, handle, &start, &length));
  *data = start + length;
  char *text = tn_alloc(handle, (size_t)length + 1);
  if (text == NULL) return TN_ENOMEM;
  tn_status status = tn_input_read(input, handle, start, text, (size_t)length);
  npy_scanner s = {handle, input->path, text, text};
  if (status == TN_OK && strlen(text) != length) {
    s.at = text + strlen(text);
    status = npy_expected(&s, "text without NUL bytes");
  }
  if (status == TN_OK) status = npy_parse_header(&s, header);
  tn_release(handle, text);
  return status;
}

static int32_t npy_dtype_of(const char *descr) {
  for (int i = 0; i < NPY_TYPES; i++)
    if (tn_text_equal(npy_types[i].descr, descr)) return npy_types[i].dtype;
  return TN_ANY;
}

/* Converts the header to a tensor type and checks that the rest of the file has exactly its size. */
static tn_status npy_make_type(const tn_input *input, const void *handle, const npy_header *header,
                               uint64_t data, tn_type *type, int64_t *bytes) {
  *type = (tn_type){.dtype = npy_dtype_of(header->descr), .rank = header->rank};
  memcpy(type->dims, header->dims, (size_t)header->rank * sizeof(int64_t));
  if (type->dtype == TN_ANY)
    return tn_failf(
        handle, TN_EUNSUPPORTED,
        "%s: type '%s' is not supported, expected bool, u1, i1, i4, i8, f2, f4 or f8, little-endian; "
        "convert it with astype",
        input->path, header->descr);
  if (header->fortran_order && header->rank > 1)
    return tn_failf(handle, TN_EUNSUPPORTED,
                    "%s: stored in Fortran order; store it after numpy.ascontiguousarray", input->path);
  if (!tn_checked_bytes(type->dims, type->rank, tn_dtype_size(type->dtype), bytes))
    return tn_failf(handle, TN_EINVAL, "%s: its shape has more bytes than can be counted", input->path);
  if (input->bytes - data != (uint64_t)*bytes)
    return tn_failf(handle, TN_EINVAL, "%s: has %" PRIu64 " bytes of data, but its shape needs %" PRId64,
                    input->path, input->bytes - data, *bytes);
  return TN_OK;
}

static tn_status npy_read_data(const tn_input *input, const void *handle, uint64_t at, int32_t dtype,
                               size_t bytes, void **data) {
  void *block = tn_alloc(handle, bytes);
  if (block == NULL) return TN_ENOMEM;
  tn_status status = tn_input_read(input, handle, at, block, bytes);
  if (status == TN_OK && dtype == TN_BOOL) status = tn_check_bools(handle, input->path, "", block, bytes);
  if (status == TN_OK)
    *data = block;
  else
    tn_release(handle, block);
  return status;
}

tn_status tn_npy_read(const void *handle, const char *path, tn_type *type, void **data) {
  tn_input input;
  npy_header header = {0};
  uint64_t at = 0;
  int64_t bytes = 0;
  *data = NULL;
  TN_TRY(tn_input_open(handle, path, &input));
  tn_status status = npy_read_header(&input, handle, &header, &at);
  if (status == TN_OK) status = npy_make_type(&input, handle, &header, at, type, &bytes);
  if (status == TN_OK) status = npy_read_data(&input, handle, at, type->dtype, (size_t)bytes, data);
  tn_input_close(handle, &input);
  return status;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static const npy_type *npy_type_of(int32_t dtype) {
  for (int i = 0; i < NPY_TYPES; i++)
    if (npy_types[i].dtype == dtype) return &npy_types[i];
  return NULL;
}

const char *tn_npy_name(int32_t dtype) {
  const npy_type *type = npy_type_of(dtype);
  return type != NULL ? type->name : NULL;
}

/* Prints the dict, padded with blanks and ended by a newline so that the data is aligned. A tuple of one
 * element has a trailing comma. */
static void npy_print_header(tn_text *text, const tn_type *type) {
  tn_text_addf(text, "{'descr': '%s', 'fortran_order': False, 'shape': (", npy_type_of(type->dtype)->descr);
  for (int32_t i = 0; i < type->rank; i++) tn_text_addf(text, "%s%" PRId64, i > 0 ? ", " : "", type->dims[i]);
  tn_text_add(text, type->rank == 1 ? ",), }" : "), }");
  while ((10 + text->n + 1) % ALIGNMENT != 0) {
    tn_text_add(text, " ");
    if (text->failed) return;
  }
  tn_text_add(text, "\n");
}

static tn_status npy_append_all(const void *handle, tn_new_file *file, const tn_text *header,
                                const void *data, size_t bytes) {
  unsigned char prefix[10] = {
      0, 0, 0, 0, 0, 0, 1, 0, (unsigned char)header->n, (unsigned char)(header->n >> 8)};
  memcpy(prefix, npy_magic, sizeof(npy_magic));
  TN_TRY(tn_file_append(handle, file, prefix, sizeof(prefix)));
  TN_TRY(tn_file_append(handle, file, header->v, header->n));
  return tn_file_append(handle, file, data, bytes);
}

tn_status tn_npy_write(const void *handle, const char *path, const tn_type *type, const void *data) {
  int64_t bytes = 0;
  tn_new_file file;
  if (npy_type_of(type->dtype) == NULL)
    return tn_failf(handle, TN_EUNSUPPORTED, "%s: NumPy has no type %s; cast the value to f32 first", path,
                    tn_dtype_name(type->dtype));
  if (!tn_checked_bytes(type->dims, type->rank, tn_dtype_size(type->dtype), &bytes))
    return tn_failf(handle, TN_EINVAL, "%s: its shape has more bytes than can be counted", path);
  tn_text header = tn_text_new(handle);
  npy_print_header(&header, type);
  tn_status status = header.failed ? TN_ENOMEM : tn_file_begin(handle, path, &file);
  if (status == TN_OK) {
    status = npy_append_all(handle, &file, &header, data, (size_t)bytes);
    if (status == TN_OK) status = tn_file_commit(handle, &file);
    tn_file_abandon(handle, &file);
  }
  tn_text_free(&header);
  return status;
}

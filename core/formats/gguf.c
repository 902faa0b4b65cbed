/* core/formats/gguf.c: see gguf.h. */
#include "core/formats/gguf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/vec.h"
#include "core/formats/gguf_blocks.h"
#include "core/formats/input.h"

enum {
  GGUF_FIRST = 1 << 20,     /* bytes that are read at first; doubled until keys and tensors are in them */
  GGUF_MOST = 256 << 20,    /* a vocabulary of a million words has less */
  GGUF_MOST_KEYS = 1 << 16, /* and tensors */
  GGUF_NAME = 1 << 10,      /* bytes of a key or a name */
  GGUF_ALIGNMENT = 32,
  GGUF_CHUNK = 1 << 18 /* bytes of blocks that are read at once */
};

struct tn_gguf {
  const void *handle;
  tn_input input;
  tn_arena arena;
  const uint8_t *head; /* the keys and the list of tensors; values point into it */
  TN_VEC(tn_gguf_value) values;
  TN_VEC(tn_gguf_tensor) tensors;
};

/* ---- the bytes in front of the data ---- */

typedef struct gguf_cursor {
  const tn_gguf *file;
  const uint8_t *at, *end;
  bool partial; /* the file goes on behind the end */
  bool cut;     /* the end was reached */
} gguf_cursor;

static tn_status gguf_damaged(const tn_gguf *f, const void *handle, const char *what) {
  return tn_failf(handle, TN_EINVAL, "%s: %s, expected a file of GGUF", f->input.path, what);
}

static const uint8_t *gguf_take(gguf_cursor *c, uint64_t n) {
  static const uint8_t nothing[8] = {0};
  const uint8_t *at = c->at;
  if (n > (uint64_t)(c->end - c->at)) {
    c->cut = true;
    c->at = c->end;
    return n <= sizeof nothing ? nothing : NULL;
  }
  c->at += n;
  return at;
}

static uint64_t gguf_load(const uint8_t *at, size_t n) {
  uint64_t value = 0;
  for (size_t i = n; i-- > 0;) value = value << 8 | at[i];
  return value;
}

static uint32_t gguf_u32(gguf_cursor *c) { return (uint32_t)gguf_load(gguf_take(c, 4), 4); }
static uint64_t gguf_u64(gguf_cursor *c) { return gguf_load(gguf_take(c, 8), 8); }

/* A copy of a key or name; NULL: it is cut off, too long, or has a NUL. */
static const char *gguf_name(gguf_cursor *c, tn_arena *arena) {
  uint64_t n = gguf_u64(c);
  if (n > GGUF_NAME) return NULL;
  const uint8_t *at = gguf_take(c, n);
  if (at == NULL || c->cut || memchr(at, 0, (size_t)n) != NULL) return NULL;
  char *name = tn_arena_alloc(arena, (size_t)n + 1);
  if (name != NULL && n > 0) memcpy(name, at, (size_t)n);
  return name;
}

/* ---- values ---- */

static const size_t gguf_sizes[TN_GGUF_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* Passes over one text. */
static void gguf_pass_text(gguf_cursor *c) { gguf_take(c, gguf_u64(c)); }

static void gguf_pass(gguf_cursor *c, const tn_gguf_value *value) {
  if (value->kind != TN_GGUF_TEXT) {
    size_t size = gguf_sizes[value->kind];
    bool fits = value->count <= (uint64_t)(c->end - c->at) / size;
    gguf_take(c, fits ? value->count * size : UINT64_MAX);
    return;
  }
  for (uint64_t i = 0; i < value->count && !c->cut; i++) gguf_pass_text(c);
}

static tn_status gguf_read_value(tn_gguf *f, gguf_cursor *c) {
  tn_gguf_value value = {.key = gguf_name(c, &f->arena), .count = 1};
  uint32_t kind = gguf_u32(c);
  value.list = kind == TN_GGUF_LIST;
  if (value.list) {
    kind = gguf_u32(c);
    value.count = gguf_u64(c);
  }
  if (c->cut) return TN_OK;
  if (value.key == NULL) return gguf_damaged(f, f->handle, "a key is too long or has a NUL");
  if (kind >= TN_GGUF_KINDS || kind == TN_GGUF_LIST)
    return tn_failf(f->handle, TN_EINVAL,
                    "%s: the value of '%.100s' is of type %" PRIu32 ", expected 0 to 12%s", f->input.path,
                    value.key, kind, kind == TN_GGUF_LIST ? ", and no list of lists" : "");
  value.kind = (int32_t)kind;
  value.at = c->at;
  gguf_pass(c, &value);
  value.limit = c->at;
  return tn_vec_push(f->handle, &f->values, value);
}

bool tn_gguf_next(tn_gguf_value *value, tn_gguf_element *element) {
  *element = (tn_gguf_element){.text = ""};
  if (value->count == 0) return false;
  value->count--;
  size_t size = value->kind == TN_GGUF_TEXT ? 8 : gguf_sizes[value->kind];
  uint64_t bits = gguf_load(value->at, size);
  value->at += size;
  float narrow;
  uint32_t low = (uint32_t)bits;
  switch (value->kind) {
  case TN_GGUF_TEXT:
    element->text = (const char *)value->at;
    element->bytes = (size_t)bits;
    value->at += bits;
    break;
  case TN_GGUF_I8: element->number = (int8_t)bits; break;
  case TN_GGUF_I16: element->number = (int16_t)bits; break;
  case TN_GGUF_I32: element->number = (int32_t)bits; break;
  case TN_GGUF_I64: element->number = (double)(int64_t)bits; break;
  case TN_GGUF_F32: memcpy(&narrow, &low, sizeof low), element->number = (double)narrow; break;
  case TN_GGUF_F64: memcpy(&element->number, &bits, sizeof bits); break;
  case TN_GGUF_BOOL: element->number = bits != 0; break;
  default: element->number = (double)bits; break;
  }
  return true;
}

/* ---- tensors ---- */

static tn_status gguf_bad_tensor(const tn_gguf *f, const tn_gguf_tensor *t, const char *why) {
  return tn_failf(f->handle, TN_EINVAL, "%s: tensor '%.100s': %s", f->input.path, t->name, why);
}

/* The bytes of its blocks; the first dimension of the file is contiguous and has whole blocks. */
static tn_status gguf_size_tensor(const tn_gguf *f, tn_gguf_tensor *t) {
  const tn_gguf_format *format = tn_gguf_format_at(t->format);
  int64_t bytes, most;
  if (!tn_checked_bytes(t->type.dims, t->type.rank, sizeof(float), &most))
    return gguf_bad_tensor(f, t, "a dimension is not possible");
  if (format == NULL) return TN_OK;
  if (t->type.rank > 0 && t->type.dims[t->type.rank - 1] % format->elements != 0)
    return gguf_bad_tensor(f, t, "its rows are no whole blocks");
  bytes = tn_type_count(&t->type) / format->elements * format->bytes;
  t->bytes = (uint64_t)bytes;
  return TN_OK;
}

static tn_status gguf_read_tensor(tn_gguf *f, gguf_cursor *c) {
  tn_gguf_tensor t = {.name = gguf_name(c, &f->arena), .type = {.dtype = TN_F32}};
  uint32_t rank = gguf_u32(c);
  if (c->cut) return TN_OK;
  if (t.name == NULL) return gguf_damaged(f, f->handle, "a name of a tensor is too long or has a NUL");
  if (rank > 4) return gguf_bad_tensor(f, &t, "it has more than four dimensions");
  t.type.rank = (int32_t)rank;
  for (uint32_t i = 0; i < rank; i++) t.type.dims[rank - 1 - i] = (int64_t)gguf_u64(c);
  uint32_t code = gguf_u32(c);
  t.offset = gguf_u64(c);
  if (c->cut) return TN_OK;
  t.format = tn_gguf_format_of(code);
  t.stored = tn_gguf_format_name(code);
  TN_TRY(gguf_size_tensor(f, &t));
  return tn_vec_push(f->handle, &f->tensors, t);
}

static int gguf_compare(const void *a, const void *b) {
  return strcmp(((const tn_gguf_tensor *)a)->name, ((const tn_gguf_tensor *)b)->name);
}

/* Data begin behind the list, aligned. */
static tn_status gguf_place_tensors(tn_gguf *f, uint64_t data) {
  double given = tn_gguf_number(f, "general.alignment", GGUF_ALIGNMENT);
  if (!(given >= 1 && given <= 1 << 20) || given != (double)(uint64_t)given)
    return gguf_damaged(f, f->handle, "general.alignment is no number from 1 to 1048576");
  uint64_t alignment = (uint64_t)given, bytes = f->input.bytes;
  data += (alignment - data % alignment) % alignment;
  for (size_t i = 0; i < f->tensors.n; i++) {
    tn_gguf_tensor *t = &f->tensors.v[i];
    if (t->offset % alignment != 0) return gguf_bad_tensor(f, t, "its data are not aligned");
    if (data > bytes || t->offset > bytes - data || t->bytes > bytes - data - t->offset)
      return gguf_bad_tensor(f, t, "its data reach behind the end of the file");
    t->offset += data;
  }
  if (f->tensors.n > 0) qsort(f->tensors.v, f->tensors.n, sizeof *f->tensors.v, gguf_compare);
  for (size_t i = 1; i < f->tensors.n; i++)
    if (gguf_compare(&f->tensors.v[i - 1], &f->tensors.v[i]) == 0)
      return gguf_bad_tensor(f, &f->tensors.v[i], "the name is there twice");
  return TN_OK;
}

/* ---- the file ---- */

bool tn_gguf_is(const uint8_t *bytes, size_t n) { return n >= 4 && memcmp(bytes, "GGUF", 4) == 0; }

static tn_status gguf_check_counts(const tn_gguf *f, uint32_t version, uint64_t tensors, uint64_t keys) {
  if (version == 1 || version > 3)
    return tn_failf(f->handle, TN_EUNSUPPORTED,
                    "%s: version %" PRIu32 " of GGUF, expected 2 or 3, little-endian; convert it anew",
                    f->input.path, version);
  if (tensors > GGUF_MOST_KEYS || keys > GGUF_MOST_KEYS)
    return gguf_damaged(f, f->handle, "it says that it has more than 65536 tensors or keys");
  return TN_OK;
}

static tn_status gguf_parse(tn_gguf *f, gguf_cursor *c) {
  if (!tn_gguf_is(gguf_take(c, 4), 4)) return gguf_damaged(f, f->handle, "it does not begin with GGUF");
  uint32_t version = gguf_u32(c);
  uint64_t tensors = gguf_u64(c), keys = gguf_u64(c);
  f->values.n = f->tensors.n = 0;
  if (!c->cut) TN_TRY(gguf_check_counts(f, version, tensors, keys));
  for (uint64_t i = 0; i < keys && !c->cut; i++) TN_TRY(gguf_read_value(f, c));
  for (uint64_t i = 0; i < tensors && !c->cut; i++) TN_TRY(gguf_read_tensor(f, c));
  if (!c->cut) return gguf_place_tensors(f, (uint64_t)(c->at - f->head));
  return c->partial ? TN_OK : gguf_damaged(f, f->handle, "it is cut off");
}

/* Reads the first n bytes and parses them; *again: there are too few. */
static tn_status gguf_try(tn_gguf *f, uint64_t n, bool *again) {
  uint8_t *head = tn_arena_alloc(&f->arena, (size_t)n + 1);
  if (head == NULL) return TN_ENOMEM;
  TN_TRY(tn_input_read(&f->input, f->handle, 0, head, (size_t)n));
  f->head = head;
  gguf_cursor c = {f, head, head + n, n < f->input.bytes && n < GGUF_MOST, false};
  tn_status status = gguf_parse(f, &c);
  *again = status == TN_OK && c.cut;
  return status;
}

static tn_status gguf_read_head(tn_gguf *f) {
  bool again = true;
  for (uint64_t n = GGUF_FIRST; again; n *= 4) {
    tn_arena_free(&f->arena);
    f->arena = tn_arena_new(f->handle);
    uint64_t most = f->input.bytes < GGUF_MOST ? f->input.bytes : GGUF_MOST;
    TN_TRY(gguf_try(f, n < most ? n : most, &again));
  }
  return TN_OK;
}

tn_status tn_gguf_open(const void *handle, const char *path, tn_gguf **file) {
  tn_gguf *f = tn_alloc(handle, sizeof *f);
  *file = NULL;
  if (f == NULL) return TN_ENOMEM;
  f->handle = handle;
  f->arena = tn_arena_new(handle);
  tn_status status = tn_input_open(handle, path, &f->input);
  if (status == TN_OK) status = gguf_read_head(f);
  if (status == TN_OK)
    *file = f;
  else
    tn_gguf_close(f);
  return status;
}

void tn_gguf_close(tn_gguf *f) {
  if (f == NULL) return;
  tn_input_close(f->handle, &f->input);
  tn_vec_free(f->handle, &f->values);
  tn_vec_free(f->handle, &f->tensors);
  tn_arena_free(&f->arena);
  tn_release(f->handle, f);
}

const char *tn_gguf_path(const tn_gguf *f) { return f->input.path; }
int32_t tn_gguf_count(const tn_gguf *f) { return (int32_t)f->tensors.n; }
const tn_gguf_tensor *tn_gguf_at(const tn_gguf *f, int32_t i) { return &f->tensors.v[i]; }

const tn_gguf_tensor *tn_gguf_tensor_find(const tn_gguf *f, const char *name) {
  const tn_gguf_tensor key = {.name = name};
  return f->tensors.n > 0 ? bsearch(&key, f->tensors.v, f->tensors.n, sizeof key, gguf_compare) : NULL;
}

const tn_gguf_value *tn_gguf_find(const tn_gguf *f, const char *key) {
  for (size_t i = 0; i < f->values.n; i++)
    if (strcmp(f->values.v[i].key, key) == 0) return &f->values.v[i];
  return NULL;
}

double tn_gguf_number(const tn_gguf *f, const char *key, double otherwise) {
  const tn_gguf_value *found = tn_gguf_find(f, key);
  tn_gguf_element element;
  if (found == NULL || found->list || found->kind == TN_GGUF_TEXT) return otherwise;
  tn_gguf_value value = *found;
  return tn_gguf_next(&value, &element) ? element.number : otherwise;
}

const char *tn_gguf_text(tn_gguf *f, const char *key, const char *otherwise) {
  const tn_gguf_value *found = tn_gguf_find(f, key);
  tn_gguf_element element;
  if (found == NULL || found->list || found->kind != TN_GGUF_TEXT) return otherwise;
  tn_gguf_value value = *found;
  if (!tn_gguf_next(&value, &element) || memchr(element.text, 0, element.bytes) != NULL) return otherwise;
  char *text = tn_arena_alloc(&f->arena, element.bytes + 1);
  if (text != NULL) memcpy(text, element.text, element.bytes);
  return text != NULL ? text : otherwise;
}

/* ---- data ---- */

tn_status tn_gguf_read(const tn_gguf *f, const void *handle, const tn_gguf_tensor *t, float *to) {
  const tn_gguf_format *format = tn_gguf_format_at(t->format);
  if (format == NULL)
    return tn_failf(
        handle, TN_EUNSUPPORTED,
        "%s: tensor '%.100s' is of %s, which is not read; expected F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, "
        "Q5_1, Q4_K, Q5_K or Q6_K",
        f->input.path, t->name, t->stored);
  uint64_t most = GGUF_CHUNK / (uint64_t)format->bytes * (uint64_t)format->bytes;
  uint8_t *blocks = tn_alloc(handle, (size_t)most);
  tn_status status = blocks != NULL ? TN_OK : TN_ENOMEM;
  for (uint64_t done = 0; status == TN_OK && done < t->bytes; done += most) {
    uint64_t n = t->bytes - done < most ? t->bytes - done : most;
    status = tn_input_read(&f->input, handle, t->offset + done, blocks, (size_t)n);
    for (uint64_t at = 0; status == TN_OK && at < n; at += (uint64_t)format->bytes, to += format->elements)
      format->read(blocks + at, to);
  }
  tn_release(handle, blocks);
  return status;
}

/* core/formats/gguf.h: files of GGUF, versions 2 and 3, little-endian: keys with values, then the names,
 * shapes and types of tensors, then their data, each aligned (specified by the project ggml,
 * https://github.com/ggml-org/ggml). Tensors are stored as floats or as blocks of a few bits an element, and
 * are read as f32.
 *
 * Counts, lengths and places of the file are checked against its size before any of them sizes an allocation,
 * so a malicious file results in an ordinary error. A file is read, not mapped: one that shrinks meanwhile is
 * an error, too. */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"

/* Types of values, as the file numbers them. */
enum {
  TN_GGUF_U8,
  TN_GGUF_I8,
  TN_GGUF_U16,
  TN_GGUF_I16,
  TN_GGUF_U32,
  TN_GGUF_I32,
  TN_GGUF_F32,
  TN_GGUF_BOOL,
  TN_GGUF_TEXT,
  TN_GGUF_LIST,
  TN_GGUF_U64,
  TN_GGUF_I64,
  TN_GGUF_F64,
  TN_GGUF_KINDS
};

/* A value; of a list its elements, which tn_gguf_next takes one by one. */
typedef struct tn_gguf_value {
  const char *key;
  int32_t kind;         /* of a list its elements' */
  bool list;            /* whether it is one; lists of lists are refused */
  uint64_t count;       /* elements; 1: no list */
  const uint8_t *at;    /* the rest of the elements in the file */
  const uint8_t *limit; /* behind them */
} tn_gguf_value;

/* A number, true as 1, or a text of n bytes without a NUL behind it. */
typedef struct tn_gguf_element {
  double number;
  const char *text;
  size_t bytes;
} tn_gguf_element;

typedef struct tn_gguf_tensor {
  const char *name;
  const char *stored; /* the type's name, "Q4_K" */
  int32_t format;     /* of its blocks; -1: unknown here, so that it cannot be read */
  tn_type type;       /* f32, dimensions in the order of Tenon: the last one is contiguous */
  uint64_t offset;    /* from the start of the file */
  uint64_t bytes;
} tn_gguf_tensor;

typedef struct tn_gguf tn_gguf;

bool tn_gguf_is(const uint8_t *bytes, size_t n); /* by the first four bytes */
/* TN_EIO: the file cannot be read; TN_EINVAL: it is damaged, with the place. */
tn_status tn_gguf_open(const void *handle, const char *path, tn_gguf **file);
void tn_gguf_close(tn_gguf *file); /* accepts NULL */
const char *tn_gguf_path(const tn_gguf *file);

/* Sorted by name. */
int32_t tn_gguf_count(const tn_gguf *file);
const tn_gguf_tensor *tn_gguf_at(const tn_gguf *file, int32_t i);
const tn_gguf_tensor *tn_gguf_tensor_find(const tn_gguf *file, const char *name); /* NULL: none */

/* The value of a key, or NULL. */
const tn_gguf_value *tn_gguf_find(const tn_gguf *file, const char *key);
/* Takes the next element of a copy of a value; false behind the last one. */
bool tn_gguf_next(tn_gguf_value *value, tn_gguf_element *element);
/* The number or the text of a key, or `otherwise` where the key is absent or of another kind. A text lives as
 * long as the file. */
double tn_gguf_number(const tn_gguf *file, const char *key, double otherwise);
const char *tn_gguf_text(tn_gguf *file, const char *key, const char *otherwise);

/* Reads a whole tensor as f32; `to` has room for it. Any number of threads may read one file, each with its
 * own handle. TN_EUNSUPPORTED: its format is unknown. */
tn_status tn_gguf_read(const tn_gguf *file, const void *handle, const tn_gguf_tensor *tensor, float *to);

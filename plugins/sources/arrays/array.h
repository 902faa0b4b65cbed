/* plugins/sources/arrays/array.h: arrays in files: where the numbers of one lie, how they are stored, and as
 * what they are read. Files are mapped, so a row is read from the disk when it is used. A file must not
 * become shorter while it is open. */
#pragma once

#include "plugins/sources/sources.h"

/* ---- mapped.c ---- */

typedef struct mapped_file {
  const uint8_t *bytes; /* never NULL while it is open */
  size_t count;
} mapped_file;
tn_status mapped_open(const void *handle, const char *path, mapped_file *file);
void mapped_close(mapped_file *file);

/* Little-endian numbers, at any address. */
uint16_t bytes_u16(const uint8_t *at);
uint32_t bytes_u32(const uint8_t *at);
uint64_t bytes_u64(const uint8_t *at);

/* ---- element.c ---- */

enum { ELEMENT_NONE = 0, ELEMENT_BOOL, ELEMENT_SIGNED, ELEMENT_UNSIGNED, ELEMENT_FLOAT, ELEMENT_BFLOAT };
/* How a file stores a number. */
typedef struct array_element {
  uint8_t kind, size; /* ELEMENT_...; bytes */
  uint8_t swapped;    /* big-endian */
} array_element;

/* The element of a name such as "u16"; kind ELEMENT_NONE for another word. */
array_element element_named(const char *word, size_t n);
/* "u16" */
const char *element_name(const array_element *e);
/* The dtype that is read where the configuration names none: the same one; whole numbers without a dtype of
 * their own become the next larger one. Whole numbers of targets become i32, as class numbers are. */
int32_t element_dtype(const array_element *e, int32_t role);
/* Whether numbers of the element can be read as `dtype`. */
int32_t element_converts(const array_element *e, int32_t dtype);
/* Reads n elements as `dtype`, to which they convert. Returns the number of the first one that `dtype` cannot
 * hold, with *value; -1: it holds all. */
int64_t element_read(const array_element *e, const uint8_t *from, int32_t dtype, void *to, int64_t n,
                     double *value);

/* ---- array.c ---- */

typedef struct array {
  mapped_file file;
  uint8_t *unpacked; /* the content of a deflated member; NULL: `data` lies in the file */
  const uint8_t *data;
  array_element element;
  int32_t rank;
  int64_t dims[TN_MAX_RANK];
} array;

/* Which array of which file. */
typedef struct array_place {
  const char *path;
  const char *member; /* of a .npz or .safetensors file; "": that of the name `preferred`, or the only one */
  const char *preferred;
  /* Other files than .npy, .npz and .safetensors: raw.kind says the element, and dims the sizes of a row. */
  array_element raw;
  int32_t raw_rank;
  int64_t raw_dims[TN_MAX_RANK], skip; /* skip: bytes in front of the first row */
} array_place;

/* Opens an array of at least one dimension. Messages name the file and the member. */
tn_status array_open(const void *handle, const array_place *place, array *a);
void array_close(const void *handle, array *a);

/* ---- array_shape.c ---- */

/* The bytes of n dimensions of an element; -1: more than can be counted. */
int64_t array_bytes(const int64_t *dims, int32_t n, size_t element);
/* Ends with the message for an array whose shape and bytes differ. */
tn_status array_check_bytes(const void *handle, const char *where, const array *a, uint64_t bytes);

/* ---- the formats: each sets data, element, rank and dims of an array whose file is mapped ---- */

/* npy.c: a .npy file in memory. `where` names it in messages. */
tn_status npy_find(const void *handle, const char *where, const uint8_t *bytes, size_t count, array *a);
/* npz.c */
tn_status npz_find(const void *handle, const array_place *place, array *a);
/* safetensors.c */
tn_status safetensors_find(const void *handle, const array_place *place, array *a);

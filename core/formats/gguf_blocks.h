/* core/formats/gguf_blocks.h: the formats of tensors of GGUF: blocks of a fixed number of elements and bytes.
 */
#pragma once

#include <stdint.h>

typedef struct tn_gguf_format {
  const char *name;        /* "Q4_K" */
  int32_t code;            /* in the file */
  int32_t elements, bytes; /* of a block */
  /* Writes the elements of one block. */
  void (*read)(const uint8_t *block, float *to);
} tn_gguf_format;

/* The format at a place of the list, from 0; NULL: there are no more. */
const tn_gguf_format *tn_gguf_format_at(int32_t i);
/* The place of a code in the list; -1: unknown. */
int32_t tn_gguf_format_of(uint32_t code);
/* The name of a code that may be unknown here, or "an unknown type". */
const char *tn_gguf_format_name(uint32_t code);

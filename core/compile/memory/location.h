/* core/compile/memory/location.h: locations: a memory region and an offset in it. A program is immutable and
 * independent of addresses, so operands have locations; the executor (core/exec) binds them to memory. */
#pragma once

#include "tenon/base.h"

/* The memory that an offset is relative to. */
enum {
  TN_BASE_NONE = 0,     /* an absent operand */
  TN_BASE_ARENA = 1,    /* device memory of one run, with planned offsets */
  TN_BASE_REGION = 2,   /* state: a region of the state map */
  TN_BASE_SLOT = 3,     /* the input slot; a step on the fallback reads its host copy */
  TN_BASE_OUTPUT = 4,   /* the output buffer */
  TN_BASE_HOST = 5,     /* host memory of the steps on the fallback */
  TN_BASE_CONSTANT = 6, /* device memory of the program's constants, kept from run to run */
  TN_BASE_OFFLOAD = 7   /* host memory of offloaded values */
};

typedef struct tn_location {
  int32_t base;   /* TN_BASE_... */
  int32_t region; /* TN_BASE_REGION: index into the state map's regions */
  int64_t offset; /* bytes */
} tn_location;

/* A program input in the slot, or an output in the output buffer. */
typedef struct tn_binding {
  const char *name;
  tn_type type;
  int64_t offset; /* bytes */
} tn_binding;

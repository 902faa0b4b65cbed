/* tests/fakecuda/cudnn/contract.h: the kinds of descriptors and their attributes, as cuDNN 9.19 answers for
 * them: which types and counts an attribute takes, and with which status others are refused. */
#pragma once

#include "tests/fakecuda/cudnn/body.h"

enum {
  FAKEDNN_REQUIRED = 1, /* the descriptor does not finalize without it */
  FAKEDNN_GET = 2,      /* made by finalization; cannot be set */
  FAKEDNN_LACKS = 4     /* the library has it, the double has not */
};

typedef struct fakednn_attribute {
  int16_t name;
  int32_t most; /* 1: exactly one element; otherwise 1 to `most` */
  int16_t part; /* the cudnnBackendDescriptorType_t of a descriptor */
  int16_t flags;
  uint32_t types;     /* bits, by cudnnBackendAttributeType_t */
  int16_t wrong_type; /* the status for another type, or for an attribute that cannot be set; 0: that of the
                         kind */
} fakednn_attribute;

typedef struct fakednn_kind {
  int32_t type;
  const char *name;
  int16_t unknown, wrong_type, wrong_parts; /* statuses; wrong_parts: not one descriptor */
  const fakednn_attribute *attributes;
  int n_attributes;
} fakednn_kind;

/* NULL: the double lacks it. */
const fakednn_kind *fakednn_kind_of(int32_t type);
/* NULL: the kind has no such attribute. */
const fakednn_attribute *fakednn_attribute_of(const fakednn_kind *kind, int32_t name);

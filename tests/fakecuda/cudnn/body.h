/* tests/fakecuda/cudnn/body.h: what a descriptor holds: its attributes' values. A descriptor of a user refers
 * to a body; so does the body of another descriptor that has it as an attribute, which keeps it when the user
 * destroys the descriptor. A finalized body does not change any more. */
#pragma once

#include <stdatomic.h>
#include "tests/fakecuda/cudnn/library.h"

enum { FAKEDNN_VALUES = 20 };

typedef struct fakednn_value {
  int32_t name, type;
  int64_t count;
  void *data; /* CUDNN_TYPE_BACKEND_DESCRIPTOR: fakednn_body *[count] */
} fakednn_value;

typedef struct fakednn_body {
  atomic_int references;
  int32_t type; /* a cudnnBackendDescriptorType_t */
  bool finalized;
  int n_values;
  fakednn_value values[FAKEDNN_VALUES];
  const void *made;                             /* by finalization; see the file that does it */
  void (*release)(const struct fakednn_body *); /* NULL, or called before the body is freed */
} fakednn_body;

fakednn_body *fakednn_body_new(int32_t type); /* NULL: no memory */
fakednn_body *fakednn_body_keep(fakednn_body *body);
void fakednn_body_drop(fakednn_body *body);

/* Bytes of an element of a cudnnBackendAttributeType_t. */
size_t fakednn_type_size(int32_t type);
/* Replaces the value of an attribute by a copy; bodies in it are kept. false: no memory. */
bool fakednn_store(fakednn_body *body, int32_t name, int32_t type, int64_t count, const void *data);

/* NULL: not set. */
const fakednn_value *fakednn_value_of(const fakednn_body *body, int32_t name);
int64_t fakednn_count_of(const fakednn_body *body, int32_t name); /* 0: not set */
/* Element `at` of integers, enumerations and booleans; `otherwise` where it is not set. */
int64_t fakednn_integer(const fakednn_body *body, int32_t name, int64_t at, int64_t otherwise);
double fakednn_number(const fakednn_body *body, int32_t name, double otherwise);
/* NULL: not set. */
fakednn_body *fakednn_part(const fakednn_body *body, int32_t name, int64_t at);
/* Handles and texts. NULL: not set. */
const void *fakednn_pointer(const fakednn_body *body, int32_t name, int64_t at);

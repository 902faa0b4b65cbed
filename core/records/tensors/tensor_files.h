/* core/records/tensors/tensor_files.h: weights on the disk as one list of tensors. */
#pragma once

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/formats/safetensors.h"

typedef struct tn_stored_tensor {
  const char *name;
  const char *stored; /* the type's name in the file, for types without a Tenon type (type.dtype TN_ANY) */
  tn_type type;
  uint64_t bytes;
  bool optimizer;              /* of a checkpoint's optimizer.safetensors */
  const tn_safetensors *file;  /* NULL: a .npy file of its own */
  const tn_safetensor *tensor; /* in `file` */
  const char *path;            /* of the file */
} tn_stored_tensor;

enum { TN_TENSORS_FILE = 0, TN_TENSORS_CHECKPOINT = 1, TN_TENSORS_NPY = 2 };

typedef struct tn_tensor_files {
  tn_arena arena;
  const char *path; /* what the given path stands for */
  int32_t kind;
  bool check;
  tn_safetensors *files[2];  /* model and optimizer; NULL: none */
  tn_stored_tensor *tensors; /* those of the model first; each part is sorted by name */
  int32_t n;
} tn_tensor_files;

/* Opens weights (tenon/folders.h). `check`: files of a checkpoint are compared with their record first; of a
 * run folder the last checkpoint is taken, with a warning, where the best is not as it was written. `files`
 * is closed by the caller, on failure as well. */
tn_status tn_tensor_files_open(const void *handle, const char *path, bool check, tn_tensor_files *files);
void tn_tensor_files_close(tn_tensor_files *files);

/* Reads one tensor; *data is the caller's (tn_release). */
tn_status tn_stored_tensor_read(const void *handle, const tn_stored_tensor *tensor, void **data);
/* The tensor of this name in one part; NULL: none. */
const tn_stored_tensor *tn_tensor_files_find(const tn_tensor_files *files, bool optimizer, const char *name);

/* "f32", or the file's own name of a type that Tenon has not. */
const char *tn_stored_tensor_dtype(const tn_stored_tensor *tensor);

/* backends/cuda/modules/ahead.h: device code that nvcc has compiled when the plugin was built.
 *
 * A file for each architecture, "tenon-cuda.sm_90.images", has the image of each .cu file of device/. Its key
 * is the one of the texts and flags that it was made from (tn_cuda_sources_key); a plugin of other texts does
 * not use it. Each image has a checksum. */
#pragma once

#include "backends/cuda/modules/image_cache.h"
#include "backends/cuda/modules/sums.h"

enum { TN_CUDA_AHEAD_NAME = 64, TN_CUDA_AHEAD_IMAGES = 256 };

typedef struct tn_cuda_ahead_entry {
  char name[TN_CUDA_AHEAD_NAME]; /* "softmax.cu" */
  uint64_t at, bytes;            /* the place in the file */
  tn_cuda_hash sum;
} tn_cuda_ahead_entry;

typedef struct tn_cuda_ahead {
  char path[4096];
  int32_t arch;
  int32_t nvcc_version; /* 13000 for 13.0 */
  int32_t n;
  tn_cuda_ahead_entry entries[TN_CUDA_AHEAD_IMAGES];
} tn_cuda_ahead;

/* The state of a file. */
typedef enum tn_cuda_ahead_state {
  TN_CUDA_AHEAD_MISSING,
  TN_CUDA_AHEAD_READY,
  TN_CUDA_AHEAD_STALE,  /* made from other texts or with other flags */
  TN_CUDA_AHEAD_DAMAGED /* no such file, or its table has a wrong checksum */
} tn_cuda_ahead_state;

/* Reads the table of the file for an architecture in a folder. */
tn_cuda_ahead_state tn_cuda_ahead_open(const char *folder, int32_t arch, tn_cuda_ahead *ahead);
/* Finds the file whose code a device of an architecture runs: of the same major version, and of the same
 * minor version or a lower one. In `folder`; or where it is "", where the plugin is installed or was built. A
 * file that is stale or damaged ends the search; `ahead->path` names it. */
tn_cuda_ahead_state tn_cuda_ahead_find(const char *folder, int32_t arch, tn_cuda_ahead *ahead);
/* Reads the image of a file such as "softmax.cu". false: the table does not name it, or the image is damaged,
 * for which *damaged is true. Any thread. */
bool tn_cuda_ahead_read(const tn_cuda_ahead *ahead, const char *name, tn_cuda_image *image, bool *damaged);
/* Writes a file with images. `ahead` has arch, nvcc_version, n and the names; the rest is filled in. false:
 * errno says why. */
bool tn_cuda_ahead_write(const char *path, tn_cuda_ahead *ahead, const tn_cuda_image *images);

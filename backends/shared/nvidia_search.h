/* backends/shared/nvidia_search.h: where the shared objects of CUDA may lie. */
#pragma once

#include <stdbool.h>

#include "tenon/api.h"

enum { TN_NVIDIA_NAMES = 8, TN_NVIDIA_PATH = 512, TN_NVIDIA_WHY = 2048 };

typedef struct tn_nvidia_wanted {
  const char *title; /* "the NVIDIA driver" */
  const char
      *names[TN_NVIDIA_NAMES]; /* of files, the best first; NULL at the end; "FOLDER/FILE" in a place */
  const char *remedy;
} tn_nvidia_wanted;

/* Opens the first file that is found: for each name, in `folders` (separated by ':'), in the places of the
 * system's loader, in the toolkit's folder (CUDA_PATH, CUDA_HOME, /usr/local/cuda), in the nvidia packages of
 * Python's site-packages (VIRTUAL_ENV, CONDA_PREFIX, that of the first python3 in PATH, the user's, the
 * system's). TN_EUNAVAILABLE with the names, the places and the remedy. */
tn_status tn_nvidia_find_library(tn_env *env, const char *folders, const tn_nvidia_wanted *wanted,
                                 void **handle, char path[TN_NVIDIA_PATH]);
/* The same, for a library that may be missing. false: `why` has the text. */
bool tn_nvidia_search_library(const char *folders, const tn_nvidia_wanted *wanted, void **handle,
                              char path[TN_NVIDIA_PATH], char why[TN_NVIDIA_WHY]);

/* backends/cuda/modules/image_cache.h: compiled code on disk. A file's name is a hash of the text, the
 * headers, the options and the version of the compiler; its head has a checksum. Files are replaced
 * atomically, by any process. */
#pragma once

#include <stdbool.h>

#include "backends/cuda/modules/compile.h"

enum { TN_CUDA_KEY = 33 };

/* The key of a text, in hexadecimal. */
void tn_cuda_image_key(const tn_cuda_compiler *compiler, const char *text, char key[TN_CUDA_KEY]);
/* The key of all files of device/ for an architecture (90 for sm_90), with the flags: images that nvcc made
 * of other files have another one. */
void tn_cuda_sources_key(int32_t arch, char key[TN_CUDA_KEY]);
/* Reads the image of a key. false: the folder has no file for it, or a damaged one, for which *corrupt is
 * true: its head or checksum is wrong. Any thread. */
bool tn_cuda_image_read(const char *folder, const char *key, tn_cuda_image *image, bool *corrupt);
/* Writes an image. false: `error` says why; the image can be used all the same. Any thread. */
bool tn_cuda_image_write(const char *folder, const char *key, const tn_cuda_image *image,
                         char error[TN_CUDA_ERROR_TEXT]);

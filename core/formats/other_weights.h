/* core/formats/other_weights.h: files of weights in formats that Tenon does not read. */
#pragma once

#include "core/base/env.h"

enum { TN_OTHER_WEIGHTS_BYTES = 64 }; /* as many first bytes of a file tell its format */

/* TN_EINVAL if the first bytes, of which there may be fewer, are those of PyTorch's, NumPy's, ONNX's or
 * HDF5's files; the message names the format and has a line of Python that writes safetensors. TN_OK: the
 * format is another one. */
tn_status tn_refuse_other_weights(const void *handle, const char *path, const unsigned char *bytes,
                                  size_t count);

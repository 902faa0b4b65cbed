/* core/formats/npy.h: NumPy's .npy files, one array each
 * (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). Versions 1, 2 and 3, in C
 * order and little-endian; types bool, u8, i8, i32, i64, f16, f32, f64. */
#pragma once

#include "core/base/env.h"

/* Reads a file. *data is row-major and belongs to the caller (tn_release). TN_EINVAL for a damaged file,
 * TN_EUNSUPPORTED with the remedy for a valid array of another type or order. */
tn_status tn_npy_read(const void *handle, const char *path, tn_type *type, void **data);

/* Writes version 1, atomically. TN_EUNSUPPORTED for bf16, which NumPy lacks. */
tn_status tn_npy_write(const void *handle, const char *path, const tn_type *type, const void *data);

/* NumPy's name of an element type, "float32"; NULL: NumPy lacks the type. */
const char *tn_npy_name(int32_t dtype);

/* core/formats/npy.h: NumPy's .npy files: one array each
 * (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). Versions 1, 2 and 3, in
 * C order and little-endian; types bool, u8, i32, i64, f16, f32, f64. */
#ifndef TN_CORE_FORMATS_NPY_H
#define TN_CORE_FORMATS_NPY_H

#include "core/base/env.h"

/* Reads a whole file; *data is row-major and the caller's (tn_release). TN_EINVAL with path and what
 * is wrong, TN_EUNSUPPORTED for arrays that are well-formed but not of the above, with the remedy. */
tn_status tn_npy_read(const void *handle, const char *path, tn_type *type, void **data);

/* Writes version 1; the file appears whole or not at all. bf16, which NumPy has not: TN_EUNSUPPORTED. */
tn_status tn_npy_write(const void *handle, const char *path, const tn_type *type, const void *data);

#endif

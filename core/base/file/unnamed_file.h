/* core/base/file/unnamed_file.h: memory that lies in a file without a name. */
#pragma once

#include "core/base/env.h"

/* Maps `bytes` zero bytes of a new file in a folder. The file never has a name that outlives the call, so it
 * ends with its memory, or with the process however that ends. All of its space is taken at once: a full disk
 * is an error here, and no signal later. TN_EIO with the folder, the bytes, the reason and the remedy. */
tn_status tn_unnamed_file_map(const void *handle, const char *folder, size_t bytes, void **address);
/* Accepts NULL. */
void tn_unnamed_file_unmap(void *address, size_t bytes);

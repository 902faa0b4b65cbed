/* core/base/file/trusted_file.h: whether other users can change the code in a file. */
#pragma once

#include "core/base/env.h"

/* Checks that other users cannot change the file at `path`: a regular file that is not world-writable, in a
 * folder that is not world-writable, below folders that are sticky if they are world-writable. For root, the
 * file and its folder belong to root. *real is its absolute path without links, which the caller releases
 * (tn_release). `what` is for messages: "plugin". TN_EUNAVAILABLE: there is no such file, or the check
 * failed.
 */
tn_status tn_trusted_file(const void *handle, const char *what, const char *path, char **real);
/* The same for a folder of such files. */
tn_status tn_trusted_folder(const void *handle, const char *what, const char *path, char **real);
/* The same for a folder that exists, and each file of code in it: shared objects, and images for devices. */
tn_status tn_trusted_libraries(const void *handle, const char *folder);

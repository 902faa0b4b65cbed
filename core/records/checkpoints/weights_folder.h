/* core/records/checkpoints/weights_folder.h: the file of weights that a folder stands for, and the next one
 * where it is not as it was written. */
#pragma once

#include "core/base/env.h"

/* Opens or loads the file. Of a checkpoint's file it fails where that is not as it was written. It may be
 * called again, with the same or with another path, after a failure. */
typedef tn_status (*tn_weights_use)(void *context, const char *path);

/* `use` of a file. A failure is that of the file's damage where the record beside it tells of one
 * (tn_checkpoint_file_check). */
tn_status tn_weights_use_file(const void *handle, const char *path, tn_weights_use use, void *context);

/* `use` of the weights of a run folder or of a checkpoint's folder: of the best checkpoint, or of the last
 * where there is no best, or where it is not as it was written (a warning says so). *path is the file, which
 * the caller releases (tn_release); NULL: the folder has no weights. */
tn_status tn_weights_use_folder(const void *handle, const char *folder, tn_weights_use use, void *context,
                                char **path);

/* plugins/observers/whole_file.h: files that are written at once, and the folders of media.
 *
 * The functions that return an int give 1, or 0 with the reason in errno. */
#pragma once

#include "tenon/plugin/observer.h"

enum { WHOLE_FILE_PATH = 4096 };

/* mkdir -p; after a failure `path` ends at the folder that could not be made. */
int whole_file_make_folder(char *path);
/* Under a temporary name first, so that readers see the old file or the new one. A link is replaced. */
int whole_file_write(const char *path, const void *bytes, size_t n);

/* The path of a medium below a folder: "samples/0" of step 100 is in samples/step-00000100/0.png. Characters
 * that a path may not have are '_'. */
void media_path(const tn_event *event, const tn_media *medium, char *path, size_t size);
/* Writes the media of an event below a folder. A file that cannot be written is told in the log. */
void media_write(tn_env *env, const char *folder, const tn_event *event);
/* Removes the samples of steps that a resumed run takes again. */
void media_cut(const char *folder, const tn_run_info *run);

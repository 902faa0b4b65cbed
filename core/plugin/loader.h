/* core/plugin/loader.h: from a path to the descriptor of a plugin. */
#ifndef TN_CORE_PLUGIN_LOADER_H
#define TN_CORE_PLUGIN_LOADER_H

#include "core/base/env.h"
#include "tenon/plugin/plugin.h"

/* The rules of trust: `path` must lead to a regular file that not everybody may write, in a folder
 * that not everybody may write. *real is its absolute path without links; the caller's (tn_release).
 * TN_EUNAVAILABLE when there is no such file, or when it is not to be trusted. */
tn_status tn_plugin_check_file(const void *handle, const char *path, char **real);
/* The same for a folder of plugins. */
tn_status tn_plugin_check_folder(const void *handle, const char *path, char **real);

/* elf.c: TN_EUNAVAILABLE for a shared object that is shorter than it says. */
tn_status tn_plugin_whole(const void *handle, const char *path);

/* Opens a file that has passed the check, for good: nothing is ever closed again. *plugin is the
 * plugin's own descriptor, not yet negotiated. TN_EUNAVAILABLE with the linker's reason, or TN_EABI
 * when it is no plugin for this host's interface. */
tn_status tn_plugin_open(const void *handle, const char *real, const tn_plugin **plugin);

#endif

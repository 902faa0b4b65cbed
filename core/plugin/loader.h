/* core/plugin/loader.h: from a path to the descriptor of a plugin. */
#pragma once

#include "core/base/env.h"
#include "tenon/plugin/plugin.h"

/* elf.c: checks a shared object without loading it. TN_EUNAVAILABLE: it is damaged, no shared object, or
 * built for another machine; TN_EABI: it is no plugin, or one of another interface. */
tn_status tn_plugin_check_elf(const void *handle, const char *path);

/* Loads a file that has passed tn_trusted_file; it is never unloaded. *plugin is the descriptor in the file,
 * before negotiation (negotiate.c). TN_EUNAVAILABLE: the linker's reason; TN_EABI: it is no plugin of this
 * interface. */
tn_status tn_plugin_open(const void *handle, const char *real, const tn_plugin **plugin);

/* core/run/settings/sweep.c: [sweep]. Its keys with a point name keys of other sections; core/sweep reads
 * them, and other commands leave them alone. */
#include <string.h>

#include "core/run/section_tables.h"

tn_status tn_settings_read_sweep(tn_env *env, tn_ini *ini, tn_settings *s) {
  tn_section *section = tn_ini_section(ini, "sweep");
  for (int32_t i = 0; section != NULL && i < section->n_keys; i++)
    if (strchr(section->keys[i].name, '.') != NULL) section->keys[i].used = section->keys[i].apart = true;
  return tn_settings_read_section(env, ini, &tn_table_sweep, &s->sweep);
}

/* core/model/modules.c: the layers and blocks that "@name" may refer to. */
#include "core/model/assemble.h"

tn_status tn_module_add(tn_assembly *a, const tn_module *module) {
  TN_TRY(tn_vec_reserve(a->env, &a->modules, a->modules.n + 1));
  TN_TRY(tn_name_index_add(&a->module_paths, module->path));
  a->modules.v[a->modules.n++] = *module;
  return TN_OK;
}

const tn_module *tn_module_find(const tn_assembly *a, const char *path) {
  int64_t i = tn_name_index_find(&a->module_paths, path);
  return i != TN_NAME_INDEX_NONE ? &a->modules.v[i] : NULL;
}

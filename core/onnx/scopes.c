/* core/onnx/scopes.c: the module that a node stands in, by the node's name, or by the exporter's notes. */
#include <string.h>

#include "core/onnx/import.h"

const char *onnx_scope(onnx_import *m, const tn_onnx_node *node) {
  const char *module = NULL, *operation = NULL, *last = strrchr(node->name, '/');
  if (onnx_read_modules(m, node, &module, &operation))
    return module == NULL || module[0] == '\0' ? module : onnx_tidy(m, module);
  if (last == NULL || strstr(node->name, "::") != NULL) return NULL;
  module = tn_arena_printf(&m->arena, "%.*s", (int)(last - node->name), node->name);
  return module == NULL || module[strspn(module, "/")] == '\0' ? "" : onnx_tidy(m, module);
}

/* "Bottleneck" of "torchvision.models.resnet.Bottleneck". */
static const char *scope_kind(onnx_import *m, const onnx_module *part) {
  size_t from = part->kind_length;
  while (from > 0 && part->kind[from - 1] != '.') from--;
  return tn_arena_printf(&m->arena, "%.*s", (int)(part->kind_length - from), part->kind + from);
}

static tn_status scope_note_part(onnx_import *m, const onnx_module *part) {
  const char *path = tn_arena_printf(&m->arena, "%.*s", (int)part->path_length, part->path);
  const char *tidy = path != NULL ? onnx_tidy(m, path) : NULL, *kind = scope_kind(m, part);
  if (tidy == NULL || kind == NULL) return TN_ENOMEM;
  if (tn_name_index_find(&m->modules, tidy) != TN_NAME_INDEX_NONE) return TN_OK;
  TN_TRY(tn_name_index_add(&m->modules, tidy));
  return tn_vec_push(m->env, &m->kinds, kind);
}

tn_status onnx_note_modules(onnx_import *m, const tn_onnx_node *node) {
  onnx_module part;
  for (const char *at = node->modules; at != NULL;) {
    at = onnx_module_read(at, &part);
    if (at != NULL && part.path_length > 0) TN_TRY(scope_note_part(m, &part));
  }
  return TN_OK;
}

const char *onnx_kind_of(const onnx_import *m, const char *scope) {
  int64_t i = tn_name_index_find(&m->modules, scope);
  return i != TN_NAME_INDEX_NONE ? m->kinds.v[i] : NULL;
}

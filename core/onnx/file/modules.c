/* core/onnx/file/modules.c: the modules around a node, as the exporter notes them:
 * "layer1: torch.nn.Sequential/layer1.0: models.Block/add_1: aten.add". */
#include <ctype.h>
#include <string.h>

#include "core/onnx/import.h"

const char *onnx_module_read(const char *at, onnx_module *part) {
  size_t n = strcspn(at, "/");
  const char *colon = memchr(at, ':', n);
  part->path = at;
  part->path_length = colon != NULL ? (size_t)(colon - at) : n;
  part->kind = colon != NULL ? colon + 1 + strspn(colon + 1, " ") : at + n;
  part->kind_length = (size_t)(at + n - part->kind);
  if (part->kind > at + n) part->kind_length = 0;
  return at[n] == '/' ? at + n + 1 : NULL;
}

/* The length of "linear" in "linear_4": the exporter counts the operations of the whole model, and the number
 * would tell two modules apart that are the same. */
static size_t module_stem(const char *operation, size_t length) {
  size_t n = length;
  while (n > 0 && isdigit((unsigned char)operation[n - 1])) n--;
  return n > 1 && n < length && operation[n - 1] == '_' ? n - 1 : length;
}

bool onnx_read_modules(onnx_import *m, const tn_onnx_node *node, const char **module,
                       const char **operation) {
  onnx_module part = {.path = "", .path_length = 0}, last;
  if (node->modules == NULL || strchr(node->modules, '/') == NULL) return false;
  const char *at = onnx_module_read(node->modules, &last);
  while (at != NULL) {
    part = last;
    at = onnx_module_read(at, &last);
  }
  *module = tn_arena_printf(&m->arena, "%.*s", (int)part.path_length, part.path);
  *operation = tn_arena_printf(&m->arena, "%.*s", (int)module_stem(last.path, last.path_length), last.path);
  return true;
}

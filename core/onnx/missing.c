/* core/onnx/missing.c: the operators that cannot be expressed, each with its reason and number. */
#include <string.h>

#include "core/onnx/import.h"

enum { MISSING_MOST_TOLD = 40 };

tn_status onnx_miss(onnx_import *m, const char *op, const char *reason) {
  for (size_t i = 0; i < m->missing.n; i++)
    if (strcmp(m->missing.v[i].op, op) == 0 && strcmp(m->missing.v[i].reason, reason) == 0) {
      m->missing.v[i].count++;
      return TN_OK;
    }
  const onnx_missing missing = {op, tn_arena_strdup(&m->arena, reason), 1};
  return missing.reason != NULL ? tn_vec_push(m->env, &m->missing, missing) : TN_ENOMEM;
}

tn_status onnx_tell_missing(onnx_import *m) {
  const char **lines = tn_arena_alloc(&m->arena, (m->missing.n + 1) * sizeof *lines);
  if (lines == NULL) return TN_ENOMEM;
  lines[0] = tn_arena_printf(&m->arena,
                             "%s: %zu operators cannot be expressed, and nothing is written:", m->file->path,
                             m->missing.n);
  for (size_t i = 0; i < m->missing.n; i++) {
    const onnx_missing *missing = &m->missing.v[i];
    lines[i + 1] = tn_arena_printf(&m->arena, "  %lld x %s: %s", (long long)missing->count, missing->op,
                                   missing->reason);
    if (lines[i + 1] == NULL) return TN_ENOMEM;
  }
  return lines[0] != NULL
             ? tn_fail_lines(m->env, TN_EUNSUPPORTED, lines, (int32_t)m->missing.n + 1, MISSING_MOST_TOLD)
             : TN_ENOMEM;
}

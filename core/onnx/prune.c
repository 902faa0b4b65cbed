/* core/onnx/prune.c: leaves out lines that no output depends on, such as arithmetic that another line made
 * needless, and their parameters. */
#include <ctype.h>
#include <string.h>

#include "core/onnx/import.h"

typedef struct prune {
  onnx_import *m;
  tn_name_index names;
  TN_VEC(int32_t) lines; /* by name: the line that has it */
  bool *kept;            /* by line */
} prune;

static void prune_keep(prune *p, const char *name, size_t length) {
  const char *word = tn_arena_printf(&p->m->arena, "%.*s", (int)length, name);
  int64_t i = word != NULL ? tn_name_index_find(&p->names, word) : TN_NAME_INDEX_NONE;
  if (i != TN_NAME_INDEX_NONE) p->kept[p->lines.v[i]] = true;
}

/* Keeps the lines that a text names. */
static void prune_scan(prune *p, const char *at) {
  while (*at != '\0') {
    size_t n = onnx_name_length(at);
    if (n > 0) prune_keep(p, at, n);
    at += n > 0 ? n : 1;
  }
}

/* Keeps the layers whose parameters a call shares: "@fc", "weight=@wte.weight". */
static void prune_ties(prune *p, const char *call) {
  for (const char *at = strchr(call, '@'); at != NULL; at = strchr(at + 1, '@')) {
    size_t n = onnx_name_length(at + 1);
    prune_keep(p, at + 1, n);
    while (n > 0 && at[n] != '.') n--;
    if (n > 0) prune_keep(p, at + 1, n - 1);
  }
}

static tn_status prune_name(prune *p, const char *names, int32_t line) {
  for (const char *at = names; *at != '\0';) {
    size_t n = strcspn(at, ", ");
    if (n > 0) {
      TN_TRY(tn_name_index_add(&p->names, tn_arena_printf(&p->m->arena, "%.*s", (int)n, at)));
      TN_TRY(tn_vec_push(p->m->env, &p->lines, line));
    }
    at += n;
    at += strspn(at, ", ");
  }
  return TN_OK;
}

static bool prune_owns(const onnx_line *line, const char *path) {
  size_t n = strcspn(line->names, ",");
  return strncmp(line->names, path, n) == 0 && (path[n] == '.' || path[n] == '\0');
}

static void prune_weights(onnx_import *m, const onnx_line *line) {
  size_t kept = 0;
  for (size_t i = 0; i < m->weights.n; i++)
    if (!prune_owns(line, m->weights.v[i].path)) m->weights.v[kept++] = m->weights.v[i];
  m->weights.n = kept;
}

static tn_status prune_run(prune *p) {
  onnx_import *m = p->m;
  size_t left = 0;
  p->kept = tn_arena_alloc(&m->arena, m->lines.n + 1);
  if (p->kept == NULL) return TN_ENOMEM;
  memset(p->kept, 0, m->lines.n + 1);
  for (size_t i = 0; i < m->lines.n; i++) TN_TRY(prune_name(p, m->lines.v[i].names, (int32_t)i));
  for (size_t i = 0; i < m->outputs.n; i++) prune_keep(p, m->outputs.v[i], strlen(m->outputs.v[i]));
  for (size_t i = m->lines.n; i-- > 0;) {
    const onnx_line *line = &m->lines.v[i];
    if (!p->kept[i]) continue;
    if (line->computes) prune_scan(p, line->call);
    if (line->has_weights) prune_ties(p, line->call);
    for (int32_t k = 0; k < line->n_operands; k++) prune_scan(p, line->operands[k]);
  }
  for (size_t i = 0; i < m->lines.n; i++) {
    if (!p->kept[i] && m->lines.v[i].has_weights) prune_weights(m, &m->lines.v[i]);
    if (p->kept[i]) m->lines.v[left++] = m->lines.v[i];
  }
  m->lines.n = left;
  return TN_OK;
}

tn_status onnx_prune(onnx_import *m) {
  prune p = {.m = m, .names = tn_name_index_new(m->env)};
  tn_status status = prune_run(&p);
  tn_name_index_free(&p.names);
  tn_vec_free(m->env, &p.lines);
  return status;
}

/* core/onnx/ties.c: parameters that the file has once and several layers have: the second layer shares that
 * of the first. */
#include <string.h>

#include "core/onnx/import.h"

/* How many parameters of one name are looked at, and how many contents are compared in all. */
enum { TIE_MOST_ALIKE = 8, TIE_MOST_COMPARED = 64 };

/* ---- equal contents ---- */

static float *tie_read(onnx_import *m, const tn_onnx_tensor *tensor) {
  const onnx_weight weight = {.tensor = tensor};
  float *v = tn_alloc(m->env, (size_t)tn_type_count(&tensor->type) * sizeof *v + 1);
  if (v != NULL && onnx_read_weight(m, &weight, v) == TN_OK) return v;
  tn_release(m->env, v);
  return NULL;
}

/* Exporters write equal tensors once, such as the scales of all norms before training. One number throughout
 * is no tie. */
static tn_status tie_find_even(onnx_import *m, onnx_weight *weight) {
  if (weight->evenness != ONNX_EVENNESS_UNKNOWN) return TN_OK;
  float *v = tie_read(m, weight->tensor);
  if (v == NULL) return m->env->record->code;
  int64_t count = tn_type_count(&weight->tensor->type), same = 1;
  while (same < count && v[same] == v[0]) same++;
  weight->evenness = same < count ? ONNX_UNEVEN : ONNX_EVEN;
  tn_release(m->env, v);
  return TN_OK;
}

static bool tie_same_dims(const tn_type *x, const tn_type *y) {
  return x->rank == y->rank && memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

/* A digest of the numbers, so that one tensor at a time is in memory. */
static tn_status tie_digest(onnx_import *m, const tn_onnx_tensor *tensor, uint64_t digest[2]) {
  float *v = tie_read(m, tensor);
  if (v == NULL) return m->env->record->code;
  size_t bytes = (size_t)tn_type_count(&tensor->type) * sizeof *v;
  digest[0] = tn_hash_bytes(1, v, bytes);
  digest[1] = tn_hash_bytes(2, v, bytes);
  tn_release(m->env, v);
  return TN_OK;
}

/* Whether a table of an embedding has the numbers of the tensor: the exporter may have transposed a copy. */
static tn_status tie_compare(onnx_import *m, const onnx_weight *table, const tn_onnx_tensor *tensor,
                             bool *same) {
  uint64_t x[2], y[2];
  *same = false;
  if (!tie_same_dims(&table->tensor->type, &tensor->type) || m->n_compared == TIE_MOST_COMPARED) return TN_OK;
  m->n_compared++;
  TN_TRY(tie_digest(m, table->tensor, x));
  TN_TRY(tie_digest(m, tensor, y));
  *same = x[0] == y[0] && x[1] == y[1];
  return TN_OK;
}

/* ---- parameters ---- */

/* *number: the earlier parameter that starts from the same tensor; -1: none. */
static tn_status tie_find(onnx_import *m, const tn_onnx_tensor *tensor, int64_t *number) {
  int64_t i = tn_name_index_find(&m->tied, tensor->name),
          k = i != TN_NAME_INDEX_NONE ? m->first_tied.v[i] : -1;
  *number = -1;
  for (int32_t n = 0; k >= 0 && n < TIE_MOST_ALIKE; n++, k = m->weights.v[k].next) {
    if (!onnx_same_tensor(m->weights.v[k].tensor, tensor)) continue;
    TN_TRY(tie_find_even(m, &m->weights.v[k]));
    if (m->weights.v[k].evenness == ONNX_UNEVEN) *number = k;
    return TN_OK;
  }
  return TN_OK;
}

static tn_status tie_find_table(onnx_import *m, const tn_onnx_tensor *tensor, int64_t *number) {
  bool same = false;
  for (int32_t i = 0; i < m->n_tables && tensor->type.rank == 2; i++) {
    TN_TRY(tie_compare(m, &m->weights.v[m->tables[i]], tensor, &same));
    if (!same) continue;
    TN_TRY(tie_find_even(m, &m->weights.v[m->tables[i]]));
    if (m->weights.v[m->tables[i]].evenness == ONNX_UNEVEN) *number = m->tables[i];
    return TN_OK;
  }
  return TN_OK;
}

tn_status onnx_find_tie(onnx_import *m, const char *call, const tn_onnx_tensor *tensor, onnx_tie *tie) {
  int64_t number;
  tie->weight = NULL;
  if (tensor == NULL) return TN_ENOMEM;
  TN_TRY(tie_find(m, tensor, &number));
  if (number < 0 && tn_text_starts(call, "linear(")) TN_TRY(tie_find_table(m, tensor, &number));
  if (number < 0) return TN_OK;
  tie->weight = tn_arena_copy(&m->arena, &m->weights.v[number], sizeof *tie->weight);
  return tie->weight != NULL ? TN_OK : TN_ENOMEM;
}

/* Whether the index has the parameter's tensor already. */
static bool tie_is_noted(const onnx_import *m, int64_t first, const tn_onnx_tensor *tensor) {
  int64_t k = first;
  for (int32_t n = 0; k >= 0 && n < TIE_MOST_ALIKE; n++, k = m->weights.v[k].next)
    if (onnx_same_tensor(m->weights.v[k].tensor, tensor)) return true;
  return false;
}

tn_status onnx_note_weight(onnx_import *m, const char *call) {
  int64_t number = (int64_t)m->weights.n - 1;
  onnx_weight *weight = &m->weights.v[number];
  int64_t i = tn_name_index_find(&m->tied, weight->tensor->name);
  int64_t first = i != TN_NAME_INDEX_NONE ? m->first_tied.v[i] : -1;
  if (tie_is_noted(m, first, weight->tensor)) return TN_OK;
  weight->next = first;
  weight->call = call;
  if (tn_text_starts(call, "embedding(") && m->n_tables < ONNX_MOST_TABLES) m->tables[m->n_tables++] = number;
  if (first >= 0) {
    m->first_tied.v[i] = number;
    return TN_OK;
  }
  TN_TRY(tn_name_index_add(&m->tied, weight->tensor->name));
  return tn_vec_push(m->env, &m->first_tied, number);
}

/* ---- calls ---- */

/* Whether an earlier layer has the same call and all of the parameters; its path is `module`. */
static bool tie_is_whole(const onnx_tie *ties, int32_t n, const char *call, const char **module,
                         onnx_import *m) {
  const char *first = ties[0].weight != NULL ? ties[0].weight->path : "";
  size_t length = strlen(first), own = strlen(ties[0].name);
  if (length <= own + 1) return false;
  *module = tn_arena_printf(&m->arena, "%.*s", (int)(length - own - 1), first);
  for (int32_t i = 0; i < n; i++) {
    const onnx_weight *w = ties[i].weight;
    const char *path = tn_arena_printf(&m->arena, "%s.%s", *module != NULL ? *module : "", ties[i].name);
    if (w == NULL || path == NULL || strcmp(w->path, path) != 0 || strcmp(w->call, call) != 0) return false;
  }
  return *module != NULL;
}

const char *onnx_tied_call(onnx_import *m, const char *call, const onnx_tie *ties, int32_t n) {
  const char *module = NULL;
  if (n > 0 && tie_is_whole(ties, n, call, &module, m)) return tn_arena_printf(&m->arena, "@%s", module);
  for (int32_t i = 0; i < n && call != NULL; i++) {
    size_t length = strlen(call);
    bool has = length > 0 && call[length - 1] == ')';
    if (ties[i].weight == NULL) continue;
    call = tn_arena_printf(&m->arena, "%.*s%s%s=@%s)", (int)(has ? length - 1 : length), call,
                           has ? ", " : "(", ties[i].name, ties[i].weight->path);
  }
  return call;
}

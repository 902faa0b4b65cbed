#include "core/records/checkpoints/adapter_merge.h"

#include <string.h>

#include "core/base/element.h"

/* ---- the adapters of a file ---- */

static tn_status stored_adapter_find_up(tn_arena *arena, const tn_weights_names *names, const char *path,
                                        tn_stored_adapter *a) {
  const char *part = a->embedding ? TN_ADAPTER_EMBEDDING_UP : TN_ADAPTER_UP;
  const char *up = tn_arena_printf(arena, "%s.%s", a->layer, part);
  if (up == NULL) return TN_ENOMEM;
  a->up = tn_weights_names_find(names, up);
  if (a->up != NULL) return TN_OK;
  return tn_failf(arena->handle, TN_EINVAL, "%s: has '%s', but no '%s': an adapter has both", path,
                  a->down->name, up);
}

tn_status tn_stored_adapters_list(tn_arena *arena, const tn_weights_names *names, const char *path,
                                  const tn_adapter_note *note, const tn_adapters *adapters,
                                  tn_stored_adapters *list) {
  *list = (tn_stored_adapters){tn_arena_alloc(arena, tn_size_mul((size_t)names->n + 1, sizeof *list->v)), 0};
  if (list->v == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < names->n; i++) {
    size_t n = tn_adapter_layer(names->v[i].name);
    if (n == 0) continue;
    tn_stored_adapter a = {.layer = tn_arena_printf(arena, "%.*s", (int)n, names->v[i].name),
                           .down = names->v[i].tensor,
                           .embedding = tn_text_ends(names->v[i].name, TN_ADAPTER_EMBEDDING_DOWN)};
    if (a.layer == NULL) return TN_ENOMEM;
    TN_TRY(stored_adapter_find_up(arena, names, path, &a));
    const char *magnitude = tn_arena_printf(arena, "%s." TN_ADAPTER_MAGNITUDE, a.layer);
    if (magnitude == NULL) return TN_ENOMEM;
    a.magnitude = tn_weights_names_find(names, magnitude);
    if (!tn_adapter_note_scale(note, adapters, a.layer, &a.scale))
      return tn_failf(
          arena->handle, TN_EINVAL,
          "%s: has an adapter of '%s', and no [adapt] match names that layer, so that its scale is "
          "unknown",
          path, a.layer);
    list->v[list->n++] = a;
  }
  return TN_OK;
}

const tn_stored_adapter *tn_stored_adapters_find(const tn_stored_adapters *list, const char *weight) {
  for (int32_t i = 0; i < list->n; i++) {
    size_t n = strlen(list->v[i].layer);
    if (strncmp(weight, list->v[i].layer, n) == 0 && strcmp(weight + n, ".weight") == 0) return &list->v[i];
  }
  return NULL;
}

/* ---- W + s B A ---- */

tn_status tn_stored_floats_read(const void *handle, const tn_safetensors *file, const tn_safetensor *tensor,
                                float **data) {
  int64_t n = tn_type_count(&tensor->type);
  void *stored = tn_alloc(handle, (size_t)tensor->bytes + 1);
  *data = tn_alloc(handle, tn_size_mul((size_t)n + 1, sizeof **data));
  tn_status status = stored != NULL && *data != NULL
                         ? tn_safetensors_read(file, handle, tensor, stored, (size_t)tensor->bytes)
                         : TN_ENOMEM;
  for (int64_t i = 0; status == TN_OK && i < n; i++)
    (*data)[i] = (float)tn_element_load(tensor->type.dtype, stored, i);
  tn_release(handle, stored);
  if (status == TN_OK) return TN_OK;
  tn_release(handle, *data);
  *data = NULL;
  return status;
}

/* weight[r, c] += scale * sum over k of up[r, k] down[k, c]; for an embedding rows and columns change places.
 */
static void stored_adapter_add(const tn_stored_adapter *a, int64_t rows, int64_t columns, const float *down,
                               const float *up, float *weight) {
  const int64_t rank = a->down->type.dims[0];
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) {
      double sum = 0;
      for (int64_t k = 0; k < rank; k++)
        sum += a->embedding ? (double)down[k * rows + r] * up[c * rank + k]
                            : (double)up[r * rank + k] * down[k * columns + c];
      weight[r * columns + c] = (float)(weight[r * columns + c] + a->scale * sum);
    }
}

/* A unit of zeros remains so. */
static void stored_adapter_set_norms(const tn_stored_adapter *a, int64_t rows, int64_t columns,
                                     const float *norms, const float *wanted, float *weight) {
  for (int64_t i = 0; i < rows * columns; i++) {
    int64_t unit = a->embedding ? i % columns : i / columns;
    if (norms[unit] > 0) weight[i] = (float)((double)weight[i] * wanted[unit] / norms[unit]);
  }
}

/* Gives each unit the norm that the file has for it. */
static tn_status stored_adapter_scale(const void *handle, const tn_safetensors *file,
                                      const tn_stored_adapter *a, int64_t rows, int64_t columns,
                                      float *weight) {
  float *wanted = NULL;
  if (a->magnitude == NULL) return TN_OK;
  TN_TRY(tn_stored_floats_read(handle, file, a->magnitude, &wanted));
  size_t units = (size_t)(a->embedding ? columns : rows);
  float *norms = tn_alloc(handle, tn_size_mul(units + 1, sizeof *norms));
  if (norms != NULL) {
    tn_adapter_norms(weight, rows, columns, a->embedding, norms);
    stored_adapter_set_norms(a, rows, columns, norms, wanted, weight);
  }
  tn_release(handle, wanted);
  tn_release(handle, norms);
  return norms != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status stored_adapter_check(const void *handle, const char *path, const tn_stored_adapter *a,
                                      int64_t rows, int64_t columns) {
  int64_t rank = a->down->type.rank > 0 ? a->down->type.dims[0] : 0;
  int64_t inputs = a->embedding ? rows : columns, units = a->embedding ? columns : rows;
  bool floats = tn_dtype_is_float(a->down->type.dtype) && tn_dtype_is_float(a->up->type.dtype);
  if (a->magnitude != NULL &&
      (!tn_dtype_is_float(a->magnitude->type.dtype) || tn_type_count(&a->magnitude->type) != units))
    return tn_failf(handle, TN_EINVAL,
                    "%s: '%s' has %lld elements of %s, expected one for each of %lld units", path,
                    a->magnitude->name, (long long)tn_type_count(&a->magnitude->type), a->magnitude->stored,
                    (long long)units);
  if (floats && rank > 0 && tn_type_count(&a->down->type) == rank * inputs &&
      tn_type_count(&a->up->type) == rank * units)
    return TN_OK;
  return tn_failf(
      handle, TN_EINVAL,
      "%s: the adapter of '%s' has %lld and %lld elements of %s, which do not fit the %lld x %lld "
      "elements of its weight",
      path, a->layer, (long long)tn_type_count(&a->down->type), (long long)tn_type_count(&a->up->type),
      a->down->stored, (long long)rows, (long long)columns);
}

tn_status tn_stored_adapter_merge(const void *handle, const tn_safetensors *file, const char *path,
                                  const tn_stored_adapter *a, const tn_type *type, float *weight) {
  int64_t rows = type->rank > 0 ? type->dims[0] : 0;
  int64_t columns = rows > 0 ? tn_type_count(type) / rows : 0;
  float *down = NULL, *up = NULL;
  TN_TRY(stored_adapter_check(handle, path, a, rows, columns));
  tn_status status = tn_stored_floats_read(handle, file, a->down, &down);
  if (status == TN_OK) status = tn_stored_floats_read(handle, file, a->up, &up);
  if (status == TN_OK) stored_adapter_add(a, rows, columns, down, up, weight);
  if (status == TN_OK) status = stored_adapter_scale(handle, file, a, rows, columns, weight);
  tn_release(handle, down);
  tn_release(handle, up);
  return status;
}

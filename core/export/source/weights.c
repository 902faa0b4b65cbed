/* core/export/source/weights.c: the contents of NAME.weights. */
#include <string.h>

#include "core/export/source/source.h"

static bool weight_is_panels(const source_weight *w) { return w->panels.inner > 0; }

int64_t source_weight_bytes(const source_weight *w) {
  return weight_is_panels(w) ? source_panel_elements(&w->panels) * (int64_t)sizeof(float)
                             : (int64_t)tn_type_bytes(&w->type);
}

static bool weight_is_same(const source_weight *a, const source_weight *b) {
  bool path = a->path == NULL || b->path == NULL ? a->path == b->path : strcmp(a->path, b->path) == 0;
  return path && a->norm == b->norm && weight_is_panels(a) == weight_is_panels(b) &&
         a->panels.turned == b->panels.turned && a->panels.groups == b->panels.groups;
}

static int64_t weight_find(const source_program *p, const source_weight *weight) {
  for (size_t i = 0; i < p->weights.n; i++)
    if (weight_is_same(&p->weights.v[i], weight)) return p->weights.v[i].offset;
  return -1;
}

const char *source_weight_pointer(source_program *p, const source_weight *weight) {
  int64_t offset = weight_find(p, weight), bytes = source_weight_bytes(weight);
  if (offset < 0) {
    source_weight w = *weight;
    w.offset = offset = p->weight_bytes;
    if (tn_vec_push(p->env, &p->weights, w) != TN_OK) return NULL;
    p->weight_bytes += source_room(bytes);
  }
  return tn_arena_printf(&p->arena, "(const %s *)(const void *)(weights + %lld)",
                         source_type(weight->type.dtype), (long long)offset);
}

/* ---- contents ---- */

static void weight_pack_group(const source_panels *s, const float *from, float *to) {
  for (int64_t j = 0; j < s->columns; j++)
    for (int64_t k = 0; k < s->inner; k++)
      to[j / SOURCE_PANEL * SOURCE_PANEL * s->inner + k * SOURCE_PANEL + j % SOURCE_PANEL] =
          s->turned ? from[k * s->columns + j] : from[j * s->inner + k];
}

static void weight_pack(const source_panels *s, const float *from, float *to) {
  int64_t elements = source_panel_elements(s) / s->groups;
  memset(to, 0, (size_t)(elements * s->groups) * sizeof *to);
  for (int64_t g = 0; g < s->groups; g++)
    weight_pack_group(s, from + g * s->columns * s->inner, to + g * elements);
}

static tn_status weight_load(source_program *p, const source_weight *w, tn_export_read *read, void *context,
                             void *to) {
  return w->norm != NULL
             ? tn_export_fold_read(p->env, read, context, w->norm, w->path, tn_type_count(&w->type), to)
             : read(context, w->path, to, tn_type_bytes(&w->type));
}

tn_status source_weight_read(source_program *p, const source_weight *w, tn_export_read *read, void *context,
                             void *to) {
  if (!weight_is_panels(w)) return weight_load(p, w, read, context, to);
  float *state = tn_alloc(p->env, tn_type_bytes(&w->type) + 1);
  if (state == NULL) return TN_ENOMEM;
  tn_status status = weight_load(p, w, read, context, state);
  if (status == TN_OK) weight_pack(&w->panels, state, to);
  tn_release(p->env, state);
  return status;
}

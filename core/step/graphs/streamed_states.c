/* core/step/graphs/streamed_states.c: see streamed_states.h. */
#include "core/step/graphs/streamed_states.h"

#include <stdlib.h>
#include <string.h>

#include "core/graph/uses.h"

/* A parameter so many times smaller than all of them is not streamed. */
enum { STREAMED_RATIO = 1024 };

typedef struct streamed_weight {
  const tn_gstate *state;
  int32_t order; /* in the graph */
  int64_t bytes; /* that programs read: its own, or those of its low-precision copies */
  bool copied;   /* it has such copies */
  bool mixed;    /* with copied: it is also read as it is */
} streamed_weight;

typedef struct streamed_list {
  streamed_weight *v;
  int32_t n;
  tn_uses uses;
} streamed_list;

/* ---- the weights ---- */

/* "PATH:bf16" is a copy of PATH. */
static bool streamed_is_copy_of(const tn_gstate *copy, const char *path) {
  size_t n = strlen(path);
  return copy->what == TN_STATE_DERIVED && strncmp(copy->path, path, n) == 0 && copy->path[n] == ':';
}

static streamed_weight streamed_describe(const tn_graph *graph, const tn_uses *uses, const tn_gstate *state,
                                         int32_t order) {
  bool read = state->value != 0 && uses->start[state->value + 1] > uses->start[state->value];
  streamed_weight w = {.state = state, .order = order};
  for (size_t i = 0; i < graph->states.n; i++) {
    if (!streamed_is_copy_of(&graph->states.v[i], state->path)) continue;
    w.copied = true;
    w.bytes += (int64_t)tn_type_bytes(&graph->states.v[i].type);
  }
  w.mixed = w.copied && read;
  if (!w.copied || w.mixed) w.bytes += (int64_t)tn_type_bytes(&state->type);
  return w;
}

/* Not a region, and without a location. */
static bool streamed_is_open(const tn_state_map *map, const tn_gstate *state, const tn_freeze *frozen) {
  if (state->what != TN_STATE_PARAM || state->path[0] == '@') return false;
  if (frozen != NULL && tn_frozen_until(frozen, state->path) != TN_FROZEN_FOREVER) return false;
  return tn_state_map_find(map, state->path) == NULL;
}

static void streamed_find(const tn_state_map *map, const tn_graph *graph, const tn_freeze *frozen,
                          streamed_list *list) {
  int64_t all = 0;
  int32_t n = 0;
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    if (!streamed_is_open(map, state, frozen)) continue;
    list->v[n] = streamed_describe(graph, &list->uses, state, (int32_t)i);
    all += list->v[n++].bytes;
  }
  for (int32_t i = 0; i < n; i++)
    if (list->v[i].bytes > all / STREAMED_RATIO) list->v[list->n++] = list->v[i];
}

/* ---- those that stay ---- */

static int streamed_compare(const void *a, const void *b) {
  const streamed_weight *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return (x->order > y->order) - (x->order < y->order);
}

/* "streamed.f32", or of sources "kept.source.f32" and "streamed.source.f32". A region of copies has room for
 * those of a whole region of sources, so sources with copies in two dtypes have regions of their own. */
static tn_status streamed_place_one(tn_state_map *map, const streamed_weight *w, bool kept) {
  int32_t region, dtype = w->state->type.dtype;
  if (kept && !w->copied) return TN_OK;
  const char *name =
      tn_arena_printf(&map->arena, "%s.%s%s%s", kept ? "kept" : "streamed", w->copied ? "source." : "",
                      w->mixed ? "mixed." : "", tn_dtype_name(dtype));
  if (name == NULL) return TN_ENOMEM;
  TN_TRY(tn_state_map_region(map, name, dtype, &region));
  tn_region *r = &map->regions.v[region];
  r->streamed = !w->copied;
  r->host = r->source = w->copied;
  r->copies_streamed = w->copied && !kept;
  return tn_state_map_add(map, w->state, region, -1);
}

/* Of n weights of equal size `kept` stay: i * kept / n changes with each of them. */
static tn_status streamed_place_equal(tn_state_map *map, const streamed_weight *v, int32_t n, int64_t kept) {
  for (int32_t i = 0; i < n; i++) TN_TRY(streamed_place_one(map, &v[i], (i + 1) * kept / n > i * kept / n));
  return TN_OK;
}

static tn_status streamed_place_all(tn_state_map *map, const streamed_list *list, int64_t kept_bytes) {
  for (int32_t i = 0, n; i < list->n; i += n) {
    int64_t bytes = list->v[i].bytes, kept = kept_bytes / bytes;
    for (n = 1; i + n < list->n && list->v[i + n].bytes == bytes; n++) continue;
    if (kept > n) kept = n;
    kept_bytes -= kept * bytes;
    TN_TRY(streamed_place_equal(map, &list->v[i], n, kept));
  }
  return TN_OK;
}

tn_status tn_streamed_states_place(tn_state_map *map, const tn_graph *graph, int64_t kept_bytes,
                                   const tn_freeze *frozen) {
  tn_arena arena = tn_arena_new(map->env);
  streamed_list list = {.v = tn_arena_alloc(&arena, (graph->states.n + 1) * sizeof *list.v)};
  tn_status status = list.v != NULL ? tn_uses_create(&arena, graph, &list.uses) : TN_ENOMEM;
  if (status != TN_OK) return tn_arena_free(&arena), status;
  streamed_find(map, graph, frozen, &list);
  qsort(list.v, (size_t)list.n, sizeof *list.v, streamed_compare);
  /* an earlier graph has used the bytes */
  int64_t kept = tn_state_map_streamed_bytes(map) > 0 ? 0 : kept_bytes;
  status = streamed_place_all(map, &list, kept);
  tn_arena_free(&arena);
  return status;
}

/* core/step/update/layer_depths.c: the layers of parameters, for [optimizer] layer_decay.
 *
 * The layer of a parameter is its name up to the first part that is a number or ends in one behind '_':
 * "blocks.3" of blocks.3.mlp.weight, "encoder.layers.encoder_layer_0". If no layer has a number, it is the
 * first part of the name, and the layers have the order of the model. Else the numbered layers have, those
 * before them are layer 0 (the embeddings), and the model's last one is the last (the head). Others belong to
 * the layer before them (the norm before the head). So the depths of the usual networks are timm's. */
#include <ctype.h>
#include <string.h>

#include "core/step/update/update_stages.h"

typedef struct layer_depth {
  const char *path; /* of its first parameter */
  size_t length;    /* of the layer's name in it */
  bool numbered;
  int64_t depth;
} layer_depth;

typedef struct layer_depths {
  layer_depth *v;
  int32_t n;
} layer_depths;

/* "3", "encoder_layer_3" */
static bool layer_depth_is_number(const char *part, size_t n) {
  size_t digits = 0;
  while (digits < n && isdigit((unsigned char)part[n - 1 - digits])) digits++;
  return digits > 0 && (digits == n || part[n - 1 - digits] == '_');
}

static layer_depth layer_depth_of(const char *path) {
  size_t first = strcspn(path, ".");
  for (size_t at = 0; path[at] != '\0';) {
    size_t n = strcspn(path + at, ".");
    if (path[at + n] == '\0') break; /* the parameter's own name */
    if (layer_depth_is_number(path + at, n)) return (layer_depth){path, at + n, true, 0};
    at += n + 1;
  }
  return (layer_depth){path, first, false, 0};
}

static layer_depth *layer_depths_find(const layer_depths *layers, const layer_depth *wanted) {
  for (int32_t i = 0; i < layers->n; i++) {
    layer_depth *one = &layers->v[i];
    if (one->length == wanted->length && memcmp(one->path, wanted->path, one->length) == 0) return one;
  }
  return NULL;
}

/* The layers in the order of the model's parameters. */
static tn_status layer_depths_collect(const tn_updater *u, layer_depths *layers) {
  layers->v = tn_arena_alloc(u->arena, tn_size_mul(u->graph->states.n + 1, sizeof *layers->v));
  if (layers->v == NULL) return TN_ENOMEM;
  for (size_t i = 0; i < u->graph->states.n; i++) {
    const tn_gstate *state = &u->graph->states.v[i];
    if (state->what != TN_STATE_PARAM || state->path[0] == '@') continue;
    layer_depth one = layer_depth_of(state->path);
    if (layer_depths_find(layers, &one) == NULL) layers->v[layers->n++] = one;
  }
  return TN_OK;
}

/* Returns the greatest depth. */
static int64_t layer_depths_count(layer_depths *layers) {
  bool numbered = false;
  int64_t depth = -1;
  for (int32_t i = 0; i < layers->n; i++) numbered = numbered || layers->v[i].numbered;
  for (int32_t i = 0; i < layers->n; i++)
    layers->v[i].depth = depth += !numbered || layers->v[i].numbered || i == 0 || i == layers->n - 1;
  return depth;
}

tn_status tn_updater_find_depths(tn_updater *u, int64_t **depths, int64_t *last) {
  layer_depths layers = {0};
  TN_TRY(layer_depths_collect(u, &layers));
  *last = layer_depths_count(&layers);
  *depths = tn_arena_alloc(u->arena, tn_size_mul((size_t)u->n_params + 1, sizeof **depths));
  if (*depths == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < u->n_params; i++) {
    layer_depth one = layer_depth_of(u->params[i].state->path);
    const layer_depth *found = layer_depths_find(&layers, &one);
    (*depths)[i] = found != NULL ? found->depth : *last;
  }
  return TN_OK;
}

/* core/data/device_stages.c: decides which of the last transforms the device applies. A suffix of the list
 * can move there if each of its transforms has build and sizes that do not vary. The batch then ends in front
 * of it; random choices of its transforms are further fields of the batch, drawn by the host. */
#include <string.h>

#include "core/data/transform_chain.h"

/* Why a stage cannot be on the device; NULL: it can. */
static const char *device_stages_obstacle(const tn_transform_chain *chain, const tn_stage *stage) {
  if (stage->transform->build == NULL) return "has no form for the device (build)";
  if (!tn_transform_chain_is_fixed(stage->before, chain->n_fields)) return "takes samples whose size varies";
  for (int32_t k = 0; k < stage->n; k++)
    if (stage->in[k].rank >= TN_MAX_RANK) return "takes a field that has no room for the batch";
  return NULL;
}

/* The first stage of the longest suffix that can be on the device; the obstacle in front of it, or NULL. */
static int32_t device_stages_longest(const tn_transform_chain *chain, const char **obstacle) {
  int32_t first = chain->n_stages;
  *obstacle = NULL;
  while (first > 0) {
    *obstacle = device_stages_obstacle(chain, &chain->stages[first - 1]);
    if (*obstacle != NULL) break;
    first--;
  }
  return first;
}

/* Bytes of a sample in a batch that ends in front of stage `first`, without draws. */
static size_t device_stages_bytes(const tn_transform_chain *chain, int32_t first) {
  size_t bytes = 0;
  for (int32_t i = 0; i < chain->n_fields; i++) {
    const tn_type *type = first < chain->n_stages ? &chain->stages[first].before[i] : &chain->fields[i].type;
    bytes = tn_size_add(bytes, tn_transform_chain_bytes(type));
  }
  return bytes;
}

/* The suffix with the smallest batch; among equals the longest. */
static int32_t device_stages_smallest(const tn_transform_chain *chain, const char **obstacle) {
  int32_t longest = device_stages_longest(chain, obstacle), best = chain->n_stages;
  for (int32_t first = chain->n_stages; first >= longest; first--)
    if (device_stages_bytes(chain, first) <= device_stages_bytes(chain, best)) best = first;
  if (best > longest) *obstacle = "would make the batch larger on the device";
  return best;
}

/* The stages that come from the last `wanted` transforms of the list. */
static tn_status device_stages_last(tn_env *env, const tn_transform_chain *chain, int32_t n_transforms,
                                    int32_t wanted, int32_t *first) {
  const char *obstacle;
  int32_t longest = device_stages_longest(chain, &obstacle);
  *first = chain->n_stages;
  while (*first > 0 && chain->stages[*first - 1].position >= n_transforms - wanted) --*first;
  if (*first >= longest) return TN_OK;
  const tn_stage *stage = &chain->stages[longest - 1];
  return tn_failf(
      env, TN_EINVAL,
      "%s%stransform '%s' %s, so it runs on the host, with all before it; device_transforms = %d, "
      "expected at most %d",
      stage->where, stage->where[0] != '\0' ? ": " : "", stage->transform->item.name, obstacle, (int)wanted,
      (int)(n_transforms - stage->position - 1));
}

/* Adds the field of a stage's random choices. */
static tn_status device_stages_add_draws(tn_transform_chain *chain, tn_stage *stage) {
  int32_t n = stage->transform->draws;
  if (n == 0) return TN_OK;
  const char *name = tn_arena_printf(&chain->arena, "draws.%d", (int)stage->position);
  if (name == NULL) return TN_ENOMEM;
  stage->draws = chain->n_outputs++;
  chain->fields[stage->draws] = (tn_field){
      .struct_size = sizeof(tn_field), .name = name, .type = {TN_I32, 1, {n}}, .role = TN_FIELD_INPUT};
  chain->sampled[stage->draws] = chain->fields[stage->draws].type;
  return TN_OK;
}

/* Room for a field of draws behind the source's fields, for each stage on the device. */
static tn_status device_stages_make_room(tn_transform_chain *chain) {
  size_t n = (size_t)chain->n_fields, room = n + (size_t)chain->n_device_stages;
  tn_field *fields = tn_arena_alloc(&chain->arena, tn_size_mul(room, sizeof *fields));
  tn_type *sampled = tn_arena_alloc(&chain->arena, tn_size_mul(room, sizeof *sampled));
  if (fields == NULL || sampled == NULL) return TN_ENOMEM;
  memcpy(fields, chain->fields, n * sizeof *fields);
  memcpy(sampled, chain->sampled, n * sizeof *sampled);
  chain->fields = fields;
  chain->sampled = sampled;
  return TN_OK;
}

/* Splits the stages in front of stage `first`. The types of the batch are those in front of it. */
static tn_status device_stages_split(tn_transform_chain *chain, int32_t first) {
  chain->n_device_stages = chain->n_stages - first;
  if (chain->n_device_stages == 0) return TN_OK;
  const tn_type *types = chain->stages[first].before;
  TN_TRY(device_stages_make_room(chain));
  for (int32_t i = 0; i < chain->n_fields; i++) {
    chain->fields[i].type = types[i];
    if (first < chain->n_sample_stages) chain->sampled[i] = types[i];
  }
  chain->n_stages = first;
  if (first < chain->n_sample_stages) chain->n_sample_stages = first;
  for (int32_t s = 0; s < chain->n_device_stages; s++)
    if (device_stages_add_draws(chain, &chain->stages[first + s]) != TN_OK) return TN_ENOMEM;
  return TN_OK;
}

tn_status tn_transform_chain_place(tn_env *env, const tn_loader_options *options, tn_transform_chain *chain) {
  int32_t wanted = options->device_transforms, first = chain->n_stages;
  const char *obstacle = NULL;
  chain->not_on_device = "";
  if (wanted == 0) return TN_OK;
  if (wanted == TN_DEVICE_TRANSFORMS_AUTO) {
    first = device_stages_smallest(chain, &obstacle);
    if (first > 0 && obstacle != NULL) chain->not_on_device = obstacle;
  } else {
    TN_TRY(device_stages_last(env, chain, options->n_transforms, wanted, &first));
  }
  return device_stages_split(chain, first);
}

bool tn_transform_chain_on_device(const tn_transform_chain *chain, int32_t position) {
  for (int32_t s = 0; s < chain->n_device_stages; s++)
    if (tn_transform_chain_device_stages(chain)[s].position == position) return true;
  return false;
}

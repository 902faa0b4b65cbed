/* core/tensor/call_cache.c: compiled calls, found by signature. */
#include "core/tensor/call_cache.h"

#include <stdlib.h>
#include <string.h>

#include "core/compile/pipeline.h"
#include "core/exec/declines.h"
#include "core/graph/op/attributes.h"
#include "core/tensor/tensor.h"

enum { RUNS_AHEAD = 4 }; /* runs of one call under way; the next one waits for the first */

/* ---- signatures ---- */

static uint64_t call_hash(const tn_call_key *key) {
  uint64_t hash = tn_hash_text(TN_HASH_START, key->def->op->item.name);
  hash = tn_hash_bytes(hash, key->ports, (size_t)key->n_ports * sizeof *key->ports);
  hash = tn_hash_bytes(hash, &key->gradient, sizeof key->gradient);
  return tn_attributes_hash(hash, &key->def->op->item, key->attributes);
}

static bool call_key_equal(const tn_call_key *a, const tn_call_key *b) {
  return a->def == b->def && a->gradient == b->gradient && a->n_ports == b->n_ports &&
         memcmp(a->ports, b->ports, (size_t)a->n_ports * sizeof *a->ports) == 0 &&
         tn_options_equal(&a->def->op->item, a->attributes, b->attributes);
}

static tn_status call_key_copy(tn_compiled_call *c, const tn_call_key *key) {
  c->key = *key;
  c->key.attributes = tn_attributes_copy(&c->arena, &key->def->op->item, key->attributes);
  c->key.ports = tn_arena_copy(&c->arena, key->ports, (size_t)key->n_ports * sizeof *key->ports);
  return c->key.attributes != NULL && c->key.ports != NULL ? TN_OK : TN_ENOMEM;
}

/* ---- compiling ---- */

static void call_undo(void *context) {
  tn_compiled_call *c = context;
  tn_caller_program_destroy(c->runnable);
  tn_program_destroy(c->program);
  tn_state_map_destroy(c->map);
  c->runnable = NULL;
  c->program = NULL;
  c->map = NULL;
}

static void compiled_call_destroy(tn_compiled_call *c) {
  call_undo(c);
  tn_arena_free(&c->arena);
  tn_release(c->env, c);
}

static tn_status number_bindings(tn_compiled_call *c, const tn_binding *bindings, int32_t n,
                                 int32_t **ports) {
  int32_t *number = tn_arena_alloc(&c->arena, tn_size_mul((size_t)n + 1, sizeof *number));
  *ports = number;
  if (number == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) number[i] = atoi(bindings[i].name);
  return TN_OK;
}

static tn_status compile_call(tn_device *device, tn_compiled_call *c) {
  tn_device_use *use = device->use;
  tn_env *env = &device->env;
  tn_graph *graph;
  const char *op = c->key.def->op->item.name;
  TN_TRY(tn_call_graph_create(env, use->ops, &c->key, &graph));
  tn_status status = tn_state_map_create(env, &c->map);
  if (status == TN_OK)
    status = tn_compile(env, op, use->context->registry, &device->target, graph, c->map, NULL, &c->program);
  tn_graph_destroy(graph);
  return status;
}

static tn_status call_make(void *context) {
  tn_compiled_call *c = context;
  tn_device *device = c->device;
  TN_TRY(compile_call(device, c));
  TN_TRY(number_bindings(c, c->program->inputs, c->program->n_inputs, &c->input_port));
  TN_TRY(number_bindings(c, c->program->outputs, c->program->n_outputs, &c->output_port));
  return tn_caller_program_create(c->env, device, c->map, c->program, RUNS_AHEAD, &c->runnable);
}

static tn_status create_compiled_call(tn_device *device, const tn_call_key *key, tn_compiled_call **out) {
  tn_compiled_call *c = tn_alloc(device, sizeof *c);
  *out = NULL;
  if (c == NULL) return TN_ENOMEM;
  c->env = &device->env;
  c->device = device;
  c->arena = tn_arena_new(device);
  tn_status status = call_key_copy(c, key);
  if (status == TN_OK) status = tn_attempt_repeat(c->env, device, &(tn_attempt){c, call_make, call_undo});
  if (status == TN_OK)
    *out = c;
  else
    compiled_call_destroy(c);
  return status;
}

/* ---- the cache ---- */

/* The index for one more call: at the end, or of the least recently used one. */
static tn_status cache_entry(tn_call_cache *cache, const void *handle, size_t *index) {
  *index = cache->calls.n;
  if (cache->calls.n < TN_CALLS_KEPT) return tn_vec_reserve(handle, &cache->calls, cache->calls.n + 1);
  *index = 0;
  for (size_t i = 1; i < cache->calls.n; i++)
    if (cache->calls.v[i]->last_use < cache->calls.v[*index]->last_use) *index = i;
  return TN_OK;
}

static tn_status cache_add(tn_device *device, const tn_call_key *key, tn_compiled_call **made) {
  tn_call_cache *cache = &device->use->cache;
  size_t index;
  tn_status status = create_compiled_call(device, key, made);
  if (status == TN_ENOMEM && cache->calls.n > 0) {
    tn_call_cache_clear(device); /* the memory of the other calls may suffice */
    status = create_compiled_call(device, key, made);
  }
  if (status != TN_OK) return status;
  status = cache_entry(cache, device, &index);
  if (status != TN_OK) {
    compiled_call_destroy(*made);
    return status;
  }
  if (index < cache->calls.n)
    compiled_call_destroy(cache->calls.v[index]);
  else
    cache->calls.n++;
  cache->calls.v[index] = *made;
  cache->compiled++;
  return TN_OK;
}

tn_status tn_call_cache_get(tn_device *device, const tn_call_key *key, tn_compiled_call **found) {
  tn_call_cache *cache = &device->use->cache;
  uint64_t hash = call_hash(key);
  *found = NULL;
  for (size_t i = 0; i < cache->calls.n && *found == NULL; i++)
    if (cache->calls.v[i]->hash == hash && call_key_equal(&cache->calls.v[i]->key, key))
      *found = cache->calls.v[i];
  if (*found == NULL) TN_TRY(cache_add(device, key, found));
  (*found)->hash = hash;
  (*found)->last_use = ++cache->clock;
  return TN_OK;
}

void tn_call_cache_clear(tn_device *device) {
  tn_call_cache *cache = &device->use->cache;
  for (size_t i = 0; i < cache->calls.n; i++) compiled_call_destroy(cache->calls.v[i]);
  cache->calls.n = 0;
}

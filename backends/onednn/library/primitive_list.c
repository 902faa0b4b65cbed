/* backends/onednn/library/primitive_list.c: primitives one after the other, first written down, then cooked.
 */
#include <stdio.h>
#include <string.h>

#include "backends/onednn/library/primitive_list.h"
#include "backends/onednn/integer_math.h"

/* ---- the library --------------------------------------------------------------------------------- */

tn_status tn_dnn_check(tn_env *env, dnnl_status_t status, const char *call) {
  if (status == dnnl_success) return TN_OK;
  tn_status code = status == dnnl_out_of_memory                                       ? TN_ENOMEM
                   : status == dnnl_unimplemented || status == dnnl_invalid_arguments ? TN_EUNSUPPORTED
                                                                                      : TN_EINTERNAL;
  return tn_fail(env, code, NULL, "oneDNN refuses %.*s (status %d)", (int)strcspn(call, "("), call,
                 (int)status);
}

tn_status tn_dnn_open(tn_env *env, tn_dnn **dnn) {
  tn_dnn *d = tn_new(env, sizeof *d);
  *dnn = d;
  if (d == NULL) return TN_ENOMEM;
  const dnnl_version_t *version = dnnl_version();
  snprintf(d->version, sizeof d->version, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
  TN_DNN_TRY(env, dnnl_engine_create(&d->engine, dnnl_cpu, 0));
  TN_DNN_TRY(env, dnnl_stream_create(&d->stream, d->engine, dnnl_stream_default_flags));
  return TN_OK;
}

void tn_dnn_close(tn_dnn *dnn, tn_env *env) {
  if (dnn == NULL) return;
  if (dnn->stream != NULL) dnnl_stream_destroy(dnn->stream);
  if (dnn->engine != NULL) dnnl_engine_destroy(dnn->engine);
  tn_delete(env, dnn);
}

/* ---- writing down -------------------------------------------------------------------------------- */

enum { ALIGNED = 64 }; /* bytes */

tn_status tn_dnn_start(tn_dnn_recipe *recipe, tn_env *env, const void *backend, int32_t threads) {
  memset(recipe, 0, sizeof *recipe);
  recipe->env = env;
  recipe->dnn = tn_dnn_of(backend);
  recipe->threads = threads;
  if (recipe->dnn == NULL) return tn_fail(env, TN_EUNSUPPORTED, NULL, "backend onednn is not open");
  tn_onednn_use_threads(threads);
  return TN_OK;
}

void tn_dnn_finish(tn_dnn_recipe *recipe) {
  for (int32_t i = 0; i < recipe->n_steps; i++) dnnl_primitive_desc_destroy(recipe->steps[i].primitive);
  for (int32_t i = 0; i < recipe->n_descs; i++) tn_dnn_desc_destroy(&recipe->descs[i]);
  recipe->n_steps = recipe->n_descs = 0;
}

static tn_status check_step(const tn_dnn_recipe *recipe, dnnl_primitive_desc_t primitive) {
  const char *name = "";
  if (recipe->n_steps == TN_DNN_STEPS)
    return tn_fail(recipe->env, TN_EINTERNAL, NULL, "a recipe of more than %d primitives", TN_DNN_STEPS);
  TN_DNN_TRY(recipe->env, dnnl_primitive_desc_query(primitive, dnnl_query_impl_info_str, 0, &name));
  if (strncmp(name, "ref", 3) != 0) return TN_OK;
  return tn_fail(recipe->env, TN_EUNSUPPORTED, NULL, "oneDNN has its reference (%s) for it alone", name);
}

static int64_t scratch_of(dnnl_primitive_desc_t primitive, tn_dnn_desc *desc) {
  *desc = dnnl_primitive_desc_query_md(primitive, dnnl_query_scratchpad_md, 0);
  return *desc != NULL ? (int64_t)dnnl_memory_desc_get_size(*desc) : 0;
}

tn_status tn_dnn_add(tn_dnn_recipe *recipe, dnnl_primitive_desc_t primitive, tn_dnn_step **step) {
  tn_dnn_desc scratch;
  tn_status status = check_step(recipe, primitive);
  if (status != TN_OK) {
    dnnl_primitive_desc_destroy(primitive);
    return status;
  }
  *step = &recipe->steps[recipe->n_steps++];
  (*step)->primitive = primitive;
  int64_t bytes = scratch_of(primitive, &scratch);
  if (bytes > recipe->scratch_bytes) recipe->scratch_bytes = bytes;
  return TN_OK;
}

void tn_dnn_put(tn_dnn_step *step, int32_t arg, int32_t where, int64_t at, tn_dnn_desc desc) {
  step->args[step->n_args++] = (tn_dnn_arg){arg, where, at, desc};
}

int64_t tn_dnn_room(tn_dnn_recipe *recipe, tn_dnn_desc desc) {
  int64_t at = recipe->workspace_bytes;
  recipe->workspace_bytes += round_up((int64_t)dnnl_memory_desc_get_size(desc), ALIGNED);
  return at;
}

int64_t tn_dnn_workspace(const tn_dnn_recipe *recipe) {
  return recipe->workspace_bytes + round_up(recipe->scratch_bytes, ALIGNED);
}

tn_status tn_dnn_attributes(tn_env *env, dnnl_primitive_attr_t *attributes) {
  TN_DNN_TRY(env, dnnl_primitive_attr_create(attributes));
  TN_DNN_TRY(env, dnnl_primitive_attr_set_scratchpad_mode(*attributes, dnnl_scratchpad_mode_user));
  return TN_OK;
}

tn_status tn_dnn_add_reorder(tn_dnn_recipe *recipe, const tn_dnn_arg *from, const tn_dnn_arg *to) {
  dnnl_engine_t engine = recipe->dnn->engine;
  dnnl_primitive_attr_t attributes = NULL;
  dnnl_primitive_desc_t primitive = NULL;
  tn_dnn_step *step = NULL;
  tn_status status = tn_dnn_attributes(recipe->env, &attributes);
  if (status == TN_OK)
    status = tn_dnn_check(
        recipe->env,
        dnnl_reorder_primitive_desc_create(&primitive, from->desc, engine, to->desc, engine, attributes),
        "dnnl_reorder_primitive_desc_create");
  dnnl_primitive_attr_destroy(attributes);
  if (status == TN_OK) status = tn_dnn_add(recipe, primitive, &step);
  if (status != TN_OK) return status;
  step->is_reorder = true;
  tn_dnn_put(step, DNNL_ARG_FROM, from->where, from->at, from->desc);
  tn_dnn_put(step, DNNL_ARG_TO, to->where, to->at, to->desc);
  return TN_OK;
}

/* ---- cooking ------------------------------------------------------------------------------------- */

typedef struct cooked_arg {
  int32_t where;
  int64_t at;
  dnnl_memory_t memory;
} cooked_arg;

typedef struct cooked_step {
  dnnl_primitive_t primitive;
  bool is_reorder;
  int32_t n_args;
  cooked_arg args[TN_DNN_ARGS + 1];
  dnnl_exec_arg_t exec[TN_DNN_ARGS + 1];
} cooked_step;

typedef struct cooked {
  const tn_dnn *dnn;
  int32_t threads, n_steps;
  cooked_step steps[];
} cooked;

void tn_dnn_release(tn_env *env, void *plan) {
  cooked *c = plan;
  if (c == NULL) return;
  for (int32_t i = 0; i < c->n_steps; i++) {
    cooked_step *s = &c->steps[i];
    for (int32_t k = 0; k < s->n_args; k++) dnnl_memory_destroy(s->args[k].memory);
    if (s->primitive != NULL) dnnl_primitive_destroy(s->primitive);
  }
  tn_delete(env, c);
}

/* Memory without an address: each launch gives it one. */
static tn_status cook_arg(tn_env *env, const tn_dnn *dnn, const tn_dnn_arg *arg, cooked_step *step) {
  cooked_arg *a = &step->args[step->n_args];
  TN_DNN_TRY(env, dnnl_memory_create(&a->memory, arg->desc, dnn->engine, DNNL_MEMORY_NONE));
  a->where = arg->where;
  a->at = arg->at;
  step->exec[step->n_args++] = (dnnl_exec_arg_t){arg->arg, a->memory};
  return TN_OK;
}

static tn_status cook_step(const tn_dnn_recipe *recipe, const tn_dnn_step *from, cooked_step *step) {
  tn_dnn_desc scratch;
  TN_DNN_TRY(recipe->env, dnnl_primitive_create(&step->primitive, from->primitive));
  step->is_reorder = from->is_reorder;
  for (int32_t i = 0; i < from->n_args; i++) {
    tn_status status = cook_arg(recipe->env, recipe->dnn, &from->args[i], step);
    if (status != TN_OK) return status;
  }
  if (scratch_of(from->primitive, &scratch) == 0) return TN_OK;
  tn_dnn_arg arg = {DNNL_ARG_SCRATCHPAD, TN_DNN_WORKSPACE, recipe->workspace_bytes, scratch};
  return cook_arg(recipe->env, recipe->dnn, &arg, step);
}

tn_status tn_dnn_cook(const tn_dnn_recipe *recipe, void **plan) {
  cooked *c = tn_new(recipe->env, sizeof *c + (size_t)recipe->n_steps * sizeof *c->steps);
  if (c == NULL) return TN_ENOMEM;
  c->dnn = recipe->dnn;
  c->threads = recipe->threads;
  for (int32_t i = 0; i < recipe->n_steps; i++) {
    c->n_steps = i + 1;
    tn_status status = cook_step(recipe, &recipe->steps[i], &c->steps[i]);
    if (status == TN_OK) continue;
    tn_dnn_release(recipe->env, c);
    return status;
  }
  *plan = c;
  return TN_OK;
}

static void *address_of(const tn_launch *l, const cooked_arg *a) {
  switch (a->where) {
  case TN_DNN_IN: return l->in[a->at].data;
  case TN_DNN_OUT: return l->out[a->at].data;
  case TN_DNN_KEPT: return (char *)l->folded + a->at;
  default: return (char *)l->workspace + a->at;
  }
}

static tn_status execute(const cooked *c, const cooked_step *s, tn_launch *l) {
  void *address[TN_DNN_ARGS + 1];
  for (int32_t k = 0; k < s->n_args; k++) {
    address[k] = address_of(l, &s->args[k]);
    TN_DNN_TRY(&l->env, dnnl_memory_set_data_handle(s->args[k].memory, address[k]));
  }
  if (s->is_reorder && address[0] == address[1]) return TN_OK;
  return tn_dnn_check(&l->env, dnnl_primitive_execute(s->primitive, c->dnn->stream, s->n_args, s->exec),
                      "dnnl_primitive_execute");
}

tn_status tn_dnn_execute(const void *plan, tn_launch *l) {
  const cooked *c = plan;
  tn_status status = TN_OK;
  tn_onednn_use_threads(c->threads);
  tn_onednn_take_places(c->dnn->backend, c->threads);
  for (int32_t i = 0; i < c->n_steps && status == TN_OK; i++) status = execute(c, &c->steps[i], l);
  return status;
}

tn_status tn_dnn_launch(tn_launch *l) { return tn_dnn_execute(l->plan, l); }

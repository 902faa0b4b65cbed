/* backends/onednn/library/primitive_list.c: lists of primitives, and their compilation and execution. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "backends/onednn/library/primitive_list.h"
#include "backends/shared/integer_math.h"

/* ---- the library --------------------------------------------------------------------------------- */

tn_status tn_dnnl_check(tn_env *env, dnnl_status_t status, const char *call) {
  if (status == dnnl_success) return TN_OK;
  tn_status code = status == dnnl_out_of_memory                                       ? TN_ENOMEM
                   : status == dnnl_unimplemented || status == dnnl_invalid_arguments ? TN_EUNSUPPORTED
                                                                                      : TN_EINTERNAL;
  return tn_fail(env, code, NULL, "oneDNN refuses %.*s (status %d)", (int)strcspn(call, "("), call,
                 (int)status);
}

static const char *primitive_library_path(void) {
  const dnnl_version_t *(*function)(void) = dnnl_version;
  const void *address;
  Dl_info info;
  memcpy(&address, &function, sizeof address); /* ISO C has no cast from functions to objects */
  return dladdr(address, &info) != 0 ? info.dli_fname : NULL;
}

tn_status tn_library_open(tn_env *env, tn_library **library) {
  tn_library *d = tn_new(env, sizeof *d);
  *library = d;
  if (d == NULL) return TN_ENOMEM;
  const dnnl_version_t *version = dnnl_version();
  d->path = primitive_library_path();
  snprintf(d->version, sizeof d->version, "%d.%d.%d", version->major, version->minor, version->patch);
  TN_DNNL_TRY(env, dnnl_engine_create(&d->engine, dnnl_cpu, 0));
  TN_DNNL_TRY(env, dnnl_stream_create(&d->stream, d->engine, dnnl_stream_default_flags));
  return TN_OK;
}

void tn_library_close(tn_library *library, tn_env *env) {
  if (library == NULL) return;
  if (library->stream != NULL) dnnl_stream_destroy(library->stream);
  if (library->engine != NULL) dnnl_engine_destroy(library->engine);
  tn_delete(env, library);
}

/* ---- building a list ----------------------------------------------------------------------------- */

enum { ALIGNED = 64 }; /* bytes */

tn_status tn_primitive_list_start(tn_primitive_list *list, tn_env *env, const void *backend,
                                  int32_t threads) {
  memset(list, 0, sizeof *list);
  list->env = env;
  list->library = tn_library_of(backend);
  list->threads = threads;
  if (list->library == NULL) return tn_fail(env, TN_EUNSUPPORTED, NULL, "backend onednn is not open");
  list->threads_before = tn_onednn_use_threads(threads);
  return TN_OK;
}

void tn_primitive_list_finish(tn_primitive_list *list) {
  for (int32_t i = 0; i < list->n_steps; i++) dnnl_primitive_desc_destroy(list->steps[i].primitive);
  for (int32_t i = 0; i < list->n_descs; i++) tn_dnnl_desc_destroy(&list->descs[i]);
  list->n_steps = list->n_descs = 0;
  if (list->threads_before > 0) tn_onednn_use_threads(list->threads_before);
}

static tn_status primitive_check_step(const tn_primitive_list *list, dnnl_primitive_desc_t primitive) {
  const char *name = "";
  if (list->n_steps == TN_PRIMITIVE_STEPS)
    return tn_fail(list->env, TN_EINTERNAL, NULL, "a kernel has more than %d primitives", TN_PRIMITIVE_STEPS);
  TN_DNNL_TRY(list->env, dnnl_primitive_desc_query(primitive, dnnl_query_impl_info_str, 0, &name));
  if (strncmp(name, "ref", 3) != 0) return TN_OK;
  return tn_fail(list->env, TN_EUNSUPPORTED, NULL, "oneDNN has only its reference implementation (%s) for it",
                 name);
}

static int64_t primitive_scratch(dnnl_primitive_desc_t primitive, tn_dnnl_desc *desc) {
  *desc = dnnl_primitive_desc_query_md(primitive, dnnl_query_scratchpad_md, 0);
  return *desc != NULL ? (int64_t)dnnl_memory_desc_get_size(*desc) : 0;
}

tn_status tn_primitive_list_add(tn_primitive_list *list, dnnl_primitive_desc_t primitive,
                                tn_primitive_step **step) {
  tn_dnnl_desc scratch;
  tn_status status = primitive_check_step(list, primitive);
  if (status != TN_OK) {
    dnnl_primitive_desc_destroy(primitive);
    return status;
  }
  *step = &list->steps[list->n_steps++];
  (*step)->primitive = primitive;
  int64_t bytes = primitive_scratch(primitive, &scratch);
  if (bytes > list->scratch_bytes) list->scratch_bytes = bytes;
  return TN_OK;
}

void tn_primitive_step_put(tn_primitive_step *step, int32_t arg, int32_t location, int64_t at,
                           tn_dnnl_desc desc) {
  step->args[step->n_args++] = (tn_primitive_arg){arg, location, at, desc};
}

int64_t tn_primitive_list_allocate(tn_primitive_list *list, tn_dnnl_desc desc) {
  int64_t at = list->workspace_bytes;
  list->workspace_bytes += round_up((int64_t)dnnl_memory_desc_get_size(desc), ALIGNED);
  return at;
}

int64_t tn_primitive_list_workspace(const tn_primitive_list *list) {
  return list->workspace_bytes + round_up(list->scratch_bytes, ALIGNED);
}

tn_status tn_dnnl_attributes(tn_env *env, dnnl_primitive_attr_t *attributes) {
  TN_DNNL_TRY(env, dnnl_primitive_attr_create(attributes));
  TN_DNNL_TRY(env, dnnl_primitive_attr_set_scratchpad_mode(*attributes, dnnl_scratchpad_mode_user));
  return TN_OK;
}

tn_status tn_primitive_list_add_reorder(tn_primitive_list *list, const tn_primitive_arg *from,
                                        const tn_primitive_arg *to) {
  dnnl_engine_t engine = list->library->engine;
  dnnl_primitive_attr_t attributes = NULL;
  dnnl_primitive_desc_t primitive = NULL;
  tn_primitive_step *step = NULL;
  tn_status status = tn_dnnl_attributes(list->env, &attributes);
  if (status == TN_OK)
    status = tn_dnnl_check(
        list->env,
        dnnl_reorder_primitive_desc_create(&primitive, from->desc, engine, to->desc, engine, attributes),
        "dnnl_reorder_primitive_desc_create");
  dnnl_primitive_attr_destroy(attributes);
  if (status == TN_OK) status = tn_primitive_list_add(list, primitive, &step);
  if (status != TN_OK) return status;
  step->is_reorder = true;
  tn_primitive_step_put(step, DNNL_ARG_FROM, from->location, from->at, from->desc);
  tn_primitive_step_put(step, DNNL_ARG_TO, to->location, to->at, to->desc);
  return TN_OK;
}

/* ---- compiling ----------------------------------------------------------------------------------- */

typedef struct compiled_arg {
  int32_t location;
  int64_t at;
  dnnl_memory_t memory;
} compiled_arg;

typedef struct compiled_step {
  dnnl_primitive_t primitive;
  bool is_reorder;
  int32_t n_args;
  compiled_arg args[TN_PRIMITIVE_ARGS + 1];
  dnnl_exec_arg_t exec[TN_PRIMITIVE_ARGS + 1];
} compiled_step;

typedef struct compiled_list {
  const tn_library *library;
  int32_t threads, n_steps;
  compiled_step steps[];
} compiled_list;

void tn_primitive_list_release(tn_env *env, void *made) {
  compiled_list *c = made;
  if (c == NULL) return;
  for (int32_t i = 0; i < c->n_steps; i++) {
    compiled_step *s = &c->steps[i];
    for (int32_t k = 0; k < s->n_args; k++) dnnl_memory_destroy(s->args[k].memory);
    if (s->primitive != NULL) dnnl_primitive_destroy(s->primitive);
  }
  tn_delete(env, c);
}

/* The memory object has no address; each launch sets it. */
static tn_status primitive_compile_arg(tn_env *env, const tn_library *library, const tn_primitive_arg *arg,
                                       compiled_step *step) {
  compiled_arg *a = &step->args[step->n_args];
  TN_DNNL_TRY(env, dnnl_memory_create(&a->memory, arg->desc, library->engine, DNNL_MEMORY_NONE));
  a->location = arg->location;
  a->at = arg->at;
  step->exec[step->n_args++] = (dnnl_exec_arg_t){arg->arg, a->memory};
  return TN_OK;
}

static tn_status primitive_compile_step(const tn_primitive_list *list, const tn_primitive_step *from,
                                        compiled_step *step) {
  tn_dnnl_desc scratch;
  TN_DNNL_TRY(list->env, dnnl_primitive_create(&step->primitive, from->primitive));
  step->is_reorder = from->is_reorder;
  for (int32_t i = 0; i < from->n_args; i++) {
    TN_TRY(primitive_compile_arg(list->env, list->library, &from->args[i], step));
  }
  if (primitive_scratch(from->primitive, &scratch) == 0) return TN_OK;
  tn_primitive_arg arg = {DNNL_ARG_SCRATCHPAD, TN_ARG_WORKSPACE, list->workspace_bytes, scratch};
  return primitive_compile_arg(list->env, list->library, &arg, step);
}

tn_status tn_primitive_list_compile(const tn_primitive_list *list, void **made) {
  tn_status threads = tn_onednn_start_threads(list->env, list->library->backend, list->threads);
  if (threads != TN_OK) return threads;
  compiled_list *c = tn_new(list->env, sizeof *c + (size_t)list->n_steps * sizeof *c->steps);
  if (c == NULL) return TN_ENOMEM;
  c->library = list->library;
  c->threads = list->threads;
  for (int32_t i = 0; i < list->n_steps; i++) {
    c->n_steps = i + 1;
    tn_status status = primitive_compile_step(list, &list->steps[i], &c->steps[i]);
    if (status == TN_OK) continue;
    tn_primitive_list_release(list->env, c);
    return status;
  }
  *made = c;
  return TN_OK;
}

static void *primitive_address(const tn_launch *l, const compiled_arg *a) {
  switch (a->location) {
  case TN_ARG_IN: return l->in[a->at].data;
  case TN_ARG_OUT: return l->out[a->at].data;
  case TN_ARG_FOLDED: return (char *)l->folded + a->at;
  default: return (char *)l->workspace + a->at;
  }
}

static tn_status primitive_execute(const compiled_list *c, const compiled_step *s, tn_launch *l) {
  void *address[TN_PRIMITIVE_ARGS + 1];
  for (int32_t k = 0; k < s->n_args; k++) {
    address[k] = primitive_address(l, &s->args[k]);
    TN_DNNL_TRY(&l->env, dnnl_memory_set_data_handle(s->args[k].memory, address[k]));
  }
  if (s->is_reorder && address[0] == address[1]) return TN_OK;
  return tn_dnnl_check(&l->env, dnnl_primitive_execute(s->primitive, c->library->stream, s->n_args, s->exec),
                       "dnnl_primitive_execute");
}

tn_status tn_primitive_list_execute(const void *made, tn_launch *l) {
  const compiled_list *c = made;
  tn_status status = tn_onednn_start_threads(&l->env, c->library->backend, c->threads);
  if (status != TN_OK) return status;
  int32_t before = tn_onednn_use_threads(c->threads);
  tn_onednn_bind_threads(c->library->backend, c->threads);
  tn_onednn_enter_environment(c->library->backend, c->threads);
  for (int32_t i = 0; i < c->n_steps && status == TN_OK; i++) status = primitive_execute(c, &c->steps[i], l);
  tn_onednn_leave_environment(c->library->backend, c->threads);
  tn_onednn_use_threads(before);
  return status;
}

tn_status tn_primitive_list_launch(tn_launch *l) { return tn_primitive_list_execute(l->prepared, l); }

/* backends/cuda/cudnn/plan.c: see plan.h. */
#include "backends/cuda/cudnn/plan.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cudnn/backend.h"
#include "backends/cuda/cudnn/descriptors.h"
#include "backends/cuda/modules/compile_pool.h"
#include "backends/cuda/modules/modules.h"

enum { KNOBS_TEXT = 2048 };

/* The part of a device that is for cuDNN. */
typedef struct tn_cudnn_device {
  cudnnHandle_t handle;
  cudaStream_t stream;             /* of the handle */
  char why[TN_CUDNN_WHY];          /* the handle could not be made; "": it was, or has not been asked for */
  struct tn_cudnn_work *requested; /* works that are not finished */
  bool said_late, said_unsaved;
} tn_cudnn_device;

/* A plan in the making, and made. */
typedef struct tn_cudnn_work {
  struct tn_cudnn_work *next; /* of the requests that are not finished */
  const tn_cudnn_library *library;
  tn_cuda_device *device;
  int32_t use; /* tn_prepare.use of its kernel */
  tn_cudnn_graph graph;
  tn_cudnn_engine engine;
  char *details; /* of the device */
  bool in_pool;
  tn_cuda_job job;                       /* engines that are compiled at run time: makes the plan's JSON */
  cudnnBackendDescriptor_t plan;         /* NULL: not ready */
  cudnnBackendDescriptor_t pack;         /* the addresses of the last launch */
  void *addresses[TN_CUDNN_TENSORS + 1]; /* those, and the workspace */
  union {
    float f32;
    int32_t i32;
  } numbers[TN_CUDNN_TENSORS];
} tn_cudnn_work;

/* ---- the handle ---- */

static tn_status plan_fail_handle(tn_env *env, const tn_cudnn_device *d) {
  return tn_fail(env, TN_EUNSUPPORTED, NULL, "cuDNN cannot use the device: %s", d->why);
}

static tn_status plan_create_handle(tn_env *env, const tn_cudnn_library *l, tn_cudnn_device *d) {
  tn_cudnn_calls c;
  tn_cudnn_calls_init(&c, l);
  tn_cudnn_check(&c, l->call.cudnnCreate(&d->handle), "cudnnCreate");
  if (tn_cudnn_ok(&c)) return TN_OK;
  d->handle = NULL;
  snprintf(d->why, sizeof d->why, "%s", c.why);
  return plan_fail_handle(env, d);
}

static tn_status plan_open_device(tn_env *env, tn_cuda_device *device, const tn_cudnn_library *l) {
  if (device->cudnn == NULL) device->cudnn = tn_new(env, sizeof *device->cudnn);
  if (device->cudnn == NULL) return TN_ENOMEM;
  if (device->cudnn->handle != NULL) return TN_OK;
  if (*device->cudnn->why) return plan_fail_handle(env, device->cudnn);
  tn_status status = tn_cuda_enter(env, device);
  return status == TN_OK ? plan_create_handle(env, l, device->cudnn) : status;
}

void tn_cudnn_device_close(tn_env *env, tn_cuda_device *device) {
  tn_cudnn_device *d = device->cudnn;
  if (d == NULL) return;
  if (d->handle != NULL) (void)device->backend->cudnn->call.cudnnDestroy(d->handle);
  tn_delete(env, d);
  device->cudnn = NULL;
}

/* ---- building ---- */

/* A workspace larger than the one that was offered would be written past its end. */
static void plan_keep(tn_cudnn_calls *c, tn_cudnn_work *w, cudnnBackendDescriptor_t plan) {
  int64_t bytes = 0;
  tn_cudnn_get(c, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
  if (bytes > tn_cudnn_engine_workspace(&w->engine))
    tn_cudnn_check(c, CUDNN_STATUS_NOT_SUPPORTED, "the plan wants more workspace than its engine");
  if (!tn_cudnn_ok(c)) return;
  tn_cudnn_disown(c, plan);
  w->plan = plan;
}

/* A plan that cuDNN does not build is one variant less; without memory, or after a fault of the device, no
 * other would be built either. */
static tn_status plan_build_status(tn_env *env, const tn_cudnn_work *w, const tn_cudnn_calls *c) {
  const tn_cuda_libraries *l = &w->device->backend->libraries;
  tn_status status = tn_cudnn_status(env, l, c);
  if (!tn_cuda_is_refusal(l, status)) return status;
  return tn_fail(env, TN_EUNSUPPORTED, NULL, "cuDNN does not build the plan: %s", c->why);
}

static tn_status plan_build_for_handle(tn_env *env, tn_cudnn_work *w) {
  tn_cudnn_calls c;
  tn_cudnn_calls_init(&c, w->library);
  cudnnBackendDescriptor_t plan =
      tn_cudnn_describe_plan(&c, &w->graph, &w->engine, w->details, w->device->cudnn->handle);
  plan_keep(&c, w, plan);
  tn_status status = plan_build_status(env, w, &c);
  tn_cudnn_calls_free(&c);
  return status;
}

/* ---- engines that are compiled at run time ---- */

/* The plan in JSON, which contains the code. false: cuDNN gives no text, and `error` has the reason. */
static bool plan_write_json(tn_cudnn_calls *c, cudnnBackendDescriptor_t plan, tn_cuda_image *image,
                            char error[TN_CUDA_ERROR_TEXT]) {
  int64_t bytes =
      tn_cudnn_get(c, plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, NULL);
  image->bytes = tn_cudnn_ok(c) ? calloc(1, (size_t)bytes + 1) : NULL;
  if (image->bytes != NULL) {
    image->n = (size_t)bytes + 1;
    tn_cudnn_get(c, plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, bytes,
                 image->bytes);
  }
  snprintf(error, TN_CUDA_ERROR_TEXT, "%s", tn_cudnn_ok(c) ? "no memory for the plan" : c->why);
  return tn_cudnn_ok(c) && image->bytes != NULL;
}

/* On a thread of the pool. */
static bool plan_compile(tn_cuda_job *job) {
  const tn_cudnn_work *w = (const tn_cudnn_work *)((const char *)job - offsetof(tn_cudnn_work, job));
  tn_cudnn_calls c;
  tn_cuda_make_current(w->device); /* cuDNN loads the code that it compiles, for the current context */
  tn_cudnn_calls_init(&c, w->library);
  cudnnBackendDescriptor_t plan = tn_cudnn_describe_plan(&c, &w->graph, &w->engine, w->details, NULL);
  bool done = plan_write_json(&c, plan, &job->image, job->error);
  tn_cudnn_calls_free(&c);
  return done;
}

/* All that the code depends on: version, device, graph, engine. */
static tn_status plan_set_key(tn_env *env, const tn_cuda_pool *pool, tn_cudnn_work *w) {
  const tn_cudnn_engine *e = &w->engine;
  size_t room = strlen(w->details) + TN_CUDNN_TEXT + KNOBS_TEXT;
  char *text = tn_new(env, room);
  if (text == NULL) return TN_ENOMEM;
  size_t n = (size_t)snprintf(text, room, "cudnn %lld %s\nengine %lld", (long long)w->library->version,
                              w->details, (long long)e->index);
  for (int32_t i = 0; i < e->n_knobs; i++)
    n += (size_t)snprintf(text + n, room - n, " %d=%lld", (int)e->knob[i], (long long)e->knob_value[i]);
  n += (size_t)snprintf(text + n, room - n, "\n");
  (void)tn_cudnn_graph_text(&w->graph, text + n);
  tn_cuda_image_key(&pool->compiler, text, w->job.key);
  tn_delete(env, text);
  return TN_OK;
}

static tn_status plan_begin_compilation(tn_env *env, tn_cudnn_work *w) {
  tn_cuda_pool *pool = tn_cuda_modules_pool(env, w->device->modules);
  TN_TRY(plan_set_key(env, pool, w));
  w->job.title = w->engine.name;
  w->job.text = "";
  w->job.compile = plan_compile;
  w->in_pool = true;
  w->next = w->device->cudnn->requested;
  w->device->cudnn->requested = w;
  tn_cuda_pool_add(pool, &w->job);
  return TN_OK;
}

static void plan_load(tn_cudnn_calls *c, tn_cudnn_work *w) {
  cudnnHandle_t handle = w->device->cudnn->handle;
  cudnnBackendDescriptor_t plan = tn_cudnn_create(c, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  tn_cudnn_set(c, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, (const void *)&handle);
  tn_cudnn_set(c, plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
               (int64_t)strlen(w->job.image.bytes), w->job.image.bytes);
  tn_cudnn_finalize(c, plan);
  plan_keep(c, w, plan);
}

/* Keeps a plan that this thread has built, so that the next run loads it. Says once for a device that none is
 * kept. */
static void plan_keep_on_disk(tn_env *env, tn_cudnn_work *w) {
  const tn_cuda_pool *pool = tn_cuda_modules_pool(env, w->device->modules);
  char unsaved[TN_CUDA_ERROR_TEXT] = "";
  tn_cudnn_calls c;
  tn_cudnn_calls_init(&c, w->library);
  if (plan_write_json(&c, w->plan, &w->job.image, unsaved)) {
    *unsaved = '\0';
    (void)tn_cuda_image_write(pool->folder, w->job.key, &w->job.image, unsaved);
  }
  tn_cudnn_calls_free(&c);
  if (*unsaved == '\0' || w->device->cudnn->said_unsaved) return;
  w->device->cudnn->said_unsaved = true;
  tn_env_log(env, TN_LOG_WARN, "cuda: cuDNN's plan of %s was not kept: %s", w->job.title, unsaved);
}

/* Says once for a device that plans take longer: this thread builds them one by one. */
static void plan_say_late(tn_env *env, const tn_cudnn_work *w) {
  if (w->device->cudnn->said_late) return;
  w->device->cudnn->said_late = true;
  tn_env_log(
      env, TN_LOG_WARN,
      "cuda: cuDNN does not compile %s on a thread of its own, so plans are built one by one the first "
      "time: %s",
      w->job.title, w->job.error);
}

static void plan_drop_image(tn_cudnn_work *w) {
  free(w->job.image.bytes);
  w->job.image.bytes = NULL;
}

/* A plan that does not load, as one of an older driver on disk, is built again on this thread, and takes its
 * place on disk. */
static tn_status plan_finish(tn_env *env, tn_cudnn_work *w) {
  tn_cudnn_calls c;
  if (!tn_cuda_pool_await(env, tn_cuda_modules_pool(env, w->device->modules), &w->job))
    return tn_fail(env, TN_ESTOPPED, NULL, "stopped while %s was compiled; nothing was saved", w->job.title);
  w->in_pool = false;
  tn_cudnn_calls_init(&c, w->library);
  if (w->job.compiled) plan_load(&c, w);
  tn_cudnn_calls_free(&c);
  plan_drop_image(w);
  if (w->plan != NULL) return TN_OK;
  TN_TRY(plan_build_for_handle(env, w));
  if (!w->job.compiled) plan_say_late(env, w);
  plan_keep_on_disk(env, w);
  plan_drop_image(w);
  return TN_OK;
}

tn_status tn_cudnn_finish_prepare(tn_env *env, tn_cuda_device *device, int32_t *declined) {
  tn_status status = TN_OK;
  while (status == TN_OK && device->cudnn != NULL && device->cudnn->requested != NULL) {
    tn_cudnn_work *w = device->cudnn->requested;
    status = tn_cuda_enter(env, device);
    if (status == TN_OK) status = plan_finish(env, w);
    if (status == TN_EUNSUPPORTED) *declined = w->use;
    if (status == TN_OK || status == TN_EUNSUPPORTED) device->cudnn->requested = w->next;
  }
  return status;
}

/* ---- requests ---- */

static void plan_free_work(tn_env *env, tn_cudnn_work *w) {
  const tn_cudnn_functions *call = &w->library->call;
  if (w->pack != NULL) (void)call->cudnnBackendDestroyDescriptor(w->pack);
  if (w->plan != NULL) (void)call->cudnnBackendDestroyDescriptor(w->plan);
  free(w->job.image.bytes);
  tn_delete(env, w->details);
  tn_delete(env, w);
}

static tn_status plan_new_work(tn_env *env, tn_cuda_device *device, const tn_cudnn_graph *g,
                               const tn_cudnn_engine *engine, const char *details, tn_cudnn_work **made) {
  tn_cudnn_work *w = tn_new(env, sizeof *w);
  if (w == NULL) return TN_ENOMEM;
  w->library = device->backend->cudnn;
  w->device = device;
  w->graph = *g;
  w->engine = *engine;
  for (int32_t i = 0; i < g->n_tensors; i++)
    if (g->tensors[i].dtype == TN_I32)
      w->numbers[i].i32 = (int32_t)g->tensors[i].value;
    else
      w->numbers[i].f32 = (float)g->tensors[i].value;
  w->details = tn_new(env, strlen(details) + 1);
  if (w->details == NULL) {
    plan_free_work(env, w);
    return TN_ENOMEM;
  }
  strcpy(w->details, details);
  *made = w;
  return TN_OK;
}

tn_status tn_cudnn_request(tn_prepare *p, const tn_cudnn_graph *g, bool exact, int32_t rank,
                           tn_cudnn_plan *plan) {
  tn_cuda_device *device = tn_cuda_device_of(p);
  tn_cudnn_engines engines;
  memset(plan, 0, sizeof *plan);
  TN_TRY(tn_cudnn_find_engines(&p->env, device->backend, p->device, g, exact, &engines));
  if (rank >= engines.n)
    return tn_fail(p, TN_EUNSUPPORTED, NULL, "cuDNN has %d engines, number %d is asked for", (int)engines.n,
                   (int)rank + 1);
  tn_status status = plan_open_device(&p->env, device, device->backend->cudnn);
  if (status == TN_OK)
    status = plan_new_work(&p->env, device, g, &engines.engine[rank], p->device->details, &plan->work);
  if (status != TN_OK) return status;
  plan->work->use = p->use;
  return plan->work->engine.compiled ? plan_begin_compilation(&p->env, plan->work)
                                     : plan_build_for_handle(&p->env, plan->work);
}

int64_t tn_cudnn_plan_workspace(const tn_cudnn_plan *plan) {
  return tn_cudnn_engine_workspace(&plan->work->engine);
}

static void plan_leave_requests(tn_cudnn_work *w) {
  tn_cudnn_work **at = &w->device->cudnn->requested;
  while (*at != NULL && *at != w) at = &(*at)->next;
  if (*at != NULL) *at = w->next;
}

void tn_cudnn_withdraw(tn_env *env, tn_cudnn_plan *plan) {
  tn_cudnn_work *w = plan->work;
  if (w == NULL) return;
  if (w->in_pool) tn_cuda_pool_withdraw(tn_cuda_modules_pool(env, w->device->modules), &w->job);
  plan_leave_requests(w);
  plan_free_work(env, w);
  plan->work = NULL;
}

/* ---- launches ---- */

static bool plan_has_addresses(const tn_cudnn_work *w, void *const *addresses, void *workspace) {
  return w->pack != NULL && w->addresses[TN_CUDNN_TENSORS] == workspace &&
         memcmp(w->addresses, addresses, (size_t)w->graph.n_tensors * sizeof *addresses) == 0;
}

/* Addresses change between launches only where the host moves a program's memory. */
static tn_status plan_set_addresses(tn_env *env, tn_cudnn_work *w, void *const *addresses, void *workspace) {
  int64_t ids[TN_CUDNN_TENSORS], n = 0;
  void *pointers[TN_CUDNN_TENSORS];
  tn_cudnn_calls c;
  for (int32_t i = 0; i < w->graph.n_tensors; i++) {
    if (w->graph.tensors[i].is_virtual) continue;
    ids[n] = i + 1;
    pointers[n++] = w->graph.tensors[i].by_value ? &w->numbers[i] : addresses[i];
  }
  tn_cudnn_calls_init(&c, w->library);
  if (w->pack != NULL) (void)w->library->call.cudnnBackendDestroyDescriptor(w->pack);
  w->pack = NULL;
  cudnnBackendDescriptor_t pack = tn_cudnn_create(&c, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  tn_cudnn_set(&c, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
  tn_cudnn_set(&c, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers);
  tn_cudnn_set(&c, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  tn_cudnn_finalize(&c, pack);
  if (tn_cudnn_ok(&c)) {
    tn_cudnn_disown(&c, pack);
    w->pack = pack;
    memcpy(w->addresses, addresses, (size_t)w->graph.n_tensors * sizeof *addresses);
    w->addresses[TN_CUDNN_TENSORS] = workspace;
  }
  tn_status status = tn_cudnn_status(env, &w->device->backend->libraries, &c);
  tn_cudnn_calls_free(&c);
  return status;
}

static tn_status plan_execute(tn_env *env, const tn_cudnn_work *w, cudaStream_t stream) {
  const tn_cudnn_functions *call = &w->library->call;
  tn_cudnn_device *d = w->device->cudnn;
  tn_cudnn_calls c;
  tn_cudnn_calls_init(&c, w->library);
  if (d->stream != stream) tn_cudnn_check(&c, call->cudnnSetStream(d->handle, stream), "cudnnSetStream");
  if (tn_cudnn_ok(&c)) d->stream = stream;
  if (tn_cudnn_ok(&c))
    tn_cudnn_check(&c, call->cudnnBackendExecute(d->handle, w->plan, w->pack), "cudnnBackendExecute");
  return tn_cudnn_status(env, &w->device->backend->libraries, &c);
}

char *tn_cudnn_workspace(const tn_launch *l) {
  uintptr_t rounded = ((uintptr_t)l->workspace + TN_CUDNN_WORKSPACE_ROUND - 1) / TN_CUDNN_WORKSPACE_ROUND;
  return (char *)(rounded * TN_CUDNN_WORKSPACE_ROUND);
}

tn_status tn_cudnn_run(tn_launch *l, const tn_cudnn_plan *plan, void *const *addresses) {
  tn_cudnn_work *w = plan->work;
  void *workspace = tn_cudnn_workspace(l);
  TN_TRY(tn_cuda_enter(&l->env, w->device));
  if (!plan_has_addresses(w, addresses, workspace))
    TN_TRY(plan_set_addresses(&l->env, w, addresses, workspace));
  TN_TRY(plan_execute(&l->env, w, ((const tn_cuda_stream *)l->stream)->stream));
  return tn_cuda_launched(l);
}

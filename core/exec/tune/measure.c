/* core/exec/tune/measure.c: measures variants of kernels: the shortest time of several launches. */
#include "core/exec/tune/measure.h"

#include <stdlib.h>

#include "core/base/file.h"
#include "core/base/system.h"
#include "core/compile/layout/layout.h"
#include "core/compile/kernels/tuner.h"
#include "core/exec/device/pin_threads.h"
#include "core/exec/tune/tune_file.h"
#include "core/plugin/handles.h"

enum { MOST_RUNS = 5, MOST_VIEWS = 64 };
/* Runs end after this total time, so a long kernel runs once. */
static const double ENOUGH_S = 0.02;

typedef struct measuring_tuner {
  tn_tuner tuner; /* first: the handle of the compiler */
  tn_device *device;
  bool measure;
  tn_tune_file file;
} measuring_tuner;

/* ---- the key of a measurement ---- */

static void describe_types(tn_text *text, const tn_type *const *types, int32_t n) {
  char type[TN_TYPE_TEXT];
  for (int32_t i = 0; i < n; i++)
    tn_text_addf(text, " %s", types[i] != NULL ? tn_type_format(types[i], type) : "_");
}

/* The libraries of the backend of the kernel's family; "" if it reports none. */
static const char *kernel_libraries(const tn_device *d, const tn_entry *entry) {
  const char *family = ((const tn_kernel *)entry->item)->family, *libraries = NULL;
  bool extends = d->extension != NULL && tn_text_equal(d->extension->item.name, family);
  const tn_backend *b = extends ? d->extension : d->backend;
  tn_env env = d->env;
  if (tn_text_equal(b->item.name, family))
    libraries = b->libraries(&env, extends ? d->extension_self : d->self);
  return libraries != NULL ? libraries : "";
}

/* Dims of operands and results imply the strides, and nearly always the padding. */
static void describe_variant(tn_text *text, const tn_device *device, const tn_entry *entry, const tn_match *m,
                             const tn_choice *choice) {
  const char *libraries = kernel_libraries(device, entry);
  tn_text_addf(text, "%s %s%s%s \"%s\":", entry->item->name, entry->version != NULL ? entry->version : "",
               libraries[0] != '\0' ? " " : "", libraries, choice->name);
  for (int32_t i = 0; i < m->n_nodes; i++)
    tn_text_addf(text, "%s%s", i > 0 ? "+" : " ", m->nodes[i].node->op);
  describe_types(text, m->in, m->n_in);
  tn_text_addf(text, " ->");
  describe_types(text, m->out, m->n_out);
}

/* ---- one launch ---- */

/* Memory for a measurement. It is not counted as memory of the run. */
typedef struct measurement {
  tn_device *device;
  const tn_entry *entry;
  const tn_match *match;
  const tn_choice *choice;
  tn_view views[MOST_VIEWS];
  int64_t bytes[MOST_VIEWS];
  void *workspace, *folded, *prepared;
  tn_launch_host host;
  tn_pinned pinned;
} measurement;

static tn_status measurement_allocate(measurement *b, int64_t bytes, void **address) {
  tn_device *d = b->device;
  *address = NULL;
  if (bytes == 0) return TN_OK;
  TN_TRY(d->backend->memory_new(&d->env, d->device, TN_MEMORY_DEVICE, (uint64_t)bytes, address));
  return d->backend->fill_zero(&d->env, d->streams[TN_STREAM_COMPUTE], *address, (uint64_t)bytes);
}

static void measurement_free(measurement *b, int64_t bytes, void *address) {
  if (address == NULL) return;
  b->device->backend->memory_delete(&b->device->env, b->device->device, TN_MEMORY_DEVICE, address,
                                    (uint64_t)bytes);
}

static tn_layout operand_layout(const tn_operand_layout *rules, int32_t i, int32_t rank) {
  bool given = rules != NULL && rules[i].layout.set &&
               (rules[i].rule == TN_LAYOUT_FIXED || rules[i].rule == TN_LAYOUT_PREFERRED);
  return given ? rules[i].layout : tn_layout_row_major(rank);
}

static tn_status allocate_operands(measurement *b) {
  const tn_match *m = b->match;
  for (int32_t i = 0; i < m->n_in + m->n_out; i++) {
    bool in = i < m->n_in;
    int32_t k = in ? i : i - m->n_in;
    const tn_type *type = in ? m->in[k] : m->out[k];
    if (type == NULL) continue;
    tn_layout layout = operand_layout(in ? b->choice->in_rule : b->choice->out_rule, k, type->rank);
    b->bytes[i] = tn_layout_bytes(type, &layout);
    b->views[i] = (tn_view){*type, layout, NULL};
    TN_TRY(measurement_allocate(b, b->bytes[i], &b->views[i].data));
  }
  TN_TRY(measurement_allocate(b, b->choice->workspace_bytes, &b->workspace));
  return measurement_allocate(b, b->choice->folded_bytes, &b->folded);
}

static tn_status measurement_prepare(measurement *b) {
  tn_layout in[MOST_VIEWS], out[MOST_VIEWS];
  for (int32_t i = 0; i < b->match->n_in; i++) in[i] = b->views[i].layout;
  for (int32_t i = 0; i < b->match->n_out; i++) out[i] = b->views[b->match->n_in + i].layout;
  const tn_kernel *kernel = (const tn_kernel *)b->entry->item;
  return tn_device_prepare(b->device, kernel, b->match, b->choice, in, out, &b->prepared);
}

static void fill_launch(measurement *b) {
  tn_device *d = b->device;
  b->host.pub = (tn_launch){.env = d->env,
                            .struct_size = sizeof(tn_launch),
                            .n_in = b->match->n_in,
                            .n_out = b->match->n_out,
                            .in = b->views,
                            .out = b->views + b->match->n_in,
                            .prepared = b->prepared,
                            .workspace = b->workspace,
                            .workspace_bytes = b->choice->workspace_bytes,
                            .stream = d->streams[TN_STREAM_COMPUTE],
                            .name = b->entry->item->name,
                            .folded = b->folded,
                            .folded_bytes = b->choice->folded_bytes};
  b->host.parallel = d->backend->parallel;
  b->host.device = d->device;
}

static tn_status launch_and_wait(measurement *b, tn_status (*launch)(tn_launch *l)) {
  tn_device *d = b->device;
  const tn_kernel *kernel = (const tn_kernel *)b->entry->item;
  TN_TRY(tn_device_enqueue(d, tn_device_is_foreign(d, kernel->family), launch, &b->host.pub));
  return d->backend->stream_wait(&d->env, b->host.pub.stream);
}

/* The shortest time of a few runs, after one that is not timed: a kernel may allocate at its first launch. */
static tn_status time_launches(measurement *b, double *seconds) {
  const tn_kernel *kernel = (const tn_kernel *)b->entry->item;
  double all_s = 0;
  *seconds = 0;
  fill_launch(b);
  if (b->choice->folded_bytes > 0) TN_TRY(launch_and_wait(b, kernel->fold));
  TN_TRY(launch_and_wait(b, kernel->launch));
  for (int32_t i = 0; i < MOST_RUNS && all_s < ENOUGH_S; i++) {
    double start_s = tn_clock_s();
    TN_TRY(launch_and_wait(b, kernel->launch));
    double took_s = tn_clock_s() - start_s;
    if (i == 0 || took_s < *seconds) *seconds = took_s;
    all_s += took_s;
  }
  return TN_OK;
}

static void measurement_end(measurement *b) {
  const tn_kernel *kernel = (const tn_kernel *)b->entry->item;
  if (b->prepared != NULL && kernel->release != NULL) kernel->release(&b->device->env, b->prepared);
  for (int32_t i = 0; i < b->match->n_in + b->match->n_out; i++)
    measurement_free(b, b->bytes[i], b->views[i].data);
  measurement_free(b, b->choice->workspace_bytes, b->workspace);
  measurement_free(b, b->choice->folded_bytes, b->folded);
}

static bool measure_variant(tn_device *device, const tn_entry *entry, const tn_match *match,
                            const tn_choice *choice, double *seconds) {
  if (match->n_in + match->n_out > MOST_VIEWS) return false;
  measurement *b = tn_alloc(&device->env, sizeof *b);
  tn_status status = TN_ENOMEM;
  if (b != NULL) {
    *b = (measurement){.device = device, .entry = entry, .match = match, .choice = choice};
    status = allocate_operands(b);
    if (status == TN_OK) status = measurement_prepare(b);
    tn_pin_enter(&b->pinned, device);
    if (status == TN_OK) status = time_launches(b, seconds);
    tn_pin_leave(&b->pinned);
    measurement_end(b);
  }
  tn_release(&device->env, b);
  if (status == TN_OK) return *seconds > 0;
  tn_logf(&device->env, TN_LOG_DEBUG, "kernel %s cannot be measured: %s", entry->item->name,
          tn_error_text(&device->env));
  tn_error_clear(&device->env);
  return false;
}

/* ---- the tuner ---- */

static bool time_variant(tn_tuner *tuner, const tn_entry *entry, const tn_match *match,
                         const tn_choice *choice, double *seconds) {
  measuring_tuner *t = (measuring_tuner *)tuner;
  tn_text text = tn_text_new(&t->device->env);
  describe_variant(&text, t->device, entry, match, choice);
  bool known = false;
  if (!text.failed) {
    uint64_t key = tn_hash_text(TN_HASH_START, text.v);
    known = tn_tune_file_find(&t->file, key, seconds);
    if (!known && t->measure && measure_variant(t->device, entry, match, choice, seconds)) {
      tn_tune_file_add(&t->file, key, *seconds, text.v);
      known = true;
    }
  }
  tn_text_free(&text);
  return known;
}

static void close_tuner(tn_device *device) {
  measuring_tuner *t = (measuring_tuner *)device->target.tuner;
  tn_tune_file_close(&t->file);
  tn_release(&device->env, t);
  device->target.tuner = NULL;
  device->close_tuner = NULL;
}

tn_status tn_tune_open(tn_device *device, const char *folder, bool measure) {
  const tn_device_properties *p = &device->target.properties;
  measuring_tuner *t = tn_alloc(&device->env, sizeof *t);
  if (t == NULL) return TN_ENOMEM;
  *t = (measuring_tuner){{time_variant}, device, measure, {.env = &device->env}};
  device->target.tuner = &t->tuner;
  device->close_tuner = close_tuner;
  tn_text heading = tn_text_new(&device->env);
  tn_text_addf(&heading, "tenon measurements 1: %s, %d threads", p->name, (int)p->threads);
  tn_status status =
      heading.failed ? TN_ENOMEM : tn_tune_file_open(&device->env, folder, heading.v, &t->file);
  tn_text_free(&heading);
  if (status != TN_OK) close_tuner(device);
  return status;
}

char *tn_tune_folder(const void *handle) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (cache != NULL && cache[0] == '/') return tn_path_join(handle, cache, "tenon");
  return home != NULL && home[0] == '/' ? tn_path_join(handle, home, ".cache/tenon") : NULL;
}

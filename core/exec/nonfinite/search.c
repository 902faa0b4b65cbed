/* core/exec/nonfinite/search.c: scans every value of a run, then goes back from the values that the program
 * leaves behind to the first one that is not finite although its operands are. */
#include "core/exec/nonfinite/search.h"

#include "core/compile/kernels/transfer_kernel.h"
#include "core/exec/collective.h"
#include "core/exec/nonfinite/search_state.h"
#include "core/graph/input_state.h"

/* ---- scanning ---- */

static void forget_run(tn_nonfinite_search *f) {
  tn_release(f->executor->env, f->seen);
  f->seen = NULL;
  f->program = NULL;
}

static tn_status reserve_bytes(tn_nonfinite_search *f, int64_t bytes) {
  if (bytes <= f->capacity) return TN_OK;
  char *grown = tn_resize(f->executor->env, f->bytes, (size_t)bytes);
  if (grown == NULL) return TN_ENOMEM;
  f->bytes = grown;
  f->capacity = bytes;
  return TN_OK;
}

static tn_status scan_inputs(tn_nonfinite_search *f, int32_t slot) {
  const tn_program *p = f->program;
  const tn_graph *graph = p->cover->graph;
  for (int32_t i = 0; i < p->n_inputs; i++) {
    const tn_binding *in = &p->inputs[i];
    const char *data = (const char *)f->executor->slots[slot].host_input + in->offset;
    tn_scan seen = tn_scan_elements(in->type.dtype, data, tn_type_count(&in->type));
    for (size_t k = 0; k < graph->inputs.n; k++) {
      const tn_input_attributes *a = tn_graph_maker(graph, graph->inputs.v[k])->attributes;
      if (tn_text_equal(a->name, in->name)) f->seen[graph->inputs.v[k]] = seen;
    }
  }
  return TN_OK;
}

static tn_status scan_state(tn_nonfinite_search *f) {
  const tn_graph *graph = f->program->cover->graph;
  for (size_t i = 0; i < graph->states.n; i++) {
    const tn_gstate *state = &graph->states.v[i];
    if (state->value == 0 || !tn_dtype_is_float(state->type.dtype)) continue;
    size_t bytes = tn_type_bytes(&state->type);
    TN_TRY(reserve_bytes(f, (int64_t)bytes));
    TN_TRY(tn_executor_read(f->executor, state->path, f->bytes, bytes));
    f->seen[state->value] = tn_scan_elements(state->type.dtype, f->bytes, tn_type_count(&state->type));
  }
  return TN_OK;
}

static tn_status search_begin(void *context, const tn_bound_program *bound, int32_t slot) {
  tn_nonfinite_search *f = context;
  forget_run(f);
  if (f->found != 0) return TN_OK;
  f->seen = tn_alloc(f->executor->env, tn_size_mul(bound->program->cover->graph->values.n, sizeof *f->seen));
  if (f->seen == NULL) return TN_ENOMEM;
  f->program = bound->program;
  f->runs++;
  TN_TRY(scan_inputs(f, slot));
  return scan_state(f);
}

/* The host address of a result, which is copied to the host if need be. */
static tn_status fetch_result(tn_nonfinite_search *f, const tn_view *view, bool on_host, int64_t bytes,
                              const void **data) {
  tn_device *device = f->executor->device;
  *data = view->data;
  if (on_host || f->executor->host_addressable || bytes == 0) return TN_OK;
  if (reserve_bytes(f, bytes) != TN_OK) return tn_error_move(&device->env, f->executor->env);
  void *stream = device->streams[TN_STREAM_COPY_OUT];
  TN_TRY(device->backend->copy(&device->env, stream, TN_COPY_TO_HOST, f->bytes, view->data, (uint64_t)bytes));
  *data = f->bytes;
  return tn_device_wait_stream(device, stream);
}

static tn_status search_scan_results(void *context, tn_bound_step *b) {
  tn_nonfinite_search *f = context;
  const tn_step *step = b->step;
  bool on_host = tn_device_of(f->executor, step) != f->executor->device;
  if (f->seen == NULL) return TN_OK;
  for (int32_t i = 0; i < step->n_out; i++) {
    const tn_view *view = &b->host.pub.out[i];
    if (!tn_dtype_is_float(view->type.dtype)) continue;
    int64_t bytes = tn_layout_bytes(&view->type, &view->layout);
    const void *data;
    TN_TRY(fetch_result(f, view, on_host, bytes, &data));
    f->seen[step->group->out[i]] =
        tn_scan_elements(view->type.dtype, data, bytes / (int64_t)tn_dtype_size(view->type.dtype));
  }
  return TN_OK;
}

/* ---- going back ---- */

static tn_val worst_value(const tn_nonfinite_search *f, const tn_val *values, int32_t n);

/* A copy between device and host, which no observer sees. */
static bool is_transferred(const tn_nonfinite_search *f, const tn_gnode *node) {
  const tn_cover *cover = f->program->cover;
  return node->group >= 0 && tn_kernel_is_transfer(cover->groups.v[node->group].kernel);
}

/* Views, packs and such copies are not scanned: they have the worst kind of their operands. */
static int32_t value_kind(const tn_nonfinite_search *f, tn_val v) {
  const tn_gnode *node = tn_graph_maker(f->program->cover->graph, v);
  bool scanned = tn_nonfinite_is_launched(node) && !is_transferred(f, node);
  if (f->seen[v].kind != TN_SCAN_FINITE || scanned || node->n_in == 0) return f->seen[v].kind;
  tn_val worst = worst_value(f, node->in, node->n_in);
  return worst != 0 ? value_kind(f, worst) : TN_SCAN_FINITE;
}

/* The first value of the worst kind; 0: all are finite. */
static tn_val worst_value(const tn_nonfinite_search *f, const tn_val *values, int32_t n) {
  tn_val worst = 0;
  int32_t kind = TN_SCAN_FINITE;
  for (int32_t i = 0; i < n; i++) {
    int32_t this = values[i] != 0 ? value_kind(f, values[i]) : TN_SCAN_FINITE;
    if (this <= kind) continue;
    kind = this;
    worst = values[i];
  }
  return worst;
}

/* The step that computes a value; -1: an input, state, or view. */
static int32_t maker_step(const tn_nonfinite_search *f, tn_val v) {
  const tn_program *p = f->program;
  for (int32_t i = 0; i < tn_program_all_steps(p); i++)
    for (int32_t k = 0; k < p->steps[i].group->n_out; k++)
      if (p->steps[i].group->out[k] == v) return i;
  return -1;
}

/* Goes back from a value that is not finite to one whose operands are finite. *step: the step that computes
 * it; -1: an input or state. */
static tn_val go_back(const tn_nonfinite_search *f, tn_val v, int32_t *step) {
  for (;;) {
    const tn_gnode *node = tn_graph_maker(f->program->cover->graph, v);
    *step = maker_step(f, v);
    tn_val worse = 0;
    if (*step >= 0)
      worse = worst_value(f, f->program->steps[*step].group->in, f->program->steps[*step].group->n_in);
    else if (!tn_nonfinite_is_launched(node))
      worse = worst_value(f, node->in, node->n_in);
    if (worse == 0) return v;
    v = worse;
  }
}

/* The place of a step in the order of launches: constants come before the values of -1, states and inputs. */
static int32_t launch_order(const tn_program *p, int32_t step) {
  return step < p->n_steps ? step : step - tn_program_all_steps(p) - 1;
}

/* Goes back from one end of the program and keeps the earliest value found. */
static void search_from_end(const tn_nonfinite_search *f, tn_val end, tn_val *found, int32_t *at) {
  int32_t step;
  if (value_kind(f, end) == TN_SCAN_FINITE) return;
  tn_val v = go_back(f, end, &step);
  if (*found != 0 && launch_order(f->program, step) >= launch_order(f->program, *at)) return;
  *found = v;
  *at = step;
}

/* The ends of a program are its outputs, the state that it writes, and the operands of all_finite, whose
 * result may suppress the write. */
static tn_val find_source(const tn_nonfinite_search *f, int32_t *at) {
  const tn_graph *graph = f->program->cover->graph;
  tn_val found = 0;
  for (size_t i = 0; i < graph->outputs.n; i++) search_from_end(f, graph->outputs.v[i].value, &found, at);
  for (size_t i = 0; i < graph->commits.n; i++) search_from_end(f, graph->commits.v[i].value, &found, at);
  for (size_t i = 0; i < graph->nodes.n; i++)
    if (tn_text_equal(graph->nodes.v[i].op->item.name, "all_finite"))
      search_from_end(f, graph->nodes.v[i].in[0], &found, at);
  return found;
}

static tn_status search_end(void *context, const tn_bound_program *bound) {
  tn_nonfinite_search *f = context;
  int32_t step = -1;
  tn_val v = f->program == bound->program ? find_source(f, &step) : 0;
  if (v != 0) {
    f->position = f->runs * ((int64_t)1 << 32) + launch_order(f->program, step);
    tn_nonfinite_describe(f, v, step);
  }
  forget_run(f);
  /* other ranks go on launch by launch, and collectives are replayed on all ranks or on none */
  if (f->found != 0 && f->executor->device->comm == NULL) f->executor->observer = NULL;
  return f->text.failed ? TN_ENOMEM : TN_OK;
}

/* ---- life ---- */

tn_status tn_nonfinite_search_create(tn_executor *executor, tn_nonfinite_search **out) {
  *out = NULL;
  tn_nonfinite_search *f = tn_alloc(executor->env, sizeof *f);
  if (f == NULL) return TN_ENOMEM;
  f->executor = executor;
  f->text = tn_text_new(executor->env);
  f->observer = (tn_run_observer){f, search_begin, NULL, search_scan_results, search_end};
  executor->observer = &f->observer;
  *out = f;
  return TN_OK;
}

void tn_nonfinite_search_destroy(tn_nonfinite_search *f) {
  if (f == NULL) return;
  tn_env *env = f->executor->env;
  f->executor->observer = NULL;
  forget_run(f);
  tn_release(env, f->bytes);
  tn_text_free(&f->text);
  tn_release(env, f);
}

int32_t tn_nonfinite_search_result(const tn_nonfinite_search *f, const char **text, int64_t *position) {
  *text = f->text.v != NULL ? f->text.v : "";
  *position = f->position;
  return f->found;
}

/* core/train/programs/plan_report.c: tn_run_plan and tn_run_summary: what a run would do, from the programs
 * alone. */
#include "core/train/result.h"

#include <string.h>

#include "core/train/distributed/devices.h"

#include "core/compile/output/report.h"

/* Batches for planning: those of the data, or 1 for a configuration without any. */
static tn_status plan_batches(tn_run *run, const tn_device *device, bool trains,
                              tn_program_request *request) {
  const tn_data_setting *data = run->settings.data;
  request->batch[trains ? TN_PROGRAM_STEP : TN_PROGRAM_PREDICT] = 1;
  if (!trains) return TN_OK;
  TN_TRY(tn_devices_count(run, device));
  if (data[TN_SPLIT_TRAIN].given) TN_TRY(tn_run_share(run, TN_SPLIT_TRAIN, &request->batch[TN_PROGRAM_STEP]));
  if (data[TN_SPLIT_VALID].given) TN_TRY(tn_run_share(run, TN_SPLIT_VALID, &request->batch[TN_PROGRAM_EVAL]));
  return TN_OK;
}

static bool has_loss(const tn_run *run) {
  tn_section *model = tn_ini_section(&run->ini, "model");
  return model && tn_section_key(model, "loss") != NULL;
}

/* Memory of the run as a whole. Beside the peak stands what no plan can go below: everything but the
 * arena, and the bytes that are alive at once. */
static void add_memory(const tn_program_set *set, int32_t slots, bool direct, json_t *json) {
  int64_t arena = 0, bound = 0, peak = tn_executor_planned_bytes(set->map, set->list, set->n, slots, direct);
  for (int32_t i = 0; i < set->n; i++) {
    if (set->list[i]->arena_bytes > arena) arena = set->list[i]->arena_bytes;
    if (set->list[i]->bound_bytes > bound) bound = set->list[i]->bound_bytes;
  }
  json_object_set_new(json, "peak_bytes", json_integer(peak));
  json_object_set_new(json, "bound_bytes", json_integer(peak - arena + bound));
  json_object_set_new(json, "arena_bytes", json_integer(arena));
  json_object_set_new(json, "arena_bound_bytes", json_integer(bound));
  json_object_set_new(json, "state_bytes", json_integer(tn_state_map_bytes(set->map)));
}

static const char *state_kind(int32_t what) {
  static const char *const kinds[] = {"", "param", "buffer", "slot", "derived", "host", "scratch"};
  return kinds[what];
}

/* How it lies in memory, where that is not row-major. */
static void add_layout(const tn_placement *state, tn_env *env, json_t *json) {
  tn_text text = tn_text_new(env);
  if (!state->layout.set || tn_layout_is_row_major(&state->layout, state->type.rank)) return;
  tn_layout_print(&state->layout, state->type.rank, &text);
  if (!text.failed) json_object_set_new(json, "layout", json_string(text.v));
  tn_text_free(&text);
}

/* Every state with its logical shape, as checkpoints name it; regions ("@param.f32") are not in files. */
static json_t *describe_states(const tn_state_map *map) {
  json_t *states = json_array();
  for (size_t i = 0; i < map->states.n; i++) {
    const tn_placement *state = &map->states.v[i];
    if (state->path[0] == '@') continue;
    json_t *shape = json_array();
    for (int32_t d = 0; d < state->type.rank; d++)
      json_array_append_new(shape, json_integer(state->type.dims[d]));
    json_t *one = json_pack("{s:s, s:s, s:s, s:o}", "path", state->path, "kind", state_kind(state->what),
                            "dtype", tn_dtype_name(state->type.dtype), "shape", shape);
    add_layout(state, map->env, one);
    json_array_append_new(states, one);
  }
  return states;
}

/* Blocks of which something is made again so that it need not be kept; [run] memory_limit. */
static void add_recomputed(const tn_cover *cover, json_t *json) {
  json_t *list = json_array();
  double flops = 0;
  for (int32_t i = 0; i < cover->n_recomputed; i++) {
    const tn_recomputed *r = &cover->recomputed[i];
    flops += r->flops;
    json_array_append_new(list, json_pack("{s:s, s:I, s:f}", "block", r->block, "bytes", (json_int_t)r->bytes,
                                          "flops", r->flops));
  }
  json_object_set_new(json, "recomputed", list);
  json_object_set_new(json, "recomputed_flops", json_real(flops));
}

tn_status tn_plan_report(tn_run *run, const tn_device *device, const tn_program_set *set, int32_t slots,
                         json_t **json) {
  bool trains = set->programs[TN_PROGRAM_STEP] != NULL;
  const tn_program *program = set->programs[trains ? TN_PROGRAM_STEP : TN_PROGRAM_PREDICT];
  tn_traffic traffic = tn_devices_traffic(run, set);
  TN_TRY(tn_program_report(program, json));
  add_recomputed(program->cover, *json);
  add_memory(set, slots, device->target.properties.host_addressable != 0, *json);
  json_object_set_new(*json, "parameters", json_integer(tn_programs_parameters(set)));
  json_object_set_new(*json, "states", describe_states(set->map));
  json_object_set_new(*json, "backend", json_string(device->backend->item.name));
  json_object_set_new(*json, "devices", json_integer(tn_run_ranks(run)));
  json_object_set_new(*json, "collectives", json_integer(traffic.collectives));
  json_object_set_new(*json, "collective_bytes", json_integer(traffic.bytes));
  return TN_OK;
}

static tn_status report(tn_run *run, const tn_device *device, const tn_program_set *set, char **text) {
  json_t *json = NULL;
  TN_TRY(tn_plan_report(run, device, set, tn_run_slots(run), &json));
  return tn_json_take(run, json, text);
}

/* `name` must be a pass, or "" or NULL. */
static tn_status check_pass(tn_run *run, const char *name) {
  const char *const *const lists[] = {tn_graph_passes, tn_compile_passes};
  tn_text names = tn_text_new(&run->env);
  bool known = !name || !*name;
  for (int l = 0; l < 2; l++)
    for (int32_t i = 0; lists[l][i]; i++) {
      known = known || tn_text_equal(name, lists[l][i]);
      tn_text_addf(&names, "%s%s", names.n ? ", " : "", lists[l][i]);
    }
  tn_status status = known ? TN_OK
                           : tn_failf(&run->env, TN_EINVAL, "no pass is called '%s'; there are %s", name,
                                      names.v ? names.v : "none");
  tn_text_free(&names);
  return status;
}

tn_status tn_run_plan(tn_run *run, const char *dump_after, char **json, char **dump) {
  tn_text text = tn_text_new(&run->env);
  tn_compile_options options = {.dump_after = dump_after, .dump = &text};
  tn_program_request request = {.dump = dump ? &options : NULL};
  tn_program_set set = {.map = NULL};
  tn_device *device = NULL;
  *json = NULL;
  if (dump) *dump = NULL;
  run->planning = true;
  tn_status status = check_pass(run, dump_after);
  if (status == TN_OK) status = tn_run_device(run, &device);
  if (status == TN_OK) status = plan_batches(run, device, has_loss(run), &request);
  if (status == TN_OK) status = tn_programs_build(run, &device->target, &request, &set);
  if (status == TN_OK) status = report(run, device, &set, json);
  if (status == TN_OK && dump) {
    *dump = tn_text_take(&text);
    if (!*dump) status = TN_ENOMEM;
  }
  tn_text_free(&text);
  tn_programs_free(run, &set);
  tn_device_destroy(device);
  run->ranks = 0;
  run->planning = false;
  return status;
}

/* ---- summary ---- */

/* One row: a layer path, its last op, the result's shape, parameters below the path, flops. */
typedef struct tn_summary_row {
  const char *layer, *op;
  tn_type out;
  double flops;
} tn_summary_row;

static double flops_of(const tn_graph *g, const tn_gnode *node) {
  const tn_type *in[256];
  tn_type out[16];
  if (node->n_in > 256 || node->n_out > 16) return 0.0;
  for (int32_t i = 0; i < node->n_in; i++) in[i] = node->in[i] ? tn_graph_type(g, node->in[i]) : NULL;
  for (int32_t i = 0; i < node->n_out; i++) out[i] = *tn_graph_type(g, node->first_out + (tn_val)i);
  tn_node seen = {sizeof seen, node->n_in, node->n_out, node->op->item.name, node->attributes, in, out};
  tn_cost cost = {.struct_size = sizeof cost,
                  .flops = node->n_out > 0 ? (double)tn_type_count(&out[0]) : 0.0};
  if (node->op->cost) node->op->cost(&seen, &cost);
  return cost.flops;
}

static json_t *shape_json(const tn_type *type) {
  char text[256];
  int n = snprintf(text, sizeof text, "%s[", tn_dtype_name(type->dtype));
  for (int32_t i = 0; i < type->rank && n < (int)sizeof text - 24; i++)
    n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld", i ? ", " : "", (long long)type->dims[i]);
  snprintf(text + n, sizeof text - (size_t)n, "]");
  return json_string(text);
}

static int64_t parameters_of(const tn_graph *g, const char *layer) {
  size_t length = strlen(layer);
  int64_t count = 0;
  for (size_t i = 0; length > 0 && i < g->states.n; i++) {
    const tn_gstate *state = &g->states.v[i];
    const char *dot = strrchr(state->path, '.');
    bool inside = dot && (size_t)(dot - state->path) == length && strncmp(state->path, layer, length) == 0;
    if (inside && state->what == TN_STATE_PARAM) count += tn_type_count(&state->type);
  }
  return count;
}

static void finish_row(const tn_graph *g, const tn_summary_row *row, json_t *layers) {
  const char *at = strchr(row->layer, '@'); /* a line without a name */
  char name[256];
  snprintf(name, sizeof name, "%.*s", at ? (int)(at - row->layer) : (int)strlen(row->layer), row->layer);
  json_array_append_new(layers, json_pack("{s:s, s:s, s:o, s:I, s:f}", "name", name, "op", row->op, "output",
                                          shape_json(&row->out), "parameters",
                                          (json_int_t)parameters_of(g, row->layer), "flops", row->flops));
}

static json_t *summarize(const tn_graph *g) {
  json_t *layers = json_array();
  double total = 0.0;
  int64_t parameters = 0;
  tn_summary_row row = {.layer = NULL};
  for (size_t i = 0; i < g->nodes.n; i++) {
    const tn_gnode *node = &g->nodes.v[i];
    if (tn_text_equal(node->op->item.name, "input") || tn_text_equal(node->op->item.name, "state")) continue;
    if (!row.layer || !tn_text_equal(row.layer, node->layer)) {
      if (row.layer) finish_row(g, &row, layers);
      row = (tn_summary_row){.layer = node->layer};
    }
    row.op = node->op->item.name;
    row.out = *tn_graph_type(g, node->first_out);
    row.flops += flops_of(g, node);
    total += flops_of(g, node);
  }
  if (row.layer) finish_row(g, &row, layers);
  for (size_t i = 0; i < g->states.n; i++)
    if (g->states.v[i].what == TN_STATE_PARAM) parameters += tn_type_count(&g->states.v[i].type);
  return json_pack("{s:o, s:I, s:f}", "layers", layers, "parameters", (json_int_t)parameters, "flops", total);
}

tn_status tn_run_summary(tn_run *run, char **json) {
  tn_model_request request = {.ini = &run->ini,
                              .registry = run->registry,
                              .ops = run->ops,
                              .batch = 1,
                              .seed = (uint64_t)run->settings.run.seed,
                              .emit = run->emit,
                              .user = run->emit_user};
  tn_model model;
  *json = NULL;
  TN_TRY(tn_model_build(&run->env, &request, &model));
  tn_status status = tn_json_take(run, summarize(model.graph), json);
  tn_model_free(&model);
  return status;
}

/* tests/integration/sim/scenario.c: the program made by hand, and playing scenarios. */
#include "scenario.h"

#include "core/plugin/handles.h"
#include "tests/support/required_kernels.h"

/* ---- a program by hand, on two streams:
 *   y = x + 1 (compute)   z = y + y (comm)   s = s + z in place (compute)   out = s + z (comm) ---- */

static tn_status sum_launch(tn_launch *l) {
  const float *x = l->in[0].data, *y = l->in[1].data;
  float *z = l->out[0].data;
  if (l->workspace != NULL) memset(l->workspace, 1, (size_t)l->workspace_bytes);
  for (int32_t i = 0; i < SCENARIO_N; i++) z[i] = x[i] + (y != NULL ? y[i] : 1);
  return TN_OK;
}

static const tn_kernel kernel = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "sum", "for tests"), .family = "cpu", .launch = sum_launch};
static const tn_op op = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "add", "for tests")};
static tn_type row = {TN_F32, 1, {SCENARIO_N}};

static tn_operand at(int32_t base, int64_t offset) {
  return (tn_operand){row, tn_layout_row_major(1), {base, 0, offset}};
}

static void write_steps(scenario_program *h) {
  static const char *const names[4] = {"y", "z", "s", "out"};
  for (uint32_t i = 0; i < 4; i++) {
    h->nodes[i] = (tn_gnode){.op = &op, .layer = "", .where = ""};
    h->numbers[i] = i;
    h->groups[i] = (tn_group){.kernel = &kernel,
                              .family = "cpu",
                              .nodes = &h->numbers[i],
                              .n_nodes = 1,
                              .n_in = 2,
                              .n_out = 1,
                              .role = i % 2 == 1 ? TN_STREAM_COMM : TN_STREAM_COMPUTE,
                              .choice = {.capturable = true}};
    h->steps[i] = (tn_step){&h->groups[i], names[i], h->in[i], h->out[i], 2, 1, TN_AWAITS_NONE, 0};
    if (i == 2) h->steps[i].awaits.of[TN_STREAM_COMM] = 1;
  }
  h->in[0][0] = at(TN_BASE_SLOT, 0), h->in[0][1] = at(TN_BASE_NONE, 0), h->out[0][0] = at(TN_BASE_ARENA, 0);
  h->in[1][0] = h->in[1][1] = at(TN_BASE_ARENA, 0), h->out[1][0] = at(TN_BASE_ARENA, 64);
  h->in[2][0] = h->out[2][0] = at(TN_BASE_REGION, 64), h->in[2][1] = at(TN_BASE_ARENA, 64);
  h->in[3][0] = at(TN_BASE_REGION, 64), h->in[3][1] = at(TN_BASE_ARENA, 64);
  h->out[3][0] = at(TN_BASE_OUTPUT, 0);
  h->groups[2].choice.workspace_bytes = 16;
  h->steps[2].workspace_offset = 128;
}

static void write_program(scenario_program *h) {
  *h = (scenario_program){.segments = {{.first = 0, .n = 4, .awaits = {{-1, -1, -1, 3}}}}};
  write_steps(h);
  h->input = (tn_binding){"x", row, 0};
  h->output = (tn_binding){"out", row, 0};
  h->graph = (tn_graph){.nodes = {h->nodes, 4, 4}};
  h->cover = (tn_cover){.graph = &h->graph};
  h->program = (tn_program){.name = "step",
                            .cover = &h->cover,
                            .steps = h->steps,
                            .n_steps = 4,
                            .segments = h->segments,
                            .n_segments = 1,
                            .inputs = &h->input,
                            .n_inputs = 1,
                            .outputs = &h->output,
                            .n_outputs = 1,
                            .arena_bytes = 192,
                            .slot_bytes = 64,
                            .output_bytes = 64};
}

void scenario_program_use_fallback(scenario_program *h, bool fetches) {
  h->groups[1].fallback = "for tests";
  h->groups[1].role = TN_STREAM_COMPUTE;
  h->steps[2].awaits.of[TN_STREAM_COMM] = -1;
  h->in[1][0] = h->in[1][1] = at(TN_BASE_HOST, 0);
  if (!fetches) {
    h->in[1][0] = at(TN_BASE_SLOT, 0), h->in[1][1] = at(TN_BASE_NONE, 0);
    h->in[3][1] = at(TN_BASE_ARENA, 0);
  }
  h->out[1][0] = at(TN_BASE_HOST, 64);
  h->fetched = (tn_transfer){0, 1, {TN_BASE_ARENA, 0, 0}, 0, 4 * SCENARIO_N};
  h->returned = (tn_transfer){0, 1, {TN_BASE_ARENA, 0, 64}, 64, 4 * SCENARIO_N};
  h->segments[0] = (tn_segment){.first = 0, .n = 1, .awaits = TN_AWAITS_NONE};
  h->segments[1] = (tn_segment){.first = 1,
                                .n = 1,
                                .fallback = true,
                                .awaits = TN_AWAITS_NONE,
                                .out = &h->fetched,
                                .in = &h->returned,
                                .n_out = fetches,
                                .n_in = 1};
  h->segments[2] = (tn_segment){.first = 2, .n = 2, .awaits = {{-1, -1, -1, 3}}};
  h->program.n_segments = 3;
  h->program.host_bytes = 128;
}

void scenario_program_shorten(scenario_program *h) {
  h->in[1][0] = at(TN_BASE_ARENA, 0), h->in[1][1] = at(TN_BASE_SLOT, 0);
  h->out[1][0] = at(TN_BASE_OUTPUT, 0);
  h->program.n_steps = h->segments[0].n = 2;
  h->segments[0].awaits.of[TN_STREAM_COMM] = 1;
}

/* ---- scenarios ---- */

static void keep_first_warning(void *context, int32_t level, const char *line) {
  scenario *s = context;
  const char *captures = strstr(line, " captured part");
  if (captures != NULL) {
    snprintf(s->captures, sizeof s->captures, "%s", line);
    return;
  }
  if (level <= TN_LOG_WARN && s->message[0] == '\0') snprintf(s->message, sizeof s->message, "%s", line);
}

static tn_status configure(tn_env *env, void *context, tn_options *options) {
  const scenario *s = context;
  if (!tn_text_equal(options->item->name, "sim")) return TN_OK;
  tn_status status = tn_options_set_text(env, options, "drop", s->drop);
  return status == TN_OK ? tn_options_set_text(env, options, "order", s->order) : status;
}

static void make_map(scenario *s) {
  int32_t region;
  tn_gstate state = {.path = "s", .type = row, .what = TN_STATE_BUFFER, .init = "zeros", .where = ""};
  assert_int_equal(tn_state_map_create(&s->env, &s->map), TN_OK);
  assert_int_equal(tn_state_map_region(s->map, "state.f32", TN_F32, &region), TN_OK);
  assert_int_equal(tn_state_map_add(s->map, &state, region, 16), TN_OK);
}

REQUIRED_KERNELS("cpu"); /* which both backends accept */

static void begin(scenario *s, const scenario_kind *t) {
  static const char *const name = "sim";
  tn_error_record_init_root(&s->env, &s->record, &tn_host_api);
  s->record.sink = (tn_log_sink){s, keep_first_warning, TN_LOG_WARN};
  write_program(&s->hand);
  if (t->change != NULL) t->change(&s->hand);
  make_map(s);
  const tn_item *items[] = {&tn_sim_backend.item, REQUIRED_ITEMS,
                            t->fallback != NULL ? &t->fallback->item : NULL, NULL};
  memcpy(s->items, items, sizeof items);
  s->plugin = (tn_plugin){sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "late", "1", "MIT",
                          TN_BUILD_TEXT,     s->items};
  assert_int_equal(tn_registry_create(&s->env, "", &s->registry), TN_OK);
  assert_int_equal(tn_registry_add(s->registry, &s->env, &s->plugin, ""), TN_OK);
  tn_device_request request = {.names = &name,
                               .n_names = 1,
                               .configure = configure,
                               .context = s,
                               .fallback = TN_FALLBACK_ALLOW,
                               .reserve = t->fallback != NULL ? t->fallback->item.name : NULL,
                               .uncaptured = s->uncaptured};
  if (tn_device_create(&s->env, s->registry, &request, &s->device) != TN_OK)
    fail_msg("%s", tn_error_text(&s->env));
}

bool scenario_ok(scenario *s, tn_status status) {
  if (s->status == TN_OK && status != TN_OK)
    snprintf(s->message, sizeof s->message, "%s", tn_error_text(&s->env));
  if (s->status == TN_OK) s->status = status;
  return s->status == TN_OK;
}

void scenario_fill(scenario *s, int32_t slot, float value) {
  float *x = tn_executor_input(s->executor, 0, slot, "x");
  for (int32_t i = 0; i < SCENARIO_N; i++) x[i] = value + (float)i;
}

bool scenario_run_both(scenario *s) {
  return scenario_ok(s, tn_executor_run_several(s->executor, 0, 0, SCENARIO_SLOTS));
}

bool scenario_run(scenario *s, int32_t slot) { return scenario_ok(s, tn_executor_run(s->executor, 0, slot)); }

bool scenario_collect(scenario *s, int32_t slot) {
  if (!scenario_ok(s, tn_executor_slot_wait(s->executor, slot))) return false;
  memcpy(s->results + s->n, tn_executor_output(s->executor, 0, slot, "out"), sizeof(float) * SCENARIO_N);
  s->n += SCENARIO_N;
  return true;
}

bool scenario_read_state(scenario *s) {
  bool ok = scenario_ok(s, tn_executor_read(s->executor, "s", s->read, sizeof s->read));
  memcpy(s->results + s->n, s->read, sizeof s->read);
  s->n += SCENARIO_N;
  return ok;
}

bool scenario_write_state(scenario *s, float value) {
  for (int32_t i = 0; i < SCENARIO_N; i++) s->written[i] = value;
  bool ok = scenario_ok(s, tn_executor_write(s->executor, "s", s->written, sizeof s->written));
  for (int32_t i = 0; i < SCENARIO_N; i++) s->written[i] = -1;
  return ok;
}

/* Counts the events that a drop may name: those before the final waits. */
static void count_events(scenario *s) {
  for (int32_t i = 0; i < TN_SIM_FAULTS; i++)
    s->seen[i] = atomic_load(&((tn_sim_device *)s->device->device)->seen[i]);
}

/* Waits for every stream and keeps the first failure: destroying the executor ignores failures. */
static void wait_for_streams(scenario *s) {
  for (int32_t role = 0; role < TN_STREAMS && s->status == TN_OK; role++) {
    s->status = s->device->backend->stream_wait(&s->device->env, s->device->streams[role]);
    if (s->status != TN_OK) snprintf(s->message, sizeof s->message, "%s", tn_error_text(&s->device->env));
  }
}

static void end(scenario *s) {
  tn_caller_program_destroy(s->caller_program);
  tn_executor_destroy(s->executor);
  tn_device_destroy(s->device);
  tn_state_map_destroy(s->map);
  tn_registry_destroy(s->registry);
}

bool scenario_create_executor(scenario *s) {
  tn_program *const programs[] = {&s->hand.program};
  return scenario_ok(
      s, tn_executor_create(&s->env, s->device, s->map, programs, 1, SCENARIO_SLOTS, &s->executor));
}

scenario *scenario_play(const scenario_kind *t, const char *order, const char *drop, bool uncaptured) {
  scenario *s = calloc(1, sizeof *s);
  assert_non_null(s);
  s->order = order;
  s->drop = drop;
  s->uncaptured = uncaptured;
  begin(s, t);
  if (t->setup(s)) t->act(s);
  count_events(s);
  if (!t->ends_early) wait_for_streams(s);
  end(s);
  return s;
}

bool scenario_equal(const scenario *a, const scenario *b) {
  return a->status == b->status && a->n == b->n && a->message[0] == '\0' && b->message[0] == '\0' &&
         memcmp(a->results, b->results, sizeof(float) * (size_t)a->n) == 0;
}

/* ---- checks ---- */

void scenario_check_orders(const scenario_kind *t) {
  static const char *const orders[] = {"eager", "lazy", "random"};
  scenario *plain = scenario_play(t, "eager", "", true);
  if (plain->status != TN_OK || plain->message[0] != '\0') fail_msg("%s", plain->message);
  for (int32_t i = 0; i < plain->n; i++) assert_true(plain->results[i] > 0);
  for (int32_t i = 0; i < 6; i++) {
    scenario *other = scenario_play(t, orders[i / 2], "", i % 2 == 0);
    if (!scenario_equal(plain, other)) fail_msg("%s: %s", orders[i / 2], other->message);
    free(other);
  }
  free(plain);
}

void scenario_check_drops(const scenario_kind *t, const char *kind, int32_t which, bool uncaptured,
                          const char *idle) {
  char drop[64], names[1024] = "";
  snprintf(drop, sizeof drop, "%s:1000000", kind);
  scenario *complete = scenario_play(t, "lazy", drop, uncaptured);
  if (complete->status != TN_OK || complete->message[0] != '\0') fail_msg("%s", complete->message);
  assert_true(complete->seen[which] > 2);
  for (int64_t n = 1; n <= complete->seen[which]; n++) {
    snprintf(drop, sizeof drop, "%s:%lld ", kind, (long long)n);
    scenario *s = scenario_play(t, "lazy", drop, uncaptured);
    if (scenario_equal(complete, s) && strlen(names) + strlen(drop) < sizeof names) strcat(names, drop);
    free(s);
  }
  free(complete);
  if (strcmp(names, idle) != 0)
    fail_msg("drops without effect: '%s', expected '%s' (%s)", names, idle,
             uncaptured ? "uncaptured" : "captured");
}

void scenario_check_drops_both(const scenario_kind *t, const char *kind, int32_t which) {
  scenario_check_drops(t, kind, which, true, "");
  scenario_check_drops(t, kind, which, false, "");
}

/* tests/integration/sim/story.c: programs by hand, and stories. */
#include "story.h"

#include "core/plugin/handles.h"

/* ---- a program by hand, on two streams:
 *   y = x + 1 (compute)   z = y + y (comm)   s = s + z in place (compute)   out = s + z (comm) ---- */

static tn_status sum_launch(tn_launch *l) {
  const float *x = l->in[0].data, *y = l->in[1].data;
  float *z = l->out[0].data;
  if (l->workspace != NULL) memset(l->workspace, 1, (size_t)l->workspace_bytes);
  for (int32_t i = 0; i < STORY_N; i++) z[i] = x[i] + (y != NULL ? y[i] : 1);
  return TN_OK;
}

static const tn_kernel kernel = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "sum", "for tests"), .family = "cpu", .launch = sum_launch};
static const tn_op op = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "add", "for tests")};
static tn_type row = {TN_F32, 1, {STORY_N}};

static tn_operand at(int32_t base, int64_t offset) {
  return (tn_operand){row, tn_layout_row_major(1), {base, 0, offset}};
}

static void write_steps(story_program *h) {
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
    h->steps[i] = (tn_step){&h->groups[i], names[i], h->in[i], h->out[i], 2, 1, i == 2 ? 1 : -1, 0};
  }
  h->in[0][0] = at(TN_BASE_SLOT, 0), h->in[0][1] = at(TN_BASE_NONE, 0), h->out[0][0] = at(TN_BASE_ARENA, 0);
  h->in[1][0] = h->in[1][1] = at(TN_BASE_ARENA, 0), h->out[1][0] = at(TN_BASE_ARENA, 64);
  h->in[2][0] = h->out[2][0] = at(TN_BASE_REGION, 64), h->in[2][1] = at(TN_BASE_ARENA, 64);
  h->in[3][0] = at(TN_BASE_REGION, 64), h->in[3][1] = at(TN_BASE_ARENA, 64);
  h->out[3][0] = at(TN_BASE_OUTPUT, 0);
  h->groups[2].choice.workspace_bytes = 16;
  h->steps[2].workspace_offset = 128;
}

static void write_program(story_program *h) {
  *h = (story_program){.segments = {{.first = 0, .n = 4, .awaits = 3}}};
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

void story_program_cut(story_program *h, bool fetches) {
  h->groups[1].fallback = "for tests";
  h->groups[1].role = TN_STREAM_COMPUTE;
  h->steps[2].awaits = -1;
  h->in[1][0] = h->in[1][1] = at(TN_BASE_HOST, 0);
  if (!fetches) {
    h->in[1][0] = at(TN_BASE_SLOT, 0), h->in[1][1] = at(TN_BASE_NONE, 0);
    h->in[3][1] = at(TN_BASE_ARENA, 0);
  }
  h->out[1][0] = at(TN_BASE_HOST, 64);
  h->fetched = (tn_transfer){0, 1, {TN_BASE_ARENA, 0, 0}, 0, 4 * STORY_N};
  h->returned = (tn_transfer){0, 1, {TN_BASE_ARENA, 0, 64}, 64, 4 * STORY_N};
  h->segments[0] = (tn_segment){.first = 0, .n = 1, .awaits = -1};
  h->segments[1] = (tn_segment){.first = 1,
                                .n = 1,
                                .fallback = true,
                                .awaits = -1,
                                .out = &h->fetched,
                                .in = &h->returned,
                                .n_out = fetches,
                                .n_in = 1};
  h->segments[2] = (tn_segment){.first = 2, .n = 2, .awaits = 3};
  h->program.n_segments = 3;
  h->program.host_bytes = 128;
}

void story_program_shorten(story_program *h) {
  h->in[1][0] = at(TN_BASE_ARENA, 0), h->in[1][1] = at(TN_BASE_SLOT, 0);
  h->out[1][0] = at(TN_BASE_OUTPUT, 0);
  h->program.n_steps = h->segments[0].n = 2;
  h->segments[0].awaits = 1;
}

/* ---- a story: what a host does with an executor ---- */

static void hear(void *context, int32_t level, const char *line) {
  story *s = context;
  if (level <= TN_LOG_WARN && s->said[0] == '\0') snprintf(s->said, sizeof s->said, "%s", line);
}

static tn_status configure(tn_env *env, void *context, tn_options *options) {
  const story *s = context;
  if (!tn_text_equal(options->item->name, "sim")) return TN_OK;
  tn_status status = tn_options_set_text(env, options, "drop", s->drop);
  return status == TN_OK ? tn_options_set_text(env, options, "order", s->order) : status;
}

static void make_map(story *s) {
  int32_t region;
  tn_gstate state = {.path = "s", .type = row, .what = TN_STATE_BUFFER, .init = "zeros", .where = ""};
  assert_int_equal(tn_state_map_create(&s->env, &s->map), TN_OK);
  assert_int_equal(tn_state_map_region(s->map, "state.f32", TN_F32, &region), TN_OK);
  assert_int_equal(tn_state_map_add(s->map, &state, region, 16), TN_OK);
}

static void begin(story *s, const tale *t) {
  static const char *const name = "sim";
  tn_error_record_init_root(&s->env, &s->record, &tn_host_api);
  s->record.sink = (tn_log_sink){s, hear, TN_LOG_WARN};
  write_program(&s->hand);
  if (t->change != NULL) t->change(&s->hand);
  make_map(s);
  s->items[0] = &tn_sim_backend.item;
  s->items[1] = t->helper != NULL ? &t->helper->item : NULL;
  s->plugin = (tn_plugin){sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "late", "1", "MIT",
                          TN_BUILD_TEXT,     s->items};
  assert_int_equal(tn_registry_create(&s->env, "", &s->registry), TN_OK);
  assert_int_equal(tn_registry_add(s->registry, &s->env, &s->plugin, ""), TN_OK);
  tn_device_request request = {.names = &name,
                               .n_names = 1,
                               .configure = configure,
                               .context = s,
                               .fallback = TN_FALLBACK_ALLOW,
                               .reserve = t->helper != NULL ? t->helper->item.name : NULL,
                               .uncaptured = s->uncaptured};
  if (tn_device_create(&s->env, s->registry, &request, &s->device) != TN_OK)
    fail_msg("%s", tn_error_text(&s->env));
}

/* Goes on only while all is well; the first failure ends the story. */
bool story_well(story *s, tn_status status) {
  if (s->status == TN_OK && status != TN_OK) snprintf(s->said, sizeof s->said, "%s", tn_error_text(&s->env));
  if (s->status == TN_OK) s->status = status;
  return s->status == TN_OK;
}

void story_put(story *s, int32_t slot, float value) {
  float *x = tn_executor_input(s->executor, 0, slot, "x");
  for (int32_t i = 0; i < STORY_N; i++) x[i] = value + (float)i;
}

bool story_run(story *s, int32_t slot) { return story_well(s, tn_executor_run(s->executor, 0, slot)); }

bool story_get(story *s, int32_t slot) {
  if (!story_well(s, tn_executor_slot_wait(s->executor, slot))) return false;
  memcpy(s->results + s->n, tn_executor_output(s->executor, 0, slot, "out"), sizeof(float) * STORY_N);
  s->n += STORY_N;
  return true;
}

bool story_read_state(story *s) {
  bool ok = story_well(s, tn_executor_read(s->executor, "s", s->read, sizeof s->read));
  memcpy(s->results + s->n, s->read, sizeof s->read);
  s->n += STORY_N;
  return ok;
}

/* The buffer is the host's own again when the call returns. */
bool story_write_state(story *s, float value) {
  for (int32_t i = 0; i < STORY_N; i++) s->own[i] = value;
  bool ok = story_well(s, tn_executor_write(s->executor, "s", s->own, sizeof s->own));
  for (int32_t i = 0; i < STORY_N; i++) s->own[i] = -1;
  return ok;
}

/* What was left out until here counts. */
static void note_seen(story *s) {
  for (int32_t i = 0; i < TN_SIM_FAULTS; i++)
    s->seen[i] = atomic_load(&((tn_sim_device *)s->device->device)->seen[i]);
}

/* The executor's end does not listen to streams any more. */
static void settle(story *s) {
  for (int32_t role = 0; role < TN_STREAMS && s->status == TN_OK; role++) {
    s->status = s->device->backend->stream_wait(&s->device->env, s->device->streams[role]);
    if (s->status != TN_OK) snprintf(s->said, sizeof s->said, "%s", tn_error_text(&s->device->env));
  }
}

static void end(story *s) {
  tn_outside_destroy(s->outside);
  tn_executor_destroy(s->executor);
  tn_device_destroy(s->device);
  tn_state_map_destroy(s->map);
  tn_registry_destroy(s->registry);
}

bool story_executor(story *s) {
  tn_program *const programs[] = {&s->hand.program};
  return story_well(s,
                    tn_executor_create(&s->env, s->device, s->map, programs, 1, STORY_SLOTS, &s->executor));
}

story *story_live(const tale *t, const char *order, const char *drop, bool uncaptured) {
  story *s = calloc(1, sizeof *s);
  assert_non_null(s);
  s->order = order;
  s->drop = drop;
  s->uncaptured = uncaptured;
  begin(s, t);
  if (t->begin(s)) t->tell(s);
  note_seen(s);
  if (!t->leaves_early) settle(s);
  end(s);
  return s;
}

bool story_same(const story *a, const story *b) {
  return a->status == b->status && a->n == b->n && a->said[0] == '\0' && b->said[0] == '\0' &&
         memcmp(a->results, b->results, sizeof(float) * (size_t)a->n) == 0;
}

/* ---- what all stories are asked ---- */

void story_every_order(const tale *t) {
  static const char *const orders[] = {"eager", "lazy", "random"};
  story *plain = story_live(t, "eager", "", true);
  if (plain->status != TN_OK || plain->said[0] != '\0') fail_msg("%s", plain->said);
  for (int32_t i = 0; i < plain->n; i++) assert_true(plain->results[i] > 0);
  for (int32_t i = 0; i < 6; i++) {
    story *other = story_live(t, orders[i / 2], "", i % 2 == 0);
    if (!story_same(plain, other)) fail_msg("%s: %s", orders[i / 2], other->said);
    free(other);
  }
  free(plain);
}

void story_leave_out(const tale *t, const char *kind, int32_t which, bool uncaptured, const char *idle) {
  char drop[64], names[1024] = "";
  snprintf(drop, sizeof drop, "%s:1000000", kind);
  story *whole = story_live(t, "lazy", drop, uncaptured);
  if (whole->status != TN_OK || whole->said[0] != '\0') fail_msg("%s", whole->said);
  assert_true(whole->seen[which] > 2);
  for (int64_t n = 1; n <= whole->seen[which]; n++) {
    snprintf(drop, sizeof drop, "%s:%lld ", kind, (long long)n);
    story *s = story_live(t, "lazy", drop, uncaptured);
    if (story_same(whole, s) && strlen(names) + strlen(drop) < sizeof names) strcat(names, drop);
    free(s);
  }
  free(whole);
  if (strcmp(names, idle) != 0)
    fail_msg("nobody missed '%s', expected '%s' (%s)", names, idle, uncaptured ? "uncaptured" : "captured");
}

void story_leave_out_twice(const tale *t, const char *kind, int32_t which) {
  story_leave_out(t, kind, which, true, "");
  story_leave_out(t, kind, which, false, "");
}

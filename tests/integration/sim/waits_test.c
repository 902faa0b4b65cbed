/* The executor on a device that runs as late as it may: leaving out any one of its waits or copies is found,
 * by the device, or because the result is another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/exec/executor.h"
#include "sim.h"

enum { N = 4, SLOTS = 2, RESULTS = 64 };

/* ---- a program by hand, on two streams:
 *   y = x + 1 (compute)   z = y + y (comm)   s = s + z in place (compute)   out = s + z (comm) ---- */

static tn_status sum_launch(tn_launch *l) {
  const float *x = l->in[0].data, *y = l->in[1].data;
  float *z = l->out[0].data;
  if (l->workspace != NULL) memset(l->workspace, 1, (size_t)l->workspace_bytes);
  for (int32_t i = 0; i < N; i++) z[i] = x[i] + (y != NULL ? y[i] : 1);
  return TN_OK;
}

static const tn_kernel kernel = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "sum", "for tests"), .family = "cpu", .launch = sum_launch};
static const tn_op op = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "add", "for tests")};
static tn_type row = {TN_F32, 1, {N}};

typedef struct by_hand {
  tn_gnode nodes[4];
  uint32_t numbers[4];
  tn_graph graph;
  tn_cover cover;
  tn_group groups[4];
  tn_operand in[4][2], out[4][1];
  tn_step steps[4];
  tn_segment whole;
  tn_binding input, output;
  tn_program program;
} by_hand;

static tn_operand at(int32_t base, int64_t offset) {
  return (tn_operand){row, tn_layout_row_major(1), {base, 0, offset}};
}

static void write_steps(by_hand *h) {
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
    h->steps[i] = (tn_step){&h->groups[i], names[i], h->in[i], h->out[i], 2, 1, 0};
  }
  h->in[0][0] = at(TN_BASE_SLOT, 0), h->in[0][1] = at(TN_BASE_NONE, 0), h->out[0][0] = at(TN_BASE_ARENA, 0);
  h->in[1][0] = h->in[1][1] = at(TN_BASE_ARENA, 0), h->out[1][0] = at(TN_BASE_ARENA, 64);
  h->in[2][0] = h->out[2][0] = at(TN_BASE_REGION, 64), h->in[2][1] = at(TN_BASE_ARENA, 64);
  h->in[3][0] = at(TN_BASE_REGION, 64), h->in[3][1] = at(TN_BASE_ARENA, 64);
  h->out[3][0] = at(TN_BASE_OUTPUT, 0);
  h->groups[2].choice.workspace_bytes = 16;
  h->steps[2].workspace_offset = 128;
}

static void write_program(by_hand *h) {
  *h = (by_hand){.whole = {.first = 0, .n = 4}};
  write_steps(h);
  h->input = (tn_binding){"x", row, 0};
  h->output = (tn_binding){"out", row, 0};
  h->graph = (tn_graph){.nodes = {h->nodes, 4, 4}};
  h->cover = (tn_cover){.graph = &h->graph};
  h->program = (tn_program){.name = "step",
                            .cover = &h->cover,
                            .steps = h->steps,
                            .n_steps = 4,
                            .segments = &h->whole,
                            .n_segments = 1,
                            .inputs = &h->input,
                            .n_inputs = 1,
                            .outputs = &h->output,
                            .n_outputs = 1,
                            .arena_bytes = 192,
                            .slot_bytes = 64,
                            .output_bytes = 64};
}

/* ---- a story: what a host does with an executor ---- */

typedef struct story {
  tn_env env;
  tn_slot slot;
  tn_registry *registry;
  tn_state_map *map;
  tn_device *device;
  tn_executor *executor;
  by_hand hand;
  const char *drop, *order;
  bool uncaptured;
  float results[RESULTS], own[N], read[N];
  int32_t n;
  tn_status status;
  char said[2048];
  int64_t seen[TN_SIM_FAULTS]; /* before the end, which waits for all streams */
} story;

static void hear(void *context, int32_t level, const char *line) {
  story *s = context;
  if (level <= TN_LOG_WARN && s->said[0] == '\0') snprintf(s->said, sizeof s->said, "%s", line);
}

static tn_status configure(tn_env *env, void *context, tn_options *options) {
  const story *s = context;
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

static void begin(story *s) {
  static const tn_item *const items[] = {&tn_sim_backend.item, NULL};
  static const tn_plugin plugin = {sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "late", "1", "MIT",
                                   TN_BUILD_TEXT,     items};
  static const char *const name = "sim";
  tn_slot_init(&s->env, &s->slot, NULL);
  s->slot.sink = (tn_log_sink){s, hear, TN_LOG_WARN};
  write_program(&s->hand);
  make_map(s);
  assert_int_equal(tn_registry_create(&s->env, "", &s->registry), TN_OK);
  assert_int_equal(tn_registry_add(s->registry, &s->env, &plugin, ""), TN_OK);
  tn_device_request request = {
      .names = &name, .n_names = 1, .configure = configure, .context = s, .uncaptured = s->uncaptured};
  if (tn_device_create(&s->env, s->registry, &request, &s->device) != TN_OK)
    fail_msg("%s", tn_error_text(&s->env));
}

/* Goes on only while all is well; the first failure ends the story. */
static bool well(story *s, tn_status status) {
  if (s->status == TN_OK && status != TN_OK) snprintf(s->said, sizeof s->said, "%s", tn_error_text(&s->env));
  if (s->status == TN_OK) s->status = status;
  return s->status == TN_OK;
}

static void put(story *s, int32_t slot, float value) {
  float *x = tn_executor_input(s->executor, 0, slot, "x");
  for (int32_t i = 0; i < N; i++) x[i] = value + (float)i;
}

static bool run(story *s, int32_t slot) { return well(s, tn_executor_run(s->executor, 0, slot)); }

static bool get(story *s, int32_t slot) {
  if (!well(s, tn_executor_slot_wait(s->executor, slot))) return false;
  memcpy(s->results + s->n, tn_executor_output(s->executor, 0, slot, "out"), sizeof(float) * N);
  s->n += N;
  return true;
}

static bool read_state(story *s) {
  bool ok = well(s, tn_executor_read(s->executor, "s", s->read, sizeof s->read));
  memcpy(s->results + s->n, s->read, sizeof s->read);
  s->n += N;
  return ok;
}

/* The buffer is the host's own again when the call returns. */
static bool write_state(story *s, float value) {
  for (int32_t i = 0; i < N; i++) s->own[i] = value;
  bool ok = well(s, tn_executor_write(s->executor, "s", s->own, sizeof s->own));
  for (int32_t i = 0; i < N; i++) s->own[i] = -1;
  return ok;
}

static bool create(story *s) {
  tn_program *const programs[] = {&s->hand.program};
  return well(s, tn_executor_create(&s->env, s->device, s->map, programs, 1, SLOTS, &s->executor));
}

/* Slots run again before they were waited for, so that only the device's own order keeps runs apart. */
static bool run_ahead(story *s) {
  put(s, 0, 10), put(s, 1, 20);
  for (int32_t i = 0; i < 7; i++)
    if (!run(s, i % SLOTS)) return false;
  return get(s, 1) && get(s, 0) && read_state(s);
}

/* As training does it: a slot is waited for, read, filled anew and run; meanwhile the other one runs. */
static bool take_turns(story *s) {
  for (int32_t i = 0; i < 6; i++) {
    if (i >= SLOTS && !get(s, i % SLOTS)) return false;
    put(s, i % SLOTS, (float)(100 * (i + 1)));
    if (!run(s, i % SLOTS)) return false;
  }
  return get(s, 0) && get(s, 1);
}

/* State is written and read while programs are under way. */
static bool touch_state(story *s) {
  put(s, 0, 10), put(s, 1, 20);
  if (!run(s, 0) || !run(s, 1) || !write_state(s, 1000)) return false;
  if (!run(s, 0) || !read_state(s) || !run(s, 1) || !write_state(s, 2000)) return false;
  return run(s, 1) && read_state(s);
}

/* One after the other, and every copy matters. */
static bool use_state(story *s) {
  for (int32_t i = 0; i < 4; i++) {
    put(s, i % SLOTS, (float)(100 * (i + 1)));
    if (!run(s, i % SLOTS) || !get(s, i % SLOTS) || !read_state(s) || !write_state(s, (float)(1000 + i)))
      return false;
  }
  return read_state(s);
}

static bool leave_early(story *s) { return run(s, 0); }

/* What was left out until here counts. */
static void note_seen(story *s) {
  for (int32_t i = 0; i < TN_SIM_FAULTS; i++)
    s->seen[i] = atomic_load(&((tn_sim_device *)s->device->device)->seen[i]);
}

/* The executor's end does not listen to streams any more. */
static void settle(story *s) {
  for (int32_t role = 0; role < TN_STREAMS && s->status == TN_OK; role++) {
    s->status = s->device->backend->stream_wait(s->device->streams[role], &s->device->env);
    if (s->status != TN_OK) snprintf(s->said, sizeof s->said, "%s", tn_error_text(&s->device->env));
  }
}

static void end(story *s) {
  tn_executor_destroy(s->executor);
  tn_device_destroy(s->device);
  tn_state_map_destroy(s->map);
  tn_registry_destroy(s->registry);
}

static story *live(bool (*tell)(story *s), const char *order, const char *drop, bool uncaptured) {
  story *s = calloc(1, sizeof *s);
  s->order = order;
  s->drop = drop;
  s->uncaptured = uncaptured;
  begin(s);
  if (create(s)) tell(s);
  note_seen(s);
  if (tell != leave_early) settle(s);
  end(s);
  return s;
}

static bool same(const story *a, const story *b) {
  return a->status == b->status && a->n == b->n && a->said[0] == '\0' && b->said[0] == '\0' &&
         memcmp(a->results, b->results, sizeof(float) * (size_t)a->n) == 0;
}

/* ---- cases ---- */

static void every_order_tells_the_same_story_captured_or_not(void **state) {
  (void)state;
  static const char *const orders[] = {"eager", "lazy", "random"};
  static bool (*const tales[])(story * s) = {run_ahead, take_turns, touch_state, use_state};
  for (int32_t t = 0; t < 4; t++) {
    story *plain = live(tales[t], "eager", "", true);
    if (plain->status != TN_OK || plain->said[0] != '\0') fail_msg("%s", plain->said);
    for (int32_t i = 0; i < plain->n; i++) assert_true(plain->results[i] > 0);
    for (int32_t i = 0; i < 6; i++) {
      story *other = live(tales[t], orders[i / 2], "", i % 2 == 0);
      if (!same(plain, other)) fail_msg("%s, tale %d: %s", orders[i / 2], (int)t, other->said);
      free(other);
    }
    free(plain);
  }
}

/* Leaves out one after the other of a kind, up to the last that happened before the end. */
static void leave_out(bool (*tell)(story *s), const char *kind, int32_t which, bool uncaptured) {
  char drop[64], names[512] = "";
  snprintf(drop, sizeof drop, "%s:1000000", kind);
  story *whole = live(tell, "lazy", drop, uncaptured);
  if (whole->status != TN_OK || whole->said[0] != '\0') fail_msg("%s", whole->said);
  assert_true(whole->seen[which] > 2);
  for (int64_t n = 1; n <= whole->seen[which]; n++) {
    snprintf(drop, sizeof drop, "%s:%lld ", kind, (long long)n);
    story *s = live(tell, "lazy", drop, uncaptured);
    if (same(whole, s) && strlen(names) + strlen(drop) < sizeof names) strcat(names, drop);
    free(s);
  }
  free(whole);
  if (names[0] != '\0') fail_msg("nobody missed %s", names);
}

static void leave_out_twice(bool (*tell)(story *s), const char *kind, int32_t which) {
  leave_out(tell, kind, which, true);
  leave_out(tell, kind, which, false);
}

static void an_await_left_out_is_found(void **state) {
  (void)state;
  leave_out_twice(run_ahead, "await", TN_SIM_DROP_AWAIT);
}
static void a_record_left_out_is_found(void **state) {
  (void)state;
  leave_out_twice(run_ahead, "record", TN_SIM_DROP_RECORD);
}
static void a_wait_for_a_slot_left_out_is_found(void **state) {
  (void)state;
  leave_out_twice(take_turns, "wait", TN_SIM_DROP_WAIT);
}
static void a_copy_left_out_is_found(void **state) {
  (void)state;
  leave_out_twice(take_turns, "copy", TN_SIM_DROP_COPY);
}
static void a_wait_for_state_left_out_is_found(void **state) {
  (void)state;
  leave_out_twice(touch_state, "rest", TN_SIM_DROP_REST);
  leave_out_twice(use_state, "copy", TN_SIM_DROP_COPY);
}

/* The end waits for every stream. Here copies out come last. */
static void memory_is_given_back_after_the_last_copy(void **state) {
  (void)state;
  char drop[64];
  story *whole = live(leave_early, "lazy", "rest:1000000", true);
  long long before = (long long)whole->seen[TN_SIM_DROP_REST];
  snprintf(drop, sizeof drop, "rest:%lld", before + 1 + TN_STREAM_COPY_OUT);
  story *s = live(leave_early, "lazy", drop, true);
  assert_string_equal(whole->said, "");
  if (strstr(s->said, "given back before the host had waited") == NULL) fail_msg("'%s'", s->said);
  free(s);
  free(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_order_tells_the_same_story_captured_or_not),
      cmocka_unit_test(an_await_left_out_is_found),
      cmocka_unit_test(a_record_left_out_is_found),
      cmocka_unit_test(a_wait_for_a_slot_left_out_is_found),
      cmocka_unit_test(a_copy_left_out_is_found),
      cmocka_unit_test(a_wait_for_state_left_out_is_found),
      cmocka_unit_test(memory_is_given_back_after_the_last_copy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/system/system.h"
#include "core/compile/kernels/answers.h"
#include "core/plugin/handles.h"
#include "tests/support/required_kernels.h"
#include "tests/unit/exec/far.h"

enum { N = 4 };

/* ---- kernels: z = x + y, enqueued like on a device ---- */

static int prepared, released, refuse_prepare, refuse_launch;

typedef struct sum {
  const float *x, *y;
  float *z;
} sum;

static void do_sum(void *arg) {
  const sum *s = arg;
  for (int i = 0; i < N; i++) s->z[i] = s->x[i] + (s->y != NULL ? s->y[i] : 1);
}

static tn_status sum_prepare(tn_prepare *p, void **object) {
  if (refuse_prepare > 0 && --refuse_prepare == 0) return tn_fail(p, TN_ENOMEM, NULL, "no memory");
  prepared++;
  *object = malloc(1);
  return TN_OK;
}

static void sum_release(tn_env *env, void *object) {
  (void)env;
  released++;
  free(object);
}

static void count_chunk(void *arg, int64_t chunk) {
  (void)chunk;
  ++*(int *)arg;
}

static tn_status sum_launch(tn_launch *l) {
  int chunks = 0;
  if (refuse_launch) return tn_fail(l, TN_EDEVICE, NULL, "the device is on fire");
  tn_parallel(l, 3, count_chunk, &chunks);
  if (chunks != 3 || l->prepared == NULL || l->n_in != 2 || l->n_out != 1)
    return tn_fail(l, TN_EINTERNAL, NULL, "the launch is incomplete");
  if (l->workspace != NULL) *(volatile char *)far_real(l->workspace) = 1;
  sum *s = malloc(sizeof(*s));
  *s = (sum){far_real(l->in[0].data), l->in[1].data != NULL ? far_real(l->in[1].data) : NULL,
             far_real(l->out[0].data)};
  far_enqueue(l->stream, do_sum, s);
  return TN_OK;
}

static const tn_kernel sum_kernel = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "sum", "for tests"),
                                     .family = "near",
                                     .prepare = sum_prepare,
                                     .release = sum_release,
                                     .launch = sum_launch};
static const tn_entry sum_entry = {.item = &sum_kernel.item, .plugin = "made_up"};

/* ---- a program made by hand:
 *   step 0: y = x + 1 (arena)   step 1: s = s + y (in place)   step 2: out = s + y ---- */

static tn_type row = {TN_F32, 1, {N}};
static const tn_op add_op = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "add", "for tests")};
static tn_gnode nodes[3];
static tn_graph graph;
static tn_cover cover;
static tn_group groups[3];
static uint32_t node_numbers[] = {0, 1, 2};
static tn_operand in[3][2], out[3][1];
static tn_step steps[3];
static tn_segment whole;
static tn_binding inputs[] = {{"x", {TN_F32, 1, {N}}, 64}}, outputs[] = {{"out", {TN_F32, 1, {N}}, 64}};
static tn_program program, small;

static tn_operand at(int32_t base, int32_t region, int64_t offset) {
  return (tn_operand){row, tn_layout_row_major(1), {base, region, offset}};
}

static void write_program(void) {
  for (int i = 0; i < 3; i++) {
    nodes[i] =
        (tn_gnode){.op = &add_op, .layer = i == 1 ? "layer1.0.sum" : "", .where = i == 1 ? "a.ini:14" : ""};
    groups[i] = (tn_group){.entry = &sum_entry,
                           .kernel = &sum_kernel,
                           .nodes = &node_numbers[i],
                           .n_nodes = 1,
                           .n_in = 2,
                           .n_out = 1,
                           .key = {(uint64_t)i, 7},
                           .choice.name = "first"};
    steps[i] = (tn_step){&groups[i], "sum", in[i], out[i], 2, 1, TN_AWAITS_NONE, 0};
  }
  in[0][0] = at(TN_BASE_SLOT, 0, 64), in[0][1] = at(TN_BASE_NONE, 0, 0), out[0][0] = at(TN_BASE_ARENA, 0, 32);
  in[1][0] = at(TN_BASE_REGION, 1, 64), in[1][1] = at(TN_BASE_ARENA, 0, 32),
  out[1][0] = at(TN_BASE_REGION, 1, 64);
  in[2][0] = at(TN_BASE_REGION, 1, 64), in[2][1] = at(TN_BASE_ARENA, 0, 32),
  out[2][0] = at(TN_BASE_OUTPUT, 0, 64);
  groups[2].choice.workspace_bytes = 16;
  steps[2].workspace_offset = 64;
  whole = (tn_segment){.n = 3, .awaits = TN_AWAITS_NONE};
  graph = (tn_graph){.nodes = {nodes, 3, 3}};
  cover = (tn_cover){.graph = &graph};
  program = (tn_program){.name = "step",
                         .cover = &cover,
                         .steps = steps,
                         .n_steps = 3,
                         .segments = &whole,
                         .n_segments = 1,
                         .inputs = inputs,
                         .n_inputs = 1,
                         .outputs = outputs,
                         .n_outputs = 1,
                         .arena_bytes = 80,
                         .slot_bytes = 80,
                         .output_bytes = 80};
  small = (tn_program){.name = "nothing", .cover = &cover, .arena_bytes = 160, .slot_bytes = 16};
}

/* ---- surroundings ---- */

REQUIRED_KERNELS("slow");
static const tn_item *const items[] = {&far_backend.item, &near_backend.item, &quick_backend.item,
                                       REQUIRED_ITEMS, NULL};
static const tn_plugin plugin = {sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "made_up", "1", "MIT",
                                 TN_BUILD_TEXT,     items};

static tn_error_record record;
static tn_env env;
static tn_registry *registry;
static far_report report;
static tn_state_map *map;
static tn_device *device;
static tn_executor *executor;
static tn_program *const programs[] = {&program, &small};

/* The lines of each level, and the last one. */
static int lines[TN_LOG_DEBUG + 1];
static char said[512];

static void hear(void *user, int32_t level, const char *line) {
  (void)user;
  lines[level]++;
  snprintf(said, sizeof said, "%s", line);
}

static tn_status configure(tn_env *where, void *context, tn_options *options) {
  (void)context;
  return tn_options_set_int(where, options, "report", (int64_t)(uintptr_t)&report);
}

static void make_map(void) {
  int32_t region;
  tn_gstate state = {.path = "bn.mean", .type = row, .what = TN_STATE_BUFFER, .init = "zeros", .where = ""};
  assert_int_equal(tn_state_map_create(&env, &map), TN_OK);
  assert_int_equal(tn_state_map_region(map, "param.f32", TN_F32, &region), TN_OK);
  assert_int_equal(tn_state_map_region(map, "state.f32", TN_F32, &region), TN_OK);
  assert_int_equal(tn_state_map_add(map, &state, region, 16), TN_OK);
}

static int start_on(const char *name) {
  tn_error_record_init_root(&env, &record, &tn_host_api);
  record.sink = (tn_log_sink){NULL, hear, TN_LOG_DEBUG};
  memset(lines, 0, sizeof lines);
  report = (far_report){0};
  prepared = released = refuse_prepare = refuse_launch = 0;
  executor = NULL;
  write_program();
  make_map();
  assert_int_equal(tn_registry_create(&env, "", &registry), TN_OK);
  assert_int_equal(tn_registry_add(registry, &env, &plugin, ""), TN_OK);
  tn_device_request request = {&name, 1, 0, 0, configure, NULL};
  if (tn_device_create(&env, registry, &request, &device) != TN_OK) fail_msg("%s", tn_error_text(&env));
  return 0;
}

static int start_near(void **state) { return *state = "near", start_on("near"); }
static int start_far(void **state) { return *state = "far", start_on("far"); }
static int start_quick(void **state) { return *state = "quick", start_on("quick"); }

static int stop(void **state) {
  (void)state;
  tn_executor_destroy(executor);
  assert_int_equal(device->bytes, 0);
  assert_int_equal(prepared, released);
  tn_device_destroy(device);
  assert_true(report.devices == 0 && report.streams == 0 && report.events == 0 && report.blocks == 0);
  tn_state_map_destroy(map);
  tn_registry_destroy(registry);
  return 0;
}

static void create(int32_t slots) {
  if (tn_executor_create(&env, device, map, programs, 2, slots, &executor) != TN_OK)
    fail_msg("%s", tn_error_text(&env));
}

static void put(int32_t s, float value) {
  float *x = tn_executor_input(executor, 0, s, "x");
  assert_non_null(x);
  for (int i = 0; i < N; i++) x[i] = value + (float)i;
}

static void expect(const float *values, float first) {
  for (int i = 0; i < N; i++) assert_true(values[i] == first + (float)i);
}

/* ---- cases, each on both families ---- */

static void a_program_computes_and_keeps_state(void **state) {
  (void)state;
  float s[N] = {0, 0, 0, 0};
  create(2);
  put(0, 10);
  assert_int_equal(tn_executor_run(executor, 0, 0), TN_OK);
  assert_int_equal(tn_executor_slot_wait(executor, 0), TN_OK);
  const float *result = tn_executor_output(executor, 0, 0, "out");
  for (int i = 0; i < N; i++) assert_true(result[i] == 2 * (11 + (float)i)); /* s = y, out = s + y */
  assert_int_equal(tn_executor_read(executor, "bn.mean", s, sizeof(s)), TN_OK);
  expect(s, 11);
}

static void slots_run_ahead_of_each_other(void **state) {
  (void)state;
  create(3);
  float before = 0;
  for (int round = 0; round < 5; round++) {
    for (int32_t s = 0; s < 3; s++) {
      assert_int_equal(tn_executor_slot_wait(executor, s), TN_OK);
      put(s, (float)(100 * round + 10 * s));
      assert_int_equal(tn_executor_run(executor, 0, s), TN_OK);
    }
    for (int32_t s = 0; s < 3; s++) {
      assert_int_equal(tn_executor_slot_wait(executor, s), TN_OK);
      const float *result = tn_executor_output(executor, 0, s, "out");
      float y = (float)(100 * round + 10 * s + 1); /* element 0 */
      before += y;
      assert_true(result[0] == before + y);
    }
  }
}

static void a_slot_may_run_again_before_it_was_waited_for(void **state) {
  (void)state;
  float s[N];
  create(1);
  put(0, 1);
  for (int i = 0; i < 4; i++) assert_int_equal(tn_executor_run(executor, 0, 0), TN_OK);
  assert_int_equal(tn_executor_slot_wait(executor, 0), TN_OK);
  assert_true(((const float *)tn_executor_output(executor, 0, 0, "out"))[0] == 10);
  assert_int_equal(tn_executor_read(executor, "bn.mean", s, sizeof(s)), TN_OK);
  assert_true(s[0] == 8);
}

static void work_may_change_streams(void **state) {
  (void)state;
  groups[1].role = TN_STREAM_COMM;
  steps[2].awaits.of[TN_STREAM_COMM] = 1;
  slots_run_ahead_of_each_other(state);
}

static void the_last_step_may_be_on_another_stream(void **state) {
  (void)state;
  groups[0].role = groups[2].role = TN_STREAM_COMM;
  steps[1].awaits.of[TN_STREAM_COMM] = 0;
  whole.awaits.of[TN_STREAM_COMM] = 2;
  slots_run_ahead_of_each_other(state);
}

/* Rows and columns in blocks of two: row r, column c is at r/2*12 + c/2*4 + c%2*2 + r%2. */
static void state_in_blocks_is_row_major_outside(void **state) {
  static const tn_layout blocks = {.set = 1, .n_blocks = 2, .order = {0, 1}, .block = {{1, 2}, {0, 2}}};
  tn_gstate weight = {
      .path = "w", .type = {TN_F32, 2, {4, 6}}, .what = TN_STATE_PARAM, .init = "", .where = ""};
  float given[4][6], found[4][6], raw[32];
  (void)state;
  assert_int_equal(tn_state_map_add(map, &weight, 0, -1), TN_OK);
  tn_state_map_set_layout(map, tn_state_map_find(map, "w"), &blocks);
  create(1);
  for (int i = 0; i < 24; i++) given[i / 6][i % 6] = (float)i;
  assert_int_equal(tn_executor_write(executor, "w", given, sizeof given), TN_OK);
  assert_int_equal(tn_executor_read(executor, "w", found, sizeof found), TN_OK);
  assert_memory_equal(found, given, sizeof given);
  assert_int_equal(tn_executor_read(executor, "@param.f32", raw, sizeof raw), TN_OK);
  for (int r = 0; r < 4; r++)
    for (int c = 0; c < 6; c++) assert_true(raw[r / 2 * 12 + c / 2 * 4 + c % 2 * 2 + r % 2] == given[r][c]);
}

static void state_is_written_and_read_by_path_and_by_region(void **state) {
  (void)state;
  float values[N] = {1, 2, 3, 4}, back[N], region[32];
  create(1);
  assert_int_equal(tn_executor_write(executor, "bn.mean", values, sizeof(values)), TN_OK);
  assert_int_equal(tn_executor_read(executor, "bn.mean", back, sizeof(back)), TN_OK);
  assert_memory_equal(values, back, sizeof(back));
  size_t count = (size_t)map->regions.v[1].count;
  assert_in_range(count, 20, 32);
  assert_int_equal(tn_executor_read(executor, "@state.f32", region, count * sizeof(float)), TN_OK);
  for (size_t i = 0; i < count; i++) /* gaps are zero */
    assert_true(region[i] == (i < 16 || i >= 20 ? 0 : values[i - 16]));
  assert_int_equal(tn_executor_read(executor, "@param.f32", region, 0), TN_OK);
}

static void wrong_paths_and_sizes_are_refused(void **state) {
  (void)state;
  float values[N] = {0};
  create(1);
  assert_int_equal(tn_executor_read(executor, "bn.mean", values, 8), TN_EINVAL);
  assert_string_equal(tn_error_text(&env), "state 'bn.mean' has 16 bytes, not 8");
  assert_int_equal(tn_executor_write(executor, "bn.variance", values, 16), TN_EINVAL);
  assert_string_equal(tn_error_text(&env), "there is no state 'bn.variance'");
  assert_int_equal(tn_executor_read(executor, "@state.f64", values, 16), TN_EINVAL);
  assert_null(tn_executor_input(executor, 0, 0, "y"));
  assert_null(tn_executor_output(executor, 0, 0, "loss"));
}

/* Moves the step of y behind those of a run, and y to the constants. */
static void make_y_constant(void) {
  tn_step first = steps[0];
  memmove(steps, steps + 1, 2 * sizeof *steps);
  steps[2] = first;
  out[0][0] = in[1][1] = in[2][1] = at(TN_BASE_CONSTANT, 0, 64);
  program.n_steps = whole.n = 2;
  program.n_constants = 1;
  program.constant_bytes = 128;
}

/* y is x + 1 of the first run; later runs have another x. */
static void constants_are_computed_before_the_first_run_alone(void **state) {
  (void)state;
  make_y_constant();
  create(2);
  for (int run = 1; run <= 4; run++) {
    put(run % 2, (float)(10 * run));
    assert_int_equal(tn_executor_run(executor, 0, run % 2), TN_OK);
    assert_int_equal(tn_executor_slot_wait(executor, run % 2), TN_OK);
    assert_true(((const float *)tn_executor_output(executor, 0, run % 2, "out"))[0] ==
                (float)(11 * run + 11));
  }
}

static void a_constant_that_failed_is_launched_again(void **state) {
  (void)state;
  make_y_constant();
  create(1);
  put(0, 10);
  refuse_launch = 1;
  assert_int_equal(tn_executor_run(executor, 0, 0), TN_EDEVICE);
  assert_string_equal(tn_error_text(&env), "op 'add': the device is on fire");
  refuse_launch = 0;
  assert_int_equal(tn_executor_run(executor, 0, 0), TN_OK);
  assert_int_equal(tn_executor_slot_wait(executor, 0), TN_OK);
  assert_true(((const float *)tn_executor_output(executor, 0, 0, "out"))[0] == 22);
}

static void constants_are_planned_bytes(void **state) {
  (void)state;
  int64_t without = tn_executor_planned_bytes(map, programs, 2, 1, true);
  make_y_constant();
  create(1);
  assert_int_equal(tn_executor_planned_bytes(map, programs, 2, 1, true), without + 128);
  if (strcmp(*state, "far") != 0) assert_int_equal(device->bytes, without + 128);
}

static void a_failing_launch_is_named(void **state) {
  (void)state;
  create(1);
  steps[0] = steps[1]; /* so that the first step has a layer */
  tn_executor_destroy(executor);
  create(1);
  refuse_launch = 1;
  assert_int_equal(tn_executor_run(executor, 0, 0), TN_EDEVICE);
  assert_string_equal(tn_error_text(&env),
                      "op 'add' of layer 'layer1.0.sum' (a.ini:14): the device is on fire");
}

static void planned_bytes_are_measured_bytes(void **state) {
  (void)state;
  bool near = strcmp(*state, "far") != 0;
  create(3);
  int64_t planned = tn_executor_planned_bytes(map, programs, 2, 3, near);
  assert_int_equal(planned, map->regions.v[1].count * 4 + 160 + 3 * (80 + 80) * (near ? 1 : 2));
  assert_int_equal(device->bytes, planned);
  assert_int_equal(device->peak_bytes, planned);
}

static void memory_that_is_refused_leaves_nothing_behind(void **state) {
  (void)state;
  for (int n = 1; n < 40; n++) {
    report.refuse_memory = n;
    tn_status status = tn_executor_create(&env, device, map, programs, 2, 2, &executor);
    if (status == TN_OK) {
      assert_in_range(n, 5, 8); /* the inputs and the outputs of all slots are one request each */
      report.refuse_memory = 0;
      return;
    }
    assert_int_equal(status, TN_ENOMEM);
    assert_non_null(strstr(tn_error_text(&env), "bytes of "));
    assert_null(executor);
    assert_int_equal(device->bytes, 0);
    assert_int_equal(report.events, 0);
  }
  fail();
}

static void a_kernel_that_cannot_be_prepared_is_named(void **state) {
  (void)state;
  refuse_prepare = 2;
  assert_int_equal(tn_executor_create(&env, device, map, programs, 2, 2, &executor), TN_ENOMEM);
  assert_string_equal(tn_error_text(&env),
                      "program 'step': op 'add' of layer 'layer1.0.sum' (a.ini:14): no memory");
  assert_int_equal(prepared, 1);
}

static const char *declined_reason(int32_t step) {
  return tn_answers_declined(device->target.answers, &sum_kernel, groups[step].key, 0);
}

/* Kernels whose code does not come: all are noted at once, with one warning for the reason. */
static void kernels_that_cannot_be_finished_are_left_out(void **state) {
  (void)state;
  report.declines[0] = 1, report.declines[1] = 2, report.n_declines = 2;
  report.decline_code = TN_EUNSUPPORTED;
  assert_int_equal(tn_executor_create(&env, device, map, programs, 2, 2, &executor), TN_EUNSUPPORTED);
  assert_int_equal(report.n_declines, 0);
  assert_null(executor);
  assert_int_equal(tn_answers_declines(&device->target), 2);
  assert_null(declined_reason(0));
  assert_string_equal(declined_reason(1), "no code");
  assert_string_equal(declined_reason(2), "no code");
  assert_string_equal(tn_error_text(&env),
                      "program 'step': op 'add' of layer 'layer1.0.sum' (a.ini:14): no code");
  assert_string_equal(
      said, "sum: kernel sum first declined when it was prepared: no code; other kernels take its ops");
  assert_int_equal(lines[TN_LOG_WARN], 1);
  assert_int_equal(lines[TN_LOG_INFO], 1);
  assert_int_equal(released, 3);
  create(2); /* they are finished in the next attempt */
}

/* A failure that is no decline, a use that is not there, and one that is reported twice end the run. */
static void a_finish_that_fails_otherwise_is_an_error(void **state) {
  (void)state;
  report.declines[0] = 1, report.n_declines = 1;
  report.decline_code = TN_EDEVICE;
  assert_int_equal(tn_executor_create(&env, device, map, programs, 2, 2, &executor), TN_EDEVICE);
  assert_string_equal(tn_error_text(&env),
                      "program 'step': op 'add' of layer 'layer1.0.sum' (a.ini:14): no code");
  report.decline_code = TN_EUNSUPPORTED;
  report.declines[0] = 3, report.n_declines = 1;
  assert_int_equal(tn_executor_create(&env, device, map, programs, 2, 2, &executor), TN_EUNSUPPORTED);
  assert_string_equal(tn_error_text(&env), "program 'step': no code");
  assert_int_equal(tn_answers_declines(&device->target), 0);
  report.declines[0] = report.declines[1] = report.declines[2] = 1, report.n_declines = 3;
  assert_int_equal(tn_executor_create(&env, device, map, programs, 2, 2, &executor), TN_EUNSUPPORTED);
  assert_int_equal(report.n_declines, 1);
  assert_int_equal(tn_answers_declines(&device->target), 1);
}

static void kernels_are_prepared_once_for_all_slots(void **state) {
  (void)state;
  create(5);
  assert_int_equal(prepared, 3);
}

static void the_team_is_the_devices(void **state) {
  (void)state;
  create(1);
  put(0, 1);
  assert_int_equal(tn_executor_run(executor, 0, 0), TN_OK);
  assert_int_equal(tn_executor_slot_wait(executor, 0), TN_OK);
  assert_int_equal(report.parallel, 3);
}

static tn_timeline *timeline;

static void start_profile(void) {
  timeline = tn_timeline_new(&env);
  assert_non_null(timeline);
  assert_int_equal(tn_executor_profile(executor, timeline), TN_OK);
  tn_timeline_open(timeline, true);
}

/* The spans of the runs so far. */
static const tn_span *read_profile(size_t *n) {
  int64_t lost;
  assert_int_equal(tn_executor_profile_read(executor), TN_OK);
  const tn_span *spans = tn_timeline_spans(timeline, n, &lost);
  assert_int_equal(lost, 0);
  return spans;
}

static void end_profile(void) {
  assert_int_equal(tn_executor_profile(executor, NULL), TN_OK);
  tn_timeline_free(timeline);
}

static size_t count_spans(const tn_span *spans, size_t n, int32_t kind) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += spans[i].kind == kind;
  return count;
}

/* The times of a device with a clock are its own: a begin behind the base, then the time of the work. */
static void a_profile_takes_the_clock_of_the_device(void **state) {
  (void)state;
  size_t n;
  report.seconds[0] = 0.25;
  report.seconds[1] = 0.5;
  report.n_seconds = 2;
  create(1);
  bool clock = device->backend->event_seconds != NULL;
  assert_true(tn_executor_has_clock(executor) == clock);
  start_profile();
  put(0, 10);
  double began_s = tn_clock_s();
  assert_int_equal(tn_executor_run(executor, 0, 0), TN_OK);
  const tn_span *spans = read_profile(&n);
  double all_s = tn_clock_s() - began_s;
  assert_int_equal(count_spans(spans, n, TN_SPAN_LAUNCH), 3);
  double last = 0;
  for (size_t i = 0; i < n; i++) {
    double seconds = spans[i].end_s - spans[i].start_s;
    if (spans[i].kind != TN_SPAN_LAUNCH) continue;
    if (clock) assert_true(seconds > 0.5 - 1e-6 && seconds < 0.5 + 1e-6);
    if (!clock) assert_true(seconds >= 0 && seconds <= all_s);
    assert_true(spans[i].start_s >= last);
    last = spans[i].end_s;
  }
  end_profile();
}

static void a_profile_has_every_launch_copy_and_run(void **state) {
  (void)state;
  size_t n;
  create(1);
  bool away = !device->target.properties.host_addressable;
  start_profile();
  put(0, 10);
  for (int i = 0; i < 3; i++) assert_int_equal(tn_executor_run(executor, 0, 0), TN_OK);
  const tn_span *spans = read_profile(&n);
  int32_t step = 0;
  for (size_t i = 0; i < n; i++) {
    assert_true(spans[i].end_s >= spans[i].start_s && spans[i].program == 0);
    if (spans[i].kind != TN_SPAN_LAUNCH) continue;
    assert_int_equal(spans[i].step, step % 3);
    step++;
  }
  assert_int_equal(step, 9);
  assert_int_equal(count_spans(spans, n, TN_SPAN_RUN), 3);
  assert_int_equal(count_spans(spans, n, TN_SPAN_COPY_IN), away ? 3 : 0);
  assert_int_equal(count_spans(spans, n, TN_SPAN_COPY_OUT), away ? 3 : 0);
  end_profile();
  assert_int_equal(tn_executor_run(executor, 0, 0), TN_OK);
  assert_int_equal(tn_executor_slot_wait(executor, 0), TN_OK);
  assert_true(((const float *)tn_executor_output(executor, 0, 0, "out"))[0] == 55);
}

static void no_slots_are_too_few(void **state) {
  (void)state;
  assert_int_equal(tn_executor_create(&env, device, map, programs, 2, 0, &executor), TN_EINVAL);
}

#define BOTH(name)                                                                                           \
  {#name " (near)", name, start_near, stop, NULL}, { #name " (far)", name, start_far, stop, NULL }

int main(void) {
  const struct CMUnitTest tests[] = {
      BOTH(a_program_computes_and_keeps_state),
      BOTH(slots_run_ahead_of_each_other),
      BOTH(a_slot_may_run_again_before_it_was_waited_for),
      BOTH(work_may_change_streams),
      BOTH(the_last_step_may_be_on_another_stream),
      BOTH(state_is_written_and_read_by_path_and_by_region),
      BOTH(state_in_blocks_is_row_major_outside),
      BOTH(wrong_paths_and_sizes_are_refused),
      BOTH(constants_are_computed_before_the_first_run_alone),
      BOTH(a_constant_that_failed_is_launched_again),
      BOTH(constants_are_planned_bytes),
      BOTH(a_failing_launch_is_named),
      BOTH(planned_bytes_are_measured_bytes),
      BOTH(memory_that_is_refused_leaves_nothing_behind),
      BOTH(a_kernel_that_cannot_be_prepared_is_named),
      BOTH(kernels_that_cannot_be_finished_are_left_out),
      BOTH(a_finish_that_fails_otherwise_is_an_error),
      BOTH(kernels_are_prepared_once_for_all_slots),
      BOTH(the_team_is_the_devices),
      BOTH(a_profile_takes_the_clock_of_the_device),
      BOTH(a_profile_has_every_launch_copy_and_run),
      BOTH(no_slots_are_too_few),
      cmocka_unit_test_setup_teardown(the_team_is_the_devices, start_quick, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

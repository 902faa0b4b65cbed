/* The tuner: times, operands, stored figures. */
#include "core/exec/tune/measure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/required_kernels.h"
#include "tests/unit/exec/far.h"
#include "core/compile/kernels/tuner.h"
#include "core/exec/tune/operand_data.h"
#include "core/plugin/handles.h"

/* ---- a kernel that looks at its operands ---- */

enum { N = 1024, MOST_SEEN = 4096 };
static const void *seen_state[MOST_SEEN], *seen_input[MOST_SEEN];
static int launches;
static bool zeros, fails, breaks, breaks_in_capture;
static far_report report;

static tn_status look(tn_launch *l) {
  report.broken = breaks;
  if (fails || breaks) return tn_fail(l, TN_EDEVICE, NULL, "the operands are wrong");
  for (int i = 0; i < 2; i++) {
    const float *x = far_real(l->in[i].data);
    zeros |= x[0] == 0 && x[1] == 0;
  }
  if (launches < MOST_SEEN) {
    seen_input[launches] = l->in[0].data;
    seen_state[launches] = l->in[1].data;
  }
  launches++;
  return TN_OK;
}

static tn_status query_nothing(tn_query *q) {
  (void)q;
  return TN_OK;
}

static const tn_kernel looks = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "looks", "for tests"),
                                .family = "near",
                                .pattern = "y = add(a, b)",
                                .query = query_nothing,
                                .launch = look};
static const tn_entry entry = {.item = &looks.item, .plugin = "made_up", .version = "1", .file = ""};
static const tn_type type = {TN_F32, 1, {N}};
static const tn_type *const in[] = {&type, &type}, *const out[] = {&type};
static const tn_match match = {sizeof match, 2, 1, 0, in, out, NULL, NULL, NULL};
static const uint8_t cold[] = {0, 1};
static const tn_tuning tuning = {&entry, &match, "add(0, 1)", cold},
                       strided = {&entry, &match, "add(0, 1; stride=2)", cold};
static const tn_choice choice = {.id = 1, .name = "only"};

/* ---- a device and a folder ---- */

REQUIRED_KERNELS("slow");
static const tn_item *const items[] = {&far_backend.item, &near_backend.item, REQUIRED_ITEMS, NULL};
static const tn_plugin plugin = {sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "made_up", "1", "MIT",
                                 TN_BUILD_TEXT,     items};
static tn_error_record record;
static tn_env env;
static tn_registry *registry;
static tn_device *device;
static char folder[64], said[512];

static void hear(void *user, int32_t level, const char *line) {
  (void)user;
  if (level <= TN_LOG_INFO) snprintf(said, sizeof said, "%s", line);
}

static tn_status configure(tn_env *where, void *context, tn_options *options) {
  (void)context;
  return tn_options_set_int(where, options, "report", (int64_t)(uintptr_t)&report);
}

static void open_device(const char *name) {
  const char *names[] = {name};
  tn_device_request request = {names, 1, 0, 1, configure, NULL};
  assert_int_equal(tn_device_create(&env, registry, &request, &device), TN_OK);
  assert_int_equal(tn_tune_open(device, folder, true), TN_OK);
}

static int start(void **state) {
  (void)state;
  tn_error_record_init_root(&env, &record, &tn_host_api);
  record.sink = (tn_log_sink){NULL, hear, TN_LOG_DEBUG};
  report = (far_report){0};
  launches = 0;
  zeros = fails = breaks = breaks_in_capture = false;
  said[0] = '\0';
  snprintf(folder, sizeof folder, "/tmp/tenon-measure-XXXXXX");
  assert_non_null(mkdtemp(folder));
  assert_int_equal(tn_registry_create(&env, "", &registry), TN_OK);
  assert_int_equal(tn_registry_add(registry, &env, &plugin, ""), TN_OK);
  return 0;
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *at) {
  (void)st, (void)what, (void)at;
  return remove(path);
}

static int stop(void **state) {
  (void)state;
  tn_device_destroy(device);
  device = NULL;
  tn_registry_destroy(registry);
  assert_true(report.devices == 0 && report.streams == 0 && report.events == 0 && report.blocks == 0);
  return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static tn_status try_to_time(const tn_tuning *what, double *seconds) {
  tn_tuner *tuner = device->target.tuner;
  return tuner->time(tuner, &env, what, &choice, seconds);
}

static double time_one(const tn_tuning *what) {
  double seconds = 0;
  assert_int_equal(try_to_time(what, &seconds), TN_OK);
  return seconds;
}

/* Lines with a text of the one file in the folder; 0 where the folder has no file. */
static int lines_with(const char *text) {
  char path[400], line[512];
  int lines = 0;
  DIR *d = opendir(folder);
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) lines += strstr(line, text) != NULL;
    fclose(file);
  }
  closedir(d);
  return lines;
}

/* Figures have the key of the plugin's version; marks of measurements have none. */
static int stored_figures(void) { return lines_with(" looks 1"); }

/* ---- tests ---- */

static void the_clock_of_the_device_counts(void **state) {
  (void)state;
  report.seconds[0] = 0.125; /* a launch takes longer than a round, so a round has one */
  report.n_seconds = 1;
  open_device("near");
  assert_true(time_one(&tuning) == 0.125);
  assert_int_equal(stored_figures(), 1);
  assert_int_equal(lines_with(" begun "), 1);
  assert_int_equal(lines_with(" ended "), 0);
}

/* Many short launches are one round. */
static void short_launches_are_timed_together(void **state) {
  (void)state;
  report.seconds[0] = 1e-4;
  report.n_seconds = 1;
  open_device("near");
  assert_true(time_one(&tuning) == 1e-4 / 6);
  assert_int_equal(launches, 2 + 5 * 6);
}

static void operands_hold_numbers_and_cold_ones_alternate(void **state) {
  bool other_state = false, other_input = false;
  (void)state;
  open_device("near");
  time_one(&tuning);
  assert_false(zeros);
  for (int i = 1; i < launches && i < MOST_SEEN; i++) {
    assert_ptr_not_equal(seen_state[i], seen_state[i - 1]);
    other_state |= seen_state[i] != seen_state[0];
    other_input |= seen_input[i] != seen_input[0];
  }
  assert_true(other_state && !other_input);
}

static void a_device_without_a_clock_is_timed_by_the_host(void **state) {
  (void)state;
  open_device("far");
  assert_true(time_one(&tuning) > 0);
  assert_true(launches >= 5);
}

/* Rounds of 1 and 2 in turn: used, and not stored. */
static void unsteady_times_are_used_and_not_stored(void **state) {
  static const double seconds[] = {0.02, 0.01, 0.02, 0.02};
  (void)state;
  memcpy(report.seconds, seconds, sizeof seconds);
  report.n_seconds = 4;
  open_device("near");
  assert_true(time_one(&tuning) == 0.01);
  int after_one = launches;
  assert_true(after_one >= 2 + 3 * 3);
  assert_int_equal(stored_figures(), 0);
  assert_int_equal(lines_with(" ended "), 1);
  assert_non_null(strstr(said, "the machine is busy"));
  assert_true(time_one(&tuning) == 0.01);
  assert_int_equal(launches, after_one);
  tn_device_destroy(device);
  open_device("near");
  time_one(&tuning);
  assert_true(launches > after_one);
}

/* Ranks must choose alike, so the second one knows what the first one measured and did not store. */
static void another_device_knows_what_was_not_stored(void **state) {
  static const double seconds[] = {0.02, 0.01, 0.02, 0.02};
  (void)state;
  memcpy(report.seconds, seconds, sizeof seconds);
  report.n_seconds = 4;
  open_device("near");
  tn_device *first = device;
  assert_true(time_one(&tuning) == 0.01);
  open_device("near");
  tn_tune_copy(device, first);
  int before = launches;
  assert_true(time_one(&tuning) == 0.01);
  assert_int_equal(launches, before);
  tn_device_destroy(first);
}

/* One bad series, and then a good one. */
static void unsteady_times_are_measured_again(void **state) {
  static const double seconds[] = {0.01, 0.01, 0.03, 0.03, 0.01, 0.01, 0.01, 0.01};
  (void)state;
  memcpy(report.seconds, seconds, sizeof seconds);
  report.n_seconds = 8;
  open_device("near");
  assert_true(time_one(&tuning) == 0.01);
  assert_int_equal(stored_figures(), 1);
  assert_string_equal(said, "");
}

static void attributes_are_part_of_the_key(void **state) {
  (void)state;
  report.seconds[0] = 0.125;
  report.n_seconds = 1;
  open_device("near");
  assert_true(time_one(&tuning) == 0.125);
  report.seconds[0] = 0.25;
  assert_true(time_one(&strided) == 0.25);
  assert_true(time_one(&tuning) == 0.125);
  assert_int_equal(stored_figures(), 2);
}

/* A launch that fails on a device that goes on is not measured. */
static void a_failure_that_the_device_survives_is_no_fault(void **state) {
  double seconds = 1;
  (void)state;
  fails = true;
  open_device("near");
  assert_int_equal(try_to_time(&tuning, &seconds), TN_OK);
  assert_true(seconds == 0);
  assert_int_equal(lines_with(" begun "), 1);
  assert_int_equal(lines_with(" ended "), 1);
  assert_int_equal(lines_with(" fault "), 0);
}

/* The message is that of the device, and no variant is to blame. */
static void a_device_that_was_broken_before_blames_no_variant(void **state) {
  double seconds = 0;
  (void)state;
  open_device("near");
  report.broken = true;
  assert_int_equal(try_to_time(&tuning, &seconds), TN_EDEVICE);
  assert_string_equal(tn_error_text(&env), "the device is broken");
  assert_int_equal(lines_with(" ended "), 1);
  assert_int_equal(lines_with(" fault "), 0);
}

static void a_variant_that_breaks_the_device_is_left_out_by_the_next_start(void **state) {
  double seconds = 0;
  (void)state;
  breaks = true;
  open_device("near");
  tn_tuner *tuner = device->target.tuner;
  assert_false(tuner->has_faulted(tuner, &tuning, &choice));
  assert_int_equal(try_to_time(&tuning, &seconds), TN_EDEVICE);
  const char *text = tn_error_text(&env);
  assert_non_null(strstr(text,
                         "kernel looks, variant 'only', was measured: the operands are wrong; start again: "
                         "this variant will then be left out"));
  tn_device_destroy(device);
  breaks = report.broken = false;
  open_device("near");
  tuner = device->target.tuner;
  int before = launches;
  assert_true(tuner->has_faulted(tuner, &tuning, &choice));
  assert_false(tuner->has_faulted(tuner, &strided, &choice));
  assert_non_null(strstr(said, "kernel looks, variant 'only', is not measured"));
  assert_non_null(strstr(said, "to try it again, remove the lines that begin with "));
  said[0] = '\0';
  assert_true(tuner->has_faulted(tuner, &tuning, &choice));
  assert_string_equal(said, ""); /* once */
  assert_true(time_one(&tuning) == 0);
  assert_int_equal(launches, before);
}

/* Without a file the next start cannot know. */
static void a_fault_that_is_not_stored_is_an_error_with_another_way_out(void **state) {
  double seconds = 0;
  (void)state;
  breaks = true;
  const char *names[] = {"near"};
  tn_device_request request = {names, 1, 0, 1, configure, NULL};
  assert_int_equal(tn_device_create(&env, registry, &request, &device), TN_OK);
  assert_int_equal(tn_tune_open(device, "", true), TN_OK);
  assert_int_equal(try_to_time(&tuning, &seconds), TN_EDEVICE);
  assert_non_null(strstr(tn_error_text(&env), "; [backend] autotune = no measures nothing"));
}

/* ---- replays ---- */

static const tn_choice capturable = {.id = 1, .name = "only", .capturable = true};
static int replays;

/* Launches run while they are captured, and replays compute nothing: the times are those of the report. */
static tn_status capture_once(tn_env *e, void *where, void *stream, tn_status (*body)(void *arg), void *arg,
                              void **capture) {
  (void)where, (void)stream;
  *capture = &replays;
  breaks = breaks_in_capture;
  return body(arg) == TN_OK ? TN_OK : tn_fail(e, TN_EDEVICE, NULL, "the capture has no end");
}

static tn_status count_replay(tn_env *e, void *capture, void *stream) {
  (void)e, (void)stream;
  ++*(int *)capture;
  return TN_OK;
}

static void keep_capture(tn_env *e, void *capture) { (void)e, (void)capture; }

static void open_capturing_device(bool captures) {
  static tn_backend backend;
  const char *names[] = {"near"};
  tn_device_request request = {names, 1, 0, 1, configure, NULL};
  assert_int_equal(tn_device_create(&env, registry, &request, &device), TN_OK);
  backend = *device->backend;
  backend.capture = capture_once;
  backend.capture_launch = count_replay;
  backend.capture_delete = keep_capture;
  device->backend = &backend;
  device->uncaptured = !captures;
  replays = 0;
  assert_int_equal(tn_tune_open(device, folder, true), TN_OK);
}

static double time_replay(const tn_choice *what) {
  double seconds = -1;
  tn_tuner *tuner = device->target.tuner;
  assert_non_null(tuner->time_replay);
  assert_int_equal(tuner->time_replay(tuner, &env, &tuning, what, &seconds), TN_OK);
  return seconds;
}

static double time_single(const tn_choice *what) {
  double seconds = -1;
  tn_tuner *tuner = device->target.tuner;
  assert_int_equal(tuner->time(tuner, &env, &tuning, what, &seconds), TN_OK);
  return seconds;
}

static void set_seconds(double seconds) {
  report.seconds[0] = seconds;
  report.n_seconds = 1;
}

/* A run that does not capture uses them, makes none, and has keys of its own for what it measures. */
static void replays_have_keys_of_their_own(void **state) {
  (void)state;
  set_seconds(0.5);
  open_capturing_device(false);
  assert_true(time_single(&capturable) == 0.5);
  assert_true(time_replay(&capturable) == 0);
  assert_int_equal(stored_figures(), 1);
  tn_device_destroy(device);
  set_seconds(1); /* of a round of 17 launches, one for each copy of the state */
  open_capturing_device(true);
  double seconds = time_replay(&capturable);
  assert_true(seconds > 0 && seconds < 0.5 && replays > 3);
  int before = replays;
  assert_true(time_single(&capturable) == seconds);
  assert_int_equal(replays, before);
  assert_int_equal(stored_figures(), 2);
  tn_device_destroy(device);
  open_capturing_device(false);
  before = launches;
  assert_true(time_replay(&capturable) == seconds && time_single(&capturable) == seconds);
  assert_int_equal(launches, before);
}

static void a_launch_that_cannot_be_captured_has_no_replay(void **state) {
  (void)state;
  set_seconds(0.5);
  open_capturing_device(true);
  assert_true(time_replay(&choice) == 0);
  assert_int_equal(launches, 0);
  assert_true(time_single(&choice) == 0.5);
  assert_true(time_replay(&choice) == 0);
  assert_int_equal(replays, 0);
}

/* They decide between rivals in this run, but not between a fusion and its parts: the next run does not know
 * them. */
static void unsteady_replays_are_not_compared(void **state) {
  static const double seconds[] = {0.02, 0.01, 0.02};
  (void)state;
  memcpy(report.seconds, seconds, sizeof seconds);
  report.n_seconds = 3;
  open_capturing_device(true);
  assert_true(time_replay(&capturable) == 0);
  assert_true(replays > 3);
  int before = replays;
  assert_true(time_single(&capturable) > 0);
  assert_true(time_replay(&capturable) == 0);
  assert_int_equal(replays, before);
}

/* Messages behind the first one follow from it. */
static void the_first_message_of_a_fault_in_a_capture_comes_up(void **state) {
  double seconds = 0;
  tn_tuner *tuner;
  (void)state;
  breaks_in_capture = true;
  open_capturing_device(true);
  tuner = device->target.tuner;
  assert_int_equal(tuner->time(tuner, &env, &tuning, &capturable, &seconds), TN_EDEVICE);
  assert_non_null(strstr(tn_error_text(&env), "was measured: the operands are wrong; start again"));
}

static void a_device_without_captures_has_no_replays(void **state) {
  (void)state;
  open_device("near");
  assert_null(device->target.tuner->time_replay);
}

static void data_are_numbers_of_every_dtype(void **state) {
  (void)state;
  for (int32_t dtype = TN_BOOL; dtype < TN_DTYPES; dtype++) {
    union {
      uint8_t bytes[N];
      float floats[N / 4];
      double doubles[N / 8];
      int32_t ints[N / 4];
    } data;
    int different = 0;
    memset(&data, 0, sizeof data);
    tn_operand_data(dtype, &data, sizeof data);
    size_t size = tn_dtype_size(dtype);
    for (size_t i = size; i < sizeof data; i += size)
      different += memcmp(data.bytes + i, data.bytes, size) != 0;
    assert_true(different > (int)(N / size / 4));
    for (int i = 0; dtype == TN_F32 && i < N / 4; i++)
      assert_true((data.floats[i] >= 0.125f || data.floats[i] <= -0.125f) && data.floats[i] < 2 &&
                  data.floats[i] > -2);
    for (int i = 0; dtype == TN_F64 && i < N / 8; i++)
      assert_true(data.doubles[i] < 2 && data.doubles[i] > -2 && data.doubles[i] != 0);
    for (int i = 0; dtype == TN_I32 && i < N / 4; i++) assert_true(data.ints[i] == 0 || data.ints[i] == 1);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_clock_of_the_device_counts),
      TEST(short_launches_are_timed_together),
      TEST(operands_hold_numbers_and_cold_ones_alternate),
      TEST(a_device_without_a_clock_is_timed_by_the_host),
      TEST(unsteady_times_are_used_and_not_stored),
      TEST(another_device_knows_what_was_not_stored),
      TEST(unsteady_times_are_measured_again),
      TEST(attributes_are_part_of_the_key),
      TEST(a_failure_that_the_device_survives_is_no_fault),
      TEST(a_device_that_was_broken_before_blames_no_variant),
      TEST(a_variant_that_breaks_the_device_is_left_out_by_the_next_start),
      TEST(a_fault_that_is_not_stored_is_an_error_with_another_way_out),
      TEST(replays_have_keys_of_their_own),
      TEST(a_launch_that_cannot_be_captured_has_no_replay),
      TEST(unsteady_replays_are_not_compared),
      TEST(the_first_message_of_a_fault_in_a_capture_comes_up),
      TEST(a_device_without_captures_has_no_replays),
      cmocka_unit_test(data_are_numbers_of_every_dtype),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

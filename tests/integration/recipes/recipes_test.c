/* Each optimizer, loss or schedule, in one way of running: ten steps in f32 equal those of its peer within
 * 1e-6, it trains in bf16, and in fp16, whose first updates loss scaling skips; an update is one launch where
 * it is elementwise, and a schedule adds no launch.
 *
 *   recipes_test KIND WAY
 *
 * RECIPES_REPORT=FILE: appends a line of JSON for each fact, which tests/bench/recipes.py makes a page of. */
#include "recipes.h"

#include <math.h>

#include "double.h"

#define TWO "--set backend.use=sim --set backend.sim.devices=2 --set distributed.devices=2"

static const recipe_way recipe_ways[] = {
    {.name = "cpu", .options = "--set backend.use=cpu"},
    {.name = "onednn", .options = "--set backend.use=onednn", .rounds_as_peers = true},
    {.name = "cuda", .options = "--set backend.use=cuda --set backend.cuda.libraries=" DOUBLES},
    {.name = "two", .options = TWO, .two_devices = true},
    {.name = "divided",
     .options = TWO " --set distributed.shard=optimizer",
     .two_devices = true,
     .divided = true}};
static const recipe_kind *const recipe_kinds[] = {&recipe_optimizers, &recipe_losses, &recipe_schedules};

enum { MOST_STEPS = 200 };
static const double within = 1e-6;

static const recipe_kind *kind;
static const recipe_way *way;

void recipe_append(char *text, size_t size, const char *format, ...) {
  size_t n = strlen(text);
  va_list args;
  va_start(args, format);
  int more = vsnprintf(text + n, size - n, format, args);
  va_end(args);
  assert_in_range(more, 0, size - n - 1);
}

/* ---- the report ---- */

static void report(const char *key, const char *fact, double value) {
  const char *path = getenv("RECIPES_REPORT");
  FILE *file = path != NULL ? fopen(path, "a") : NULL;
  if (file == NULL) return;
  json_t *line = json_pack("{ss ss ss sf}", "kind", kind->name, "way", way->name, "case", key, fact, value);
  assert_non_null(line);
  assert_int_equal(json_dumpf(line, file, JSON_COMPACT), 0);
  fputc('\n', file);
  json_decref(line);
  fclose(file);
}

/* ---- trainings ---- */

/* The run of a case, RUN. */
static void train(const char *key, int run, const char *file, const char *more) {
  char line[1024] = "";
  recipe_append(line, sizeof line, "train %s --quiet --set run.name=%d --set run.observers=jsonl %s %s", file,
                run, way->options, more);
  kind->write_case(way, key, line, sizeof line);
  if (program_run("%s", line) != 0) fail_msg("%s: %s: %s", key, line, program_err);
  double_is_content_after(key);
}

static const char *in_run(int run, const char *file) {
  static char path[96];
  snprintf(path, sizeof path, "runs/%d/%s", run, file);
  return path;
}

static const float *weights(int run, const char *name, size_t *n) {
  const float *values = tensor_find(in_run(run, "checkpoints/last/model.safetensors"), name, n);
  assert_non_null(values);
  return values;
}

/* A number of each line of an event in metrics.jsonl; the count of lines. */
static int read_events(int run, const char *event, const char *name, double *numbers) {
  int n = 0;
  char *rest = file_read(in_run(run, "metrics.jsonl"), NULL);
  for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != '\0';) {
    json_t *json = json_loads(line, 0, NULL);
    assert_non_null(json);
    const json_t *number = json_object_get(json, name);
    if (strcmp(program_text(json, "event"), event) == 0 && n < MOST_STEPS)
      numbers[n++] = number != NULL ? json_number_value(number) : 0;
    json_decref(json);
  }
  return n;
}

/* ---- against the goldens ---- */

/* The greatest difference of a tensor, as a part of 1 + the number. */
static double distance(const char *key, int run, const char *name, const json_t *want) {
  size_t n = 0;
  double most = 0;
  const float *found = weights(run, name, &n);
  assert_int_equal(n, json_array_size(want));
  for (size_t i = 0; i < n; i++) {
    double number = json_number_value(json_array_get(want, i)), d = fabs((double)found[i] - number);
    if (!isfinite(d)) fail_msg("%s: %s[%zu] is %g", key, name, i, (double)found[i]);
    most = fmax(most, d / (1 + fabs(number)));
  }
  return most;
}

/* Of all tensors of the golden. */
static double difference(const char *key, int run, const json_t *golden) {
  double most = 0;
  int n = 0;
  const char *name;
  json_t *want;
  json_object_foreach((json_t *)(uintptr_t)golden, name, want) {
    if (!json_is_array(want) || strcmp(name, "lr") == 0) continue;
    most = fmax(most, distance(key, run, name, want));
    n++;
  }
  assert_true(n > 1);
  return most;
}

/* The learning rates, where the golden has them; steps that are skipped count. */
static void expect_rates(const char *key, int run, const json_t *golden) {
  double found[MOST_STEPS];
  const json_t *want = json_object_get(golden, "lr");
  if (want == NULL) return;
  assert_int_equal(read_events(run, "step", "lr", found), json_array_size(want));
  for (size_t i = 0; i < json_array_size(want); i++) {
    double number = json_number_value(json_array_get(want, i));
    if (!(fabs(found[i] - number) <= within))
      fail_msg("%s: step %zu has lr %.9g, expected %.9g", key, i, found[i], number);
  }
}

/* `first`: no case before it is of its kind (is_variant). */
typedef void look(const char *key, bool first, int run, const json_t *golden);

static bool is_first(const json_t *cases, const char *key) {
  const char *before;
  json_t *golden;
  json_object_foreach((json_t *)(uintptr_t)cases, before, golden) {
    if (strcmp(before, key) == 0) return true;
    if (kind->is_variant != NULL && kind->is_variant(key, before)) return false;
  }
  return true;
}

/* Each case that this way can run. */
static void look_at_all(look *at) {
  json_t *cases = json_load_file(kind->golden, 0, NULL), *golden;
  const char *key;
  int run = 0;
  assert_non_null(cases);
  kind->write_data(way);
  json_object_foreach(cases, key, golden) {
    if (kind->fits == NULL || kind->fits(way, key)) at(key, is_first(cases, key), ++run, golden);
  }
  assert_true(run > 20);
  json_decref(cases);
}

static void look_at_golden(const char *key, bool first, int run, const json_t *golden) {
  (void)first;
  if (kind->rounds != NULL && kind->rounds(key) && !way->rounds_as_peers) return;
  train(key, run, "net.ini", "");
  double found = difference(key, run, golden);
  report(key, "difference", found);
  if (!(found <= within)) fail_msg("%s: differs by %.3g", key, found);
  expect_rates(key, run, golden);
}

static void ten_steps_are_those_of_the_peers(void **state) {
  (void)state;
  look_at_all(look_at_golden);
}

/* ---- in low precision ---- */

static void expect_finite(const char *key, int run) {
  size_t n = 0;
  json_t *header = NULL;
  const char *text = file_read(in_run(run, "checkpoints/last/model.safetensors"), &n);
  uint64_t bytes;
  memcpy(&bytes, text, sizeof bytes);
  header = json_loadb(text + 8, (size_t)bytes, 0, NULL);
  const char *name;
  json_t *tensor;
  double sum = 0;
  assert_non_null(header);
  json_object_foreach(header, name, tensor) {
    if (strcmp(name, "__metadata__") == 0) continue;
    const float *values = weights(run, name, &n);
    for (size_t i = 0; i < n; i++) sum += fabs((double)values[i]);
  }
  json_decref(header);
  if (!(isfinite(sum) && sum > 0)) fail_msg("%s: the sum of magnitudes is %g", key, sum);
}

/* The updates that were skipped. */
static double expect_skipped(const char *key, int run) {
  double epochs[MOST_STEPS], sum = 0;
  int n = read_events(run, "epoch", "skipped", epochs);
  assert_true(n > 1);
  for (int i = 0; i < n; i++) sum += epochs[i];
  if (!(epochs[0] > 0 && epochs[n - 1] == 0))
    fail_msg("%s: %g updates skipped first, %g last", key, epochs[0], epochs[n - 1]);
  return sum;
}

/* With the options of the type where a kind has variants. */
static void look_at_low(const char *name, bool first, int run, const json_t *golden) {
  char more[256], key[256];
  if (!first) return;
  snprintf(key, sizeof key, "%.*s", (int)(kind->is_variant ? strcspn(name, " ") : strlen(name)), name);
  snprintf(more, sizeof more, "--set precision.policy=bf16 %s", kind->low_options);
  train(key, run, kind->low_file, more);
  expect_finite(key, run);
  snprintf(more, sizeof more, "--set precision.policy=fp16 --set precision.init_scale=%s %s", kind->scale,
           kind->low_options);
  train(key, 1000 + run, kind->low_file, more);
  expect_finite(key, 1000 + run);
  expect_rates(key, 1000 + run, golden);
  report(name, "skipped", expect_skipped(key, 1000 + run));
}

static void it_trains_in_bf16_and_in_fp16_with_skipped_updates(void **state) {
  (void)state;
  look_at_all(look_at_low);
}

/* ---- launches ---- */

static double launches(const char *key) {
  char line[1024] = "";
  recipe_append(line, sizeof line, "plan net.ini %s", way->options);
  kind->write_case(way, key, line, sizeof line);
  return program_number(program_json(0, "%s", line), "launches");
}

/* Reported are those beyond the launches of the baseline, whose update is one. */
static void look_at_launches(const char *key, bool first, int run, const json_t *golden) {
  static double least;
  (void)first, (void)golden;
  if (run == 1) least = launches(kind->baseline);
  double found = launches(key);
  report(key, "launches", fmax(1, found - least + 1));
  if (found > least && (kind->one_launch == NULL || kind->one_launch(key)))
    fail_msg("%s: %g launches, %s has %g", key, found, kind->baseline, least);
}

static void it_takes_no_more_launches(void **state) {
  (void)state;
  if (kind->baseline != NULL && !way->two_devices) look_at_all(look_at_launches);
}

int main(int n, char **words) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(ten_steps_are_those_of_the_peers, double_open, program_close),
      cmocka_unit_test_setup_teardown(it_trains_in_bf16_and_in_fp16_with_skipped_updates, program_open,
                                      program_close),
      cmocka_unit_test_setup_teardown(it_takes_no_more_launches, double_open, program_close)};
  for (size_t i = 0; n == 3 && i < sizeof recipe_kinds / sizeof *recipe_kinds; i++)
    if (strcmp(words[1], recipe_kinds[i]->name) == 0) kind = recipe_kinds[i];
  for (size_t i = 0; n == 3 && i < sizeof recipe_ways / sizeof *recipe_ways; i++)
    if (strcmp(words[2], recipe_ways[i].name) == 0) way = &recipe_ways[i];
  if (kind == NULL || way == NULL) {
    fprintf(stderr, "usage: recipes_test KIND WAY\n");
    return 2;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}

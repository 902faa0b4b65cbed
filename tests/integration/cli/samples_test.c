/* [run] samples: pictures and tables of the first samples of validation. */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "configs.h"
#include "npy_files.h"
#include "tensors.h"
#include "texts.h"

enum { ROWS = 16, SIDE = 6, PLANE = SIDE * SIDE };

static void train(const char *file, const char *more) {
  if (program_run("train %s --quiet %s", file, more) != 0) fail_msg("%s: %s", more, program_err);
}

/* ---- pictures ---- */

typedef struct picture {
  uint32_t width, height;
  const unsigned char *rows; /* each behind a filter that changes nothing */
} picture;

static uint32_t big_endian(const unsigned char *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Of one stored block, as of all pictures that are so small. */
static picture read_png(const char *path) {
  size_t n;
  const unsigned char *p = (const unsigned char *)file_read(path, &n);
  assert_memory_equal(p, "\x89PNG\r\n\x1A\n", 8);
  assert_memory_equal(p + 12, "IHDR", 4);
  assert_memory_equal(p + 37, "IDAT", 4);
  assert_int_equal(p[43], 1); /* the last block, stored */
  return (picture){big_endian(p + 16), big_endian(p + 20), p + 48};
}

static const unsigned char *pixel(const picture *p, uint32_t x, uint32_t y) {
  return p->rows + y * (3 * p->width + 1) + 1 + 3 * x;
}

/* ---- the table ---- */

/* Cell `column` of row `row` of a table in Markdown; row 0 has the heads. */
static const char *cell(const char *path, int row, int column) {
  static char text[4096];
  const char *at = file_read(path, NULL);
  for (int line = row > 0 ? row + 1 : 0; line > 0; line--) at = strchr(at, '\n') + 1;
  for (int c = 0; c <= column; c++) at = strstr(at, "| ") + 2;
  const char *end = strstr(at, " |");
  snprintf(text, sizeof text, "%.*s", (int)(end - at), at);
  return text;
}

/* ---- classes, beside `tenon predict` ---- */

static const char arrays_ini[] = "[run]\nname = arrays\nepochs = 2\nsamples = 3\n"
                                 "[data]\nsource = arrays\nfolder = .\ninputs = image: images.npy\n"
                                 "targets = label: labels.npy\nsplit = 0.5\nsplit_at = end\nbatch = 4\n"
                                 "[model]\ninputs = image: f32[1, 6, 6]\nlayers =\n"
                                 "         flatten\n    fc:  linear(4)\n"
                                 "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.1\n";

static float images[ROWS * PLANE];

static void write_arrays(void) {
  int32_t labels[ROWS];
  for (int i = 0; i < ROWS * PLANE; i++) images[i] = (float)(i * 37 % 101) / 50 - 1;
  for (int i = 0; i < ROWS; i++) labels[i] = i % 4;
  write_npy("images.npy", ROWS, "1, 6, 6", images, ROWS * PLANE);
  write_array("labels.npy", "<i4", ROWS, "", labels, sizeof labels);
  write_npy("later.npy", ROWS / 2, "1, 6, 6", images + ROWS / 2 * PLANE, ROWS / 2 * PLANE);
  file_write("arrays.ini", arrays_ini);
}

#define STEP "runs/arrays/samples/step-00000004/"

static void expect_table(void) {
  char text[64];
  assert_int_equal(
      program_run(
          "predict runs/arrays --weights runs/arrays/checkpoints/last --input later.npy --output s.npy"),
      0);
  const float *scores = read_npy("s.npy", "8, 4", 32);
  assert_string_equal(cell(STEP "table.md", 0, 1), "label (target)");
  assert_string_equal(cell(STEP "table.md", 0, 2), "output (output)");
  for (int i = 0; i < 3; i++) {
    int best = 0;
    double sum = 0;
    for (int k = 1; k < 4; k++) best = scores[4 * i + k] > scores[4 * i + best] ? k : best;
    for (int k = 0; k < 4; k++) sum += exp((double)scores[4 * i + k] - (double)scores[4 * i + best]);
    snprintf(text, sizeof text, "%d %.2f", best, 1 / sum);
    assert_string_equal(cell(STEP "table.md", i + 1, 2), text);
    snprintf(text, sizeof text, "%d", i % 4);
    assert_string_equal(cell(STEP "table.md", i + 1, 1), text);
  }
  assert_false(file_exists(STEP "3.png"));
}

static void expect_pixels(void) {
  for (int i = 0; i < 3; i++) {
    char path[64];
    snprintf(path, sizeof path, STEP "%d.png", i);
    const picture p = read_png(path);
    const float *values = images + (ROWS / 2 + i) * PLANE;
    double low = 9, high = -9;
    for (int k = 0; k < PLANE; k++) low = fmin(low, (double)values[k]), high = fmax(high, (double)values[k]);
    assert_true(p.width == SIDE && p.height == SIDE);
    for (uint32_t k = 0; k < PLANE; k++)
      assert_int_equal(pixel(&p, k % SIDE, k / SIDE)[1],
                       (int)(((double)values[k] - low) * 255 / (high - low) + 0.5));
  }
}

static void samples_are_those_of_predict(void **state) {
  (void)state;
  write_arrays();
  train("arrays.ini", "");
  expect_table();
  expect_pixels();
}

/* ---- the places that samples go to ---- */

static void all_observers_have_them(void **state) {
  (void)state;
  size_t n;
  write_arrays();
  train("arrays.ini", "--set run.observers=mlflow --set run.report=yes");
  const char *lines = file_read("runs/arrays/metrics.jsonl", &n);
  assert_non_null(strstr(lines, "{\"event\": \"samples\", \"epoch\": 2, \"step\": 4, "));
  assert_non_null(strstr(lines, "\"files\": [\"samples/step-00000004/0.png\", "));
  const char *page = file_read("runs/arrays/report.html", &n);
  assert_non_null(strstr(page, "\"step\":2,\"texts\":{\"table\":\"| sample | label (target) |"));
  assert_non_null(strstr(page, "\"data:image/png;base64,iVBORw0KGgo"));
  assert_int_equal(system("cmp -s mlruns/*/*/artifacts/samples/step-00000004/0.png " STEP "0.png"), 0);
}

/* Samples of steps behind the checkpoint are those of the resumed run. */
static void a_resumed_run_takes_its_steps_again(void **state) {
  (void)state;
  struct stat before, after;
  write_arrays();
  train("arrays.ini", "--set run.epochs=1");
  assert_int_equal(stat("runs/arrays/samples/step-00000002/0.png", &before), 0);
  assert_int_equal(mkdir("runs/arrays/samples/step-00000003", 0777), 0);
  file_write("runs/arrays/samples/step-00000003/0.png", "");
  train("arrays.ini", "--resume auto --set run.sample_fields=image");
  assert_false(file_exists("runs/arrays/samples/step-00000003"));
  assert_true(file_exists(STEP "2.png"));
  assert_int_equal(stat("runs/arrays/samples/step-00000002/0.png", &after), 0);
  assert_true(before.st_ino == after.st_ino);
  assert_true(file_exists("runs/arrays/samples/step-00000002/table.md"));
  assert_false(file_exists(STEP "table.md")); /* the fields without cells */
}

/* ---- the training ---- */

static void samples_change_no_weight(void **state) {
  static const char *const ways[] = {"--set optimizer.ema=0.9",
                                     "--set backend.use=sim --set backend.sim.devices=2 --set "
                                     "distributed.devices=2 --set distributed.shard=optimizer"};
  (void)state;
  file_write("noise.ini", noise_ini);
  for (int i = 0; i < 2; i++) {
    char more[256], folders[2][64];
    for (int k = 0; k < 2; k++) {
      snprintf(more, sizeof more, "%s --set run.name=run%d%d --set run.samples=%d", ways[i], i, k, k * 5);
      train("noise.ini", more);
      snprintf(folders[k], sizeof folders[k], "runs/run%d%d/checkpoints/last", i, k);
    }
    checkpoint_folders_equal(folders[0], folders[1]);
    snprintf(more, sizeof more, "runs/run%d1/samples/step-00000020/table.md", i);
    assert_int_equal(file_lines(more), 7);
  }
}

/* ---- pictures that the model makes ---- */

#define PICTURES(TARGETS, LAYERS, LOSS)                                                                      \
  "[run]\nname = net\nepochs = 1\nsamples = 2\n[data]\nsource = random\nclasses = 5\n"                       \
  "fields = image: f32[1, 8, 8]\ntargets = " TARGETS "\nsamples = 8\nbatch = 4\n"                            \
  "[model]\ninputs = image: f32[1, 8, 8]\ntargets = " TARGETS "\nlayers =\n" LAYERS "loss = " LOSS "\n"      \
  "[optimizer]\ntype = sgd\nlr = 0.1\n"

static picture first_picture(const char *name, const char *ini, const char *more) {
  char path[64], settings[128];
  file_write("net.ini", ini);
  snprintf(settings, sizeof settings, "--set run.name=%s %s", name, more);
  train("net.ini", settings);
  snprintf(path, sizeof path, "runs/%s/samples/step-00000002/0.png", name);
  return read_png(path);
}

/* Whether the panel that begins at column `left` has only colors of that many classes, half over the input.
 */
static void expect_mask(const picture *p, uint32_t left, int classes) {
  static const unsigned char colors[5][3] = {{0, 0, 0}, {128, 0, 0}, {0, 128, 0}, {128, 128, 0}, {0, 0, 128}};
  for (uint32_t k = 0; k < 64; k++) {
    const unsigned char *has = pixel(p, left + k % 8, k / 8), *under = pixel(p, k % 8, k / 8);
    int found = 0;
    for (int c = 0; c < classes; c++) {
      unsigned char blend[3];
      for (int i = 0; i < 3; i++)
        blend[i] = c == 0 ? under[i] : (unsigned char)((under[i] + colors[c][i] + 1) / 2);
      found = found || memcmp(has, blend, 3) == 0;
    }
    assert_true(found);
  }
}

/* Scores of few classes in front come to the host, others as classes. */
static void masks_lie_over_their_picture(void **state) {
  (void)state;
  const picture many = first_picture(
      "many", PICTURES("mask: i32[8, 8]", "    conv: conv2d(5, kernel=1)\n", "cross_entropy(axis=1)"), "");
  assert_true(many.width == 3 * 8 + 2 * 2 && many.height == 8);
  expect_mask(&many, 10, 5);
  expect_mask(&many, 20, 5);
  const picture few = first_picture(
      "few", PICTURES("mask: i32[8, 8]", "    conv: conv2d(3, kernel=1)\n", "cross_entropy(axis=1)"),
      "--set data.classes=3");
  assert_true(few.width == 28);
  expect_mask(&few, 20, 3);
  const picture last = first_picture(
      "last",
      PICTURES("mask: i32[8, 8]", "    conv: conv2d(2, kernel=1)\n    last = transpose(conv, [0, 2, 3, 1])\n",
               "cross_entropy"),
      "--set data.classes=2");
  expect_mask(&last, 20, 2);
}

static void an_output_may_be_a_picture(void **state) {
  (void)state;
  const picture p = first_picture(
      "net", PICTURES("clean: f32[1, 8, 8]", "    conv: conv2d(1, kernel=3, padding=1)\n", "mse"), "");
  assert_true(p.width == 3 * 8 + 2 * 2 && p.height == 8);
  assert_int_equal(pixel(&p, 8, 0)[0], 255); /* between the panels */
}

/* ---- texts, beside `tenon generate` ---- */

/* Trains on bytes, and returns the path of the table. */
static const char *text_table(const char *ini) {
  static char path[64];
  write_pattern();
  file_write("text.ini", ini);
  train("text.ini", "--set run.samples=2 --set run.sample_tokens=5 --set run.epochs=1");
  for (int step = 0; step < 1000; step++) {
    snprintf(path, sizeof path, "runs/text/samples/step-%08d/table.md", step);
    if (file_exists(path)) return path;
  }
  fail_msg("there is no table");
  return "";
}

/* The bytes of a cell, "84,111,32". */
static void bytes_of(const char *text, char *list, size_t room) {
  static const char line_end[] = " \xE2\x8F\x8E ";
  list[0] = '\0';
  for (size_t n = 0; *text != '\0';) {
    int is_end = strncmp(text, line_end, sizeof line_end - 1) == 0;
    n += (size_t)snprintf(list + n, room - n, "%s%d", n > 0 ? "," : "", is_end ? '\n' : *text);
    text += is_end ? (int)sizeof line_end - 1 : 1;
  }
}

static void a_continuation_is_that_of_generate(void **state) {
  (void)state;
  char prompt[128], made[128], expected[128];
  const char *path = text_table(TEXT_INI("bytes", "256", "yes"));
  assert_string_equal(cell(path, 0, 1), "tokens (input)");
  assert_string_equal(cell(path, 0, 5), "continuation");
  for (int row = 1; row <= 2; row++) {
    size_t n = 0;
    bytes_of(cell(path, row, 4), prompt, sizeof prompt);
    bytes_of(cell(path, row, 5), made, sizeof made);
    const json_t *r = program_json(
        0, "generate text.ini --weights runs/text --prompt-tokens %s --tokens 5 --temperature 0", prompt);
    for (size_t i = 0; i < 5; i++)
      n += (size_t)snprintf(expected + n, sizeof expected - n, "%s%lld", i > 0 ? "," : "",
                            (long long)json_integer_value(json_array_get(program_member(r, "tokens"), i)));
    assert_string_equal(made, expected);
  }
}

static void a_model_that_sees_later_tokens_has_none(void **state) {
  (void)state;
  const char *path = text_table(TEXT_INI("bytes", "256", "no"));
  assert_string_equal(cell(path, 0, 3), "output (output)");
  assert_null(strstr(file_read(path, NULL), "continuation"));
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(samples_are_those_of_predict),        CASE(all_observers_have_them),
      CASE(a_resumed_run_takes_its_steps_again), CASE(samples_change_no_weight),
      CASE(masks_lie_over_their_picture),        CASE(an_output_may_be_a_picture),
      CASE(a_continuation_is_that_of_generate),  CASE(a_model_that_sees_later_tokens_has_none)};
  return cmocka_run_group_tests_name("samples", tests, NULL, NULL);
}

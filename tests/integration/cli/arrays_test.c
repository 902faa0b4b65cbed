/* The sources arrays and tokens: tasks of several kinds, and the same batches for any workers, devices and
 * pauses. */
#include <math.h>
#include <sys/stat.h>

#include "npy_files.h"

enum { ROWS = 40, PIXELS = 16 };

/* Pictures whose upper half is bright where the label is 1; masks of the bright pixels, two labels, means. */
static void write_data(void) {
  static float pictures[ROWS * PIXELS], sums[ROWS];
  static uint8_t masks[ROWS * PIXELS], both[ROWS * 2];
  static int64_t labels[ROWS];
  for (int i = 0; i < ROWS; i++) {
    labels[i] = i * 5 % 7 % 2;
    sums[i] = 0;
    for (int k = 0; k < PIXELS; k++) {
      pictures[i * PIXELS + k] = (float)((i * 37 + k * 11) % 17) / 17 + (float)(k < 8 && labels[i]);
      masks[i * PIXELS + k] = pictures[i * PIXELS + k] > 1;
      sums[i] += pictures[i * PIXELS + k] / PIXELS;
    }
    both[2 * i] = (uint8_t)labels[i];
    both[2 * i + 1] = (uint8_t)(i % 2);
  }
  write_array("x.npy", "<f4", ROWS, "1, 4, 4", pictures, sizeof pictures);
  write_array("mask.npy", "|u1", ROWS, "4, 4", masks, sizeof masks);
  write_array("both.npy", "|u1", ROWS, "2", both, sizeof both);
  file_write_bytes("y.bin", labels, sizeof labels);
  file_write_bytes("sum.bin", sums, sizeof sums);
}

#define X "inputs = x: f32[1, 4, 4]\n"

static void write_config(const char *data, const char *model) {
  char text[4096];
  snprintf(text, sizeof text,
           "[run]\nname = run\nepochs = 2\n[data]\nsource = arrays\nfolder = .\nbatch = 4\nsplit = 0.1\n%s"
           "[model]\n%s[optimizer]\ntype = adamw\nlr = 0.05\n",
           data, model);
  file_write("net.ini", text);
}

static void classify(void) {
  write_data();
  write_config("inputs = x: x.npy\ntargets = y: y.bin i64[]\n",
               X "targets = y: i32[]\nlayers =\n    flatten\n    fc: linear(2)\nloss = cross_entropy\n"
                 "metrics = accuracy\n");
}

/* ---- tasks ---- */

/* Trains, and evaluates the run from another folder. */
static double learns(double from) {
  const json_t *r = program_json(0, "train net.ini --set run.epochs=15");
  double valid = program_number(r, "valid.loss");
  if (!(program_number(r, "train.loss") < from)) fail_msg("the loss is %g", program_number(r, "train.loss"));
  const char *run = program_text(r, "run") + strlen("runs/");
  program_place("runs");
  double again = program_number(program_json(0, "eval %s --weights %s/checkpoints/last", run, run), "loss");
  if (!(fabs(again - valid) < 1e-6)) fail_msg("evaluated the loss is %.9g, expected %.9g", again, valid);
  program_place(".");
  return valid;
}

static void classes_masks_labels_numbers_and_pairs_are_learnt(void **state) {
  (void)state;
  classify();
  learns(0.3);
  const json_t *r = program_json(0, "eval runs/run --classes");
  assert_int_equal(json_array_size(program_member(r, "by_class")), 2);
  write_config("inputs = x: x.npy\ntargets = mask: mask.npy 0..1\n", X
               "targets = mask: i32[4, 4]\nlayers = head: conv2d(2, kernel=1)\nloss = cross_entropy(axis=1)\n"
               "metrics = mean_iou\n");
  learns(0.4);
  write_config(
      "inputs = x: x.npy\ntargets = labels: both.npy as f32\n",
      X "targets = labels: f32[2]\nlayers =\n    flatten\n    fc: linear(2)\nloss = binary_cross_entropy\n");
  learns(0.6);
  write_config("inputs = x: x.npy\ntargets = sum: sum.bin f32[1]\n",
               X "targets = sum: f32[1]\nlayers =\n    flatten\n    fc: linear(1)\nloss = mse\n");
  learns(0.05);
  write_config("inputs = x: x.npy, other: x.npy as f32[16]\ntargets = y: y.bin i64[]\n",
               "inputs = x: f32[1, 4, 4], other: f32[16]\ntargets = y: i32[]\nlayers =\n    a: flatten <- "
               "x\n    b: concat(axis=1) "
               "<- a, other\n"
               "    fc: linear(2)\nloss = cross_entropy\n");
  learns(0.3);
}

/* ---- the same batches ---- */

static void check_same_batches(const char *options) {
  program_json(0, "train net.ini --output whole %s", options);
  program_json(0, "train net.ini --output parts --set run.max_steps=5 %s", options);
  program_json(0, "train net.ini --output parts --resume auto %s", options);
  checkpoints_equal("whole", "parts");
  program_json(0, "train net.ini --output other --set data.workers=0 %s", options);
  checkpoints_equal("whole", "other");
  double one = program_number(program_json(0, "train net.ini --output one --set backend.use=sim %s", options),
                              "train.loss");
  const json_t *two = program_json(0,
                                   "train net.ini --output two --set backend.use=sim "
                                   "--set backend.sim.devices=2 --set distributed.devices=2 %s",
                                   options);
  assert_true(fabs(program_number(two, "train.loss") - one) < 1e-5);
}

static void arrays_are_read_alike_however_it_runs(void **state) {
  (void)state;
  classify();
  check_same_batches("");
  program_json(0, "train net.ini --output even --set data.balance=yes --set run.epochs=1");
}

static void tokens_are_read_alike_however_it_runs(void **state) {
  (void)state;
  static uint16_t tokens[400];
  for (int i = 0; i < 400; i++) tokens[i] = (uint16_t)(i % 23 == 0 ? 0 : 1 + i * i % 11);
  file_write_bytes("part_1.bin", tokens, sizeof tokens);
  file_write_bytes("part_2.bin", tokens + 100, 300 * sizeof *tokens);
  file_write("net.ini",
             "[run]\nname = run\nepochs = 2\n[data]\nsource = tokens\nfolder = .\nfiles = part_*.bin\n"
             "tokens = 8\nstride = 6\nsplit = 0.1\ndocument = 0\nbatch = 8\n"
             "[model]\ninputs = tokens: i32[8]\ntargets = next: i32[8]\n"
             "layers =\n    e: embedding(12, 8)\n    fc: linear(12)\nloss = cross_entropy\n"
             "metrics = perplexity\n[optimizer]\ntype = adamw\nlr = 0.01\n");
  check_same_batches("");
}

/* ---- mistakes ---- */

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, program_err);
}

static void mistakes_have_their_line(void **state) {
  (void)state;
  classify();
  program_json(65, "train net.ini --set data.targets=y:mask.npy");
  says("field 'y' is i32[4, 4], but the model takes i32[]");
  program_json(65, "train net.ini --set data.inputs=x:both.npy");
  says("field 'x' is u8[2], but the model takes f32[1, 4, 4]");
  file_write("short.bin", "four");
  write_config("inputs = x: x.npy,\n    z: short.bin f32[]\ntargets = y: y.bin i64[]\n",
               X "layers =\n    flatten\n    fc: linear(2)\nloss = cross_entropy\n");
  program_json(65, "train net.ini");
  says("net.ini:5: source 'arrays': inputs: ");
  says("short.bin of field 'z' has 1 rows, but ");
  says("x.npy of field 'x' has 40, expected as many");
}

/* ---- tenon init ---- */

static void has(const char *file, const char *text) {
  if (strstr(file_read(file, NULL), text) == NULL)
    fail_msg("%s lacks '%s':\n%s", file, text, file_read(file, NULL));
}

/* Writes PATH.ini for PATH, and trains it. */
static void proposes(const char *path, const char *name, const char *kind, const char *loss) {
  const json_t *r = program_json(0, "init %s --output %s.ini", path, name);
  assert_string_equal(program_text(r, "kind"), kind);
  r = program_json(0, "train %s.ini --set run.epochs=1", name);
  char text[128], file[128];
  snprintf(file, sizeof file, "%s.ini", name);
  snprintf(text, sizeof text, "loss = %s\n", loss);
  has(file, text);
  assert_true(program_number(r, "valid.loss") > 0);
}

static void init_proposes_a_model_for_arrays(void **state) {
  (void)state;
  static uint8_t pictures[40 * 64], masks[40 * 64];
  static int64_t labels[40];
  static float values[40 * 3];
  for (int i = 0; i < 40 * 64; i++) masks[i] = (pictures[i] = (uint8_t)(i * 7 % 251)) > 100;
  for (int i = 0; i < 40; i++) labels[i] = i % 3;
  for (int i = 0; i < 120; i++) values[i] = (float)(i % 11);
  static const char *const folders[] = {"classes", "masks", "numbers"};
  for (int i = 0; i < 3; i++) assert_int_equal(mkdir(folders[i], 0777), 0);
  write_array("classes/x_train.npy", "|u1", 40, "8, 8", pictures, sizeof pictures);
  write_array("classes/y_train.npy", "<i8", 40, "1", labels, sizeof labels);
  write_array("classes/x_test.npy", "|u1", 20, "8, 8", pictures, sizeof pictures / 2);
  write_array("classes/y_test.npy", "<i8", 20, "1", labels, sizeof labels / 2);
  proposes("classes", "classes", "arrays", "cross_entropy");
  has("classes.ini", "valid = x: x_test.npy as u8[1, 8, 8],\n    y: y_test.npy as i32[] 0..2\n");
  write_array("masks/image.npy", "|u1", 40, "8, 8", pictures, sizeof pictures);
  write_array("masks/masks.npy", "|u1", 40, "8, 8", masks, sizeof masks);
  proposes("masks", "masks", "arrays", "cross_entropy(axis=1, ignore=255)");
  write_array("numbers/a.npy", "<f4", 40, "3", values, sizeof values);
  write_array("numbers/b.npy", "<i8", 40, "1", labels, sizeof labels);
  write_array("numbers/target.npy", "<f4", 40, "3", values, sizeof values);
  write_array("numbers/other.npy", "<f4", 20, "3", values, sizeof values / 2);
  proposes("numbers", "numbers", "arrays", "mse");
  has("numbers.ini", "inputs = a: a.npy as f32[3],\n    b: b.npy as f32[1]\n");
  proposes(FILES "/packed.npz", "packed", "arrays", "cross_entropy");
  has("packed.ini", "y: packed.npz/y 0..3,\n    mask: packed.npz/mask as f32[4]\n");
  file_write_bytes("numbers/a.npy", "", 0);
  assert_int_equal(program_run("init numbers --output none.ini"), 74);
}

static void init_proposes_a_model_for_tokens(void **state) {
  (void)state;
  static uint16_t tokens[600];
  static uint32_t header[256] = {20240520, 1, 600};
  for (int i = 0; i < 600; i++) tokens[i] = (uint16_t)(i * i % 250);
  static uint8_t headed[sizeof header + sizeof tokens];
  memcpy(headed, header, sizeof header);
  memcpy(headed + sizeof header, tokens, sizeof tokens);
  file_write_bytes("my_train.bin", tokens, sizeof tokens);
  proposes("my_train.bin", "plain", "tokens", "cross_entropy");
  has("plain.ini", "split = 0.1\n");
  file_write_bytes("my_val.bin", headed, sizeof headed);
  file_write_bytes("headed_train", headed, sizeof headed);
  proposes("my_train.bin", "both", "tokens", "cross_entropy");
  has("both.ini", "files = my_train.bin\nvalid = my_val.bin\n");
  proposes("headed_train", "headed", "tokens", "cross_entropy");
  has("headed.ini", "classes = 256\n");
  file_write_bytes("short.bin", tokens, 100);
  assert_int_equal(program_run("init short.bin --output none.ini"), 65);
  says("short.bin: has 50 tokens of 16 or 32 bits, expected at least 200");
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(classes_masks_labels_numbers_and_pairs_are_learnt),
      CASE(arrays_are_read_alike_however_it_runs),
      CASE(tokens_are_read_alike_however_it_runs),
      CASE(mistakes_have_their_line),
      CASE(init_proposes_a_model_for_arrays),
      CASE(init_proposes_a_model_for_tokens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

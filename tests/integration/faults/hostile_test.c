/* Broken and malicious files of every kind that the program reads. Each is refused with an exit code and a
 * message that names the file and the fault; files that a run can do without give a warning.
 * (tests/integration/wrong has invalid configurations.) */
#include "configs.h"
#include "program.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The contents of the file: bytes as given here, or a valid file with a change. */
enum { AS_IT_IS, CUT, SET, APPEND };
typedef struct hostile {
  const char *name;
  const char *bytes;
  size_t n;
  int change; /* change of the valid file at byte `at`: cut it there, or write `bytes` there */
  size_t at;
  int code;
  const char *says;
} hostile;

#define B(text) text, sizeof(text) - 1

static void check(const char *kind, const hostile *h, int code) {
  if (code == h->code && strstr(program_err, h->says)) return;
  fail_msg("%s, %s: %d, expected %d and '%s': %.400s", kind, h->name, code, h->code, h->says, program_err);
}

/* Writes the file of a case; `good` is the path of a valid one. */
static void make(const hostile *h, const char *good, const char *path) {
  size_t n = 0;
  if (h->change == AS_IT_IS) {
    file_write_bytes(path, h->bytes, h->n);
    return;
  }
  char *whole = file_read(good, &n), *bytes = malloc(n + h->n + 1);
  assert_non_null(bytes);
  memcpy(bytes, whole, n);
  size_t at = h->change == APPEND ? n : h->at;
  assert_true(at <= n);
  if (h->change != CUT) memcpy(bytes + at, h->bytes, h->n);
  size_t end = h->change == CUT || at + h->n > n ? at + (h->change == CUT ? 0 : h->n) : n;
  file_write_bytes(path, bytes, end);
  free(bytes);
}

/* ---- IDX ---- */

static const char idx_ini[] = "[run]\nmax_steps = 1\noutput =\n"
                              "[data]\nsource = idx\nimages = images\nlabels = labels\nbatch = 2\n"
                              "transforms = to_float\n"
                              "[model]\ninputs = image: f32[1, 2, 2]\nlayers =\n         flatten\n"
                              "    fc: linear(3)\nloss = cross_entropy\n";
#define IMAGES                                                                                               \
  "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02"                                                               \
  "abcdefgh"
#define LABELS "\0\0\x08\x01\0\0\0\x02\x01\x02"

static const hostile idx_images[] = {
    {"nothing at all", B(""), 0, 0, 65, "images"},
    {"another format", B("GIF89a, not numbers at all"), 0, 0, 65, "not an IDX file"},
    {"floats",
     B("\0\0\x0d\x03\0\0\0\x01\0\0\0\x01\0\0\0\x01"
       "abcd"),
     0, 0, 65, "elements of type 0x0d"},
    {"no dimension", B("\0\0\x08\0"), 0, 0, 65, "has 0 dimensions"},
    {"255 dimensions",
     B("\0\0\x08\xff"
       "0000000000000000"),
     0, 0, 65, "has 255 dimensions"},
    {"a header that ends", B("\0\0\x08\x03\0\0\0\x02\0\0"), 0, 0, 65, "ends after"},
    {"data that end",
     B("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02"
       "abc"),
     0, 0, 65, "ends after"},
    {"data that go on", B(IMAGES "more"), 0, 0, 65, "has more than the"},
    {"sizes whose product overflows", B("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), 0, 0,
     65, "declares more elements than"},
    {"two dimensions",
     B("\0\0\x08\x02\0\0\0\x02\0\0\0\x02"
       "abcd"),
     0, 0, 65, "not a file of images"},
    {"gzip of nothing", B("\x1f\x8b\x08\0\0\0\0\0\0\x03"), 0, 0, 65, "images"},
    {"garbage for gzip data", B("\x1f\x8b\x08\0\0\0\0\0\0\x03garbage, more garbage"), 0, 0, 65,
     "damaged gzip"},
};
static const hostile idx_labels[] = {
    {"fewer than images", B("\0\0\x08\x01\0\0\0\x01\x01"), 0, 0, 65, "has 1 labels for 2 images"},
    {"three dimensions", B(IMAGES), 0, 0, 65, "not a file of labels"},
    {"a class beyond the model's", B("\0\0\x08\x01\0\0\0\x02\x01\x09"), 0, 0, 65, ""},
};

static int idx(const hostile *h, const char *which) {
  file_write("idx.ini", idx_ini);
  file_write_bytes("images", B(IMAGES));
  file_write_bytes("labels", B(LABELS));
  make(h, NULL, which);
  return program_run("train idx.ini");
}

/* ---- NPY ---- */

#define NPY(dict) "\x93NUMPY\x01\0\x50\0" dict
static const hostile arrays[] = {
    {"nothing at all", B(""), 0, 0, 65, "x.npy"},
    {"another format", B("PK\x03\x04 a zip"), 0, 0, 65, "not a .npy file"},
    {"a version to come", B("\x93NUMPY\x09\0\x10\0{}"), 0, 0, 69, "version 9.0"},
    {"a header of 4 GB", B("\x93NUMPY\x02\0\xff\xff\xff\xff{"), 0, 0, 65, "a header of 4294967295 bytes"},
    {"a header that ends", B("\x93NUMPY\x01\0\x50\0{'descr': '<f4'"), 0, 0, 65, "cut off in its header"},
    {"Python in the header", B("\x93NUMPY\x01\0\x14\0__import__('os')    "), 0, 0, 65, "header is damaged"},
    {"objects", B("\x93NUMPY\x01\0\x3c\0{'descr': '|O', 'fortran_order': False, 'shape': (1,)}      \n"), 0,
     0, 69, "type '|O' is not supported"},
    {"big-endian numbers",
     B("\x93NUMPY\x01\0\x3c\0{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}     \n"), 0, 0, 69,
     "type '>f4' is not supported"},
    {"Fortran order", B("\x93NUMPY\x01\0\x3c\0{'descr': '<f4', 'fortran_order': True, 'shape': (1,36)}   \n"),
     0, 0, 69, "Fortran order"},
    {"a negative dimension",
     B("\x93NUMPY\x01\0\x3c\0{'descr': '<f4', 'fortran_order': False, 'shape': (-1,36)} \n"), 0, 0, 65,
     "x.npy"},
    {"more than can be counted",
     B("\x93NUMPY\x01\0\x6c\0{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, "
       "9223372036854775807)}              \n"),
     0, 0, 65, "more bytes than can be counted"},
    {"fewer numbers than the shape",
     B("\x93NUMPY\x01\0\x44\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,1,6,6)}       \n"
       "1234"),
     0, 0, 65, "bytes of data, but its shape needs"},
};

/* ---- safetensors ---- */

static const hostile weights[] = {
    {"nothing at all", B(""), 0, 0, 65, "not a safetensors file"},
    {"a pickle",
     B("\x80\x02}q\0(X\x04\0\0\0evilq\x01"
       "cos\nsystem\n."),
     0, 0, 65, "not a safetensors file"},
    {"a header longer than any", B("\xff\xff\xff\xff\xff\xff\xff\xff{}"), 0, 0, 65, "a header of"},
    {"a header longer than the file", B("\xff\0\0\0\0\0\0\0{}"), 0, 0, 65, "w.safetensors"},
    {"a header that is no JSON", B("\x08\0\0\0\0\0\0\0{\"a\": ,}"), 0, 0, 65, "w.safetensors"},
    {"a list for a header", B("\x08\0\0\0\0\0\0\0[1,2,3 ]"), 0, 0, 65, "w.safetensors"},
    {"offsets behind the end",
     B("\x48\0\0\0\0\0\0\0{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4000]}}   "),
     0, 0, 65, "w.safetensors"},
    {"offsets that run backwards",
     B("\x48\0\0\0\0\0\0\0{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}      "
       "abcd"),
     0, 0, 65, "w.safetensors"},
    {"a type to come",
     B("\x48\0\0\0\0\0\0\0{\"fc1.weight\":{\"dtype\":\"F3\",\"shape\":[1],\"data_offsets\":[0,4]}}       "
       "abcd"),
     0, 0, 65, "w.safetensors"},
    {"a shape that overflows",
     B("\x70\0\0\0\0\0\0\0{\"fc1.weight\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,8],\"data_"
       "offsets\":[0,4]}}"
       "                        abcd"),
     0, 0, 65, "w.safetensors"},
    {"cut in its data", NULL, 0, CUT, 700, 65, "w.safetensors"},
    {"with bytes behind its data", B("more"), APPEND, 0, 65, "w.safetensors"},
};

/* ---- pictures ---- */

static const char picture_ini[] = "[run]\nmax_steps = 1\noutput =\n"
                                  "[data]\nsource = image_folder\nfolder = pictures\nbatch = 1\nworkers = 0\n"
                                  "transforms = resize([4, 4]), to_float\n"
                                  "[model]\ninputs = image: f32[3, 4, 4]\nlayers =\n         flatten\n"
                                  "    fc: linear(2)\nloss = cross_entropy\n";
static const hostile jpegs[] = {
    {"nothing at all", B(""), 0, 0, 65, "x.jpg"},
    {"a text", B("I am a picture, believe me"), 0, 0, 65, "neither JPEG, PNG, WebP, TIFF nor AVIF"},
    {"a start and no more", B("\xff\xd8\xff"), 0, 0, 65, "x.jpg"},
    {"cut in its header", NULL, 0, CUT, 60, 65, "x.jpg"},
    {"cut in its data", NULL, 0, CUT, 620, 65, "x.jpg"},
    {"65535 x 65535 pixels",
     B("\xff\xd8\xff\xc0\0\x11\x08\xff\xff\xff\xff\x03\x01\x11\0\x02\x11\0\x03\x11\0\xff\xda\0\x0c\x03\x01\0"
       "\x02\0\x03"
       "\0\0\x3f\0\xff\xd9"),
     0, 0, 65, "x.jpg"},
    {"garbage behind its start", B("\xff\xd8\xff\xe0\0\x10garbage garbage garbage"), 0, 0, 65, "x.jpg"},
};
#define PNG "\x89PNG\r\n\x1a\n"
static const hostile pngs[] = {
    {"a signature and no more", B(PNG), 0, 0, 65, "x.png"},
    {"cut in its header", NULL, 0, CUT, 20, 65, "x.png"},
    {"cut in its data", NULL, 0, CUT, 60, 65, "x.png"},
    {"a wrong sum", B("\x7f"), SET, 30, 65, "damaged PNG"},
    {"no pixels", B(PNG "\0\0\0\x0dIHDR\0\0\0\0\0\0\0\0\x08\x02\0\0\0\x6f\x17\x16\xea"), 0, 0, 65, "x.png"},
    {"two thousand million pixels a side",
     B(PNG "\0\0\0\x0dIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x02\0\0\0\0\0\0\0"), 0, 0, 65, "x.png"},
    {"a chunk of 4 GB", B(PNG "\xff\xff\xff\xffIHDR"), 0, 0, 65, "x.png"},
};

static int picture(const hostile *h, const char *name, const char *good) {
  char path[64];
  file_write("picture.ini", picture_ini);
  mkdir("pictures", 0777), mkdir("pictures/train", 0777);
  mkdir("pictures/train/a", 0777), mkdir("pictures/train/b", 0777);
  unlink("pictures/train/a/x.jpg"), unlink("pictures/train/a/x.png");
  size_t n;
  const char *whole = file_read(SEEDS "/png/rgb.png", &n);
  file_write_bytes("pictures/train/b/y.png", whole, n);
  snprintf(path, sizeof path, "pictures/train/a/%s", name);
  make(h, good, path);
  return program_run("train picture.ini");
}

/* ---- text ---- */

static const char text_ini[] = "[run]\nmax_steps = 1\noutput =\n"
                               "[data]\nsource = text\nfile = x.txt\ntokens = 8\nbatch = 1\nsplit = 0\n"
                               "[model]\ninputs = tokens: i32[8]\ntargets = next: i32[8]\nlayers =\n"
                               "    wte: embedding(64, 4)\n    head: linear(64)\nloss = cross_entropy\n";
static const hostile texts[] = {
    {"nothing at all", B(""), 0, 0, 65, "x.txt"},
    {"shorter than a window", B("short"), 0, 0, 65, "expected more than 8, the window"},
    {"Latin-1", B("caf\xe9 caf\xe9 caf\xe9 caf\xe9"), 0, 0, 65, "byte 3 is not UTF-8"},
    {"a surrogate", B("abcdefgh\xed\xa0\x80ijklmnop"), 0, 0, 65, "byte 8 is not UTF-8"},
    {"an overlong slash", B("abcdefgh\xc0\xafijklmnop"), 0, 0, 65, "byte 8 is not UTF-8"},
    {"a character that ends with the file", B("abcdefghijklmnop\xf0\x9f\x98"), 0, 0, 65,
     "byte 16 is not UTF-8"},
};

/* ---- configurations and models ---- */

static const hostile inis[] = {
    {"nothing at all", B(""), 0, 0, 65, "x.ini"},
    {"a NUL", B("[run]\nname = a\0b\n"), 0, 0, 65, "x.ini:2"},
    {"a program",
     B("\x7f"
       "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0"),
     0, 0, 65, "x.ini:1"},
    {"UTF-16", B("\xff\xfe[\0r\0u\0n\0]\0\n\0"), 0, 0, 65, "x.ini:1"},
    {"itself included", B("include = x.ini\n"), 0, 0, 65, "x.ini"},
    {"a block that calls itself",
     B("[model]\ninputs = x: f32[1]\nlayers =\n    a: b\nloss = mse\n[block b]\nlayers =\n    c: b\n"), 0, 0,
     65, "x.ini:"},
    {"more repeats than memory",
     B("[model]\ninputs = x: f32[1]\nlayers =\n    a: linear(1) * 999999999\nloss = mse\n"), 0, 0, 65,
     "x.ini:4"},
    {"more weights than memory",
     B("[model]\ninputs = x: f32[999999999]\nlayers =\n    a: linear(9999999999999)\nloss = mse\n"), 0, 0, 65,
     "x.ini:"},
    {"a shape that overflows",
     B("[model]\ninputs = x: f32[9223372036854775807, 9223372036854775807]\nlayers = relu\n"
       "loss = mse\n"),
     0, 0, 65, "x.ini:2"},
};

/* A hundred thousand brackets; a line of a million letters. */
static void a_configuration_of_one_sign(const char *before, char sign, size_t n) {
  char *bytes = malloc(n + 256);
  assert_non_null(bytes);
  size_t head = (size_t)snprintf(bytes, 256, "%s", before);
  memset(bytes + head, sign, n);
  bytes[head + n] = '\n';
  file_write_bytes("x.ini", bytes, head + n + 1);
  free(bytes);
  int code = program_run("plan x.ini");
  if (code != 65 || strstr(program_err, "x.ini:") == NULL)
    fail_msg("%zu of '%c': %d %.300s", n, sign, code, program_err);
}

/* ---- plugins ---- */

static const hostile plugins[] = {
    {"nothing at all", B(""), 0, 0, 69, "x.so"},
    {"a text", B("int main(void) { return 0; }\n"), 0, 0, 69, "x.so"},
    {"a header and no more",
     B("\x7f"
       "ELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0"),
     0, 0, 69, "x.so"},
    {"cut in the middle", NULL, 0, CUT, 3000, 69, "x.so"},
    {"of another machine", B("\xb7\0"), SET, 18, 69, "x.so"},
    {"of 32 bits", B("\x01"), SET, 4, 69, "x.so"},
    {"sections that lie nowhere", B("\xff\xff\xff\xff\xff\xff\xff\x7f"), SET, 32, 69, "x.so"},
};

/* ---- what a run keeps ---- */

static const hostile states[] = {
    {"nothing at all", B(""), 0, 0, 65, "state.json"},
    {"no JSON", B("{\"step\": "), 0, 0, 65, "state.json"},
    {"a list", B("[]"), 0, 0, 65, "state.json"},
    {"a format to come", B("{\"format\": 99}"), 0, 0, 65, "state.json"},
    {"a step below zero", B("{\"format\": 2, \"step\": -1}"), 0, 0, 65, "state.json"},
    {"no sum", B("{\"format\": 2, \"step\": 3, \"epoch\": 0, \"batch\": 3, \"ended\": false}"), 0, 0, 65,
     "state.json"},
    {"a number that no type holds", B("{\"format\": 2, \"step\": 1e400}"), 0, 0, 65, "state.json"},
    {"cut", NULL, 0, CUT, 100, 65, "state.json"},
    {"another step", B("7"), SET, 27, 65, "state.json"},
};

/* A run continues without these files: they are reported and kept. */
static const hostile plans[] = {
    {"nothing at all", B(""), 0, 0, 0, "plan.json"},
    {"no JSON", B("{\"programs\": [}"), 0, 0, 0, "plan.json"},
    {"a number", B("3"), 0, 0, 0, "plan.json"},
    {"no programs", B("{}"), 0, 0, 0, "not the plan of a run"},
    {"programs of a wrong kind", B("{\"programs\": [1, 2], \"kernels\": [3]}"), 0, 0, 0, "plan.json"},
    {"ten thousand brackets that nothing closes", NULL, 0, CUT, 2000, 0, "plan.json"},
};
static const hostile logs[] = {
    {"half a line", B("{\"event\": \"step\", \"st"), APPEND, 0, 0, ""},
    {"no JSON", B("garbage\n"), APPEND, 0, 0, ""},
};

static const char run_folder[] = "runs/noise", last[] = "runs/noise/checkpoints/last";

/* A run of three steps with the checkpoint `last`. */
static void begin_run(void) {
  (void)run_folder;
  assert_int_equal(system("rm -rf runs"), 0);
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.max_steps=3"), 0);
  assert_int_equal(system("rm -rf runs/noise/checkpoints/best"), 0);
}

static int resume(const hostile *h, const char *file) {
  char good[] = "good";
  begin_run();
  size_t n;
  const char *whole = file_read(file, &n);
  file_write_bytes(good, whole, n);
  make(h, good, file);
  return program_run("train noise.ini --resume auto --set run.max_steps=5");
}

/* ---- the tests ---- */

#define EACH(table, kind, call)                                                                              \
  do {                                                                                                       \
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {                                              \
      const hostile *h = &table[i];                                                                          \
      check(kind, h, call);                                                                                  \
    }                                                                                                        \
    print_message("%s: %zu\n", kind, sizeof table / sizeof *table);                                          \
  } while (0)

static void idx_files(void **state) {
  (void)state;
  EACH(idx_images, "IDX, images", idx(h, "images"));
  EACH(idx_labels, "IDX, labels", idx(h, "labels"));
}

static void npy_files(void **state) {
  (void)state;
  begin_run();
  EACH(arrays, "NPY",
       (make(h, NULL, "x.npy"), program_run("predict noise.ini --weights %s/model.safetensors --input x.npy "
                                            "--output y.npy",
                                            last)));
}

static void safetensors_files(void **state) {
  (void)state;
  char good[128];
  begin_run();
  snprintf(good, sizeof good, "%s/model.safetensors", last);
  EACH(weights, "safetensors",
       (make(h, good, "w.safetensors"), program_run("eval noise.ini --weights w.safetensors")));
}

static void pictures(void **state) {
  (void)state;
  EACH(jpegs, "JPEG", picture(h, "x.jpg", SEEDS "/jpeg/rgb.jpg"));
  EACH(pngs, "PNG", picture(h, "x.png", SEEDS "/png/rgb.png"));
}

static void text_files(void **state) {
  (void)state;
  file_write("text.ini", text_ini);
  EACH(texts, "text", (make(h, NULL, "x.txt"), program_run("train text.ini")));
}

static void configurations(void **state) {
  (void)state;
  EACH(inis, "INI", (make(h, NULL, "x.ini"), program_run("plan x.ini")));
  a_configuration_of_one_sign("[model]\ninputs = x: f32[1]\nlayers = ", '(', 100000);
  a_configuration_of_one_sign("[model]\ninputs = x: f32[1]\nlayers = relu * ", '-', 100000);
  a_configuration_of_one_sign("[model]\ninputs = x: f32[1]\nlayers = relu(", '[', 100000);
  a_configuration_of_one_sign("[run]\nname = ", 'a', 1000000);
  a_configuration_of_one_sign("[", '[', 1000000);
  print_message("INI of one sign: 5\n");
}

static void plugin_files(void **state) {
  (void)state;
  EACH(plugins, "plugin", (make(h, PLUGIN, "x.so"), program_run("train noise.ini --plugin ./x.so")));
}

static void states_of_checkpoints(void **state) {
  (void)state;
  EACH(states, "state.json", resume(h, "runs/noise/checkpoints/last/state.json"));
}

static void plans_of_runs(void **state) {
  (void)state;
  EACH(plans, "plan.json", resume(h, "runs/noise/plan.json"));
}

static void logs_of_runs(void **state) {
  (void)state;
  EACH(logs, "metrics.jsonl", resume(h, "runs/noise/metrics.jsonl"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, program_open, program_close)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(idx_files),     CASE(npy_files),      CASE(safetensors_files), CASE(pictures),
      CASE(text_files),    CASE(configurations), CASE(plugin_files),      CASE(states_of_checkpoints),
      CASE(plans_of_runs), CASE(logs_of_runs),
  };
  return cmocka_run_group_tests_name("hostile files", tests, NULL, NULL);
}

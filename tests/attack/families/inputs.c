/* tests/attack/families/inputs.c: files that people get from others, damaged or made up: weights, arrays,
 * device files, configurations, pictures, data sets, texts, measurements of kernels. Commands that read one
 * end by themselves. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/attack/runs.h"

enum { MOST_COMMANDS = 8, MOST_DAMAGES = 3, LINES = 12 };

/* One kind of file: where valid ones are, the name under which commands read it, and the commands. */
typedef struct input {
  const char *name, *seeds, *path;
  const char *commands[MOST_COMMANDS][14];
} input;

#define FAST "--set", "run.fast_dev_run=yes"

static const input inputs[] = {
    {"weights",
     "in/safetensors",
     "hostile.safetensors",
     {{"checkpoint", "show", "hostile.safetensors", "--stats"},
      {"checkpoint", "show", "hostile.safetensors", "--json"},
      {"checkpoint", "diff", "hostile.safetensors", "base/picture/run"},
      {"checkpoint", "convert", "hostile.safetensors", "made.safetensors", "--dtype", "bf16"},
      {"eval", "base/picture/run", "--weights", "hostile.safetensors"},
      {"predict", "base/picture/run", "--weights", "hostile.safetensors", "--input", "rows.npy", "--csv"},
      {"generate", "base/text/run", "--weights", "hostile.safetensors", "--tokens", "5"},
      {"train", "picture.ini", "--weights", "hostile.safetensors", FAST}}},
    {"an index of shards",
     "in/index",
     "hostile.safetensors.index.json",
     {{"checkpoint", "show", "hostile.safetensors.index.json", "--stats"},
      {"checkpoint", "convert", "hostile.safetensors.index.json", "made.safetensors"},
      {"eval", "base/picture/run", "--weights", "hostile.safetensors.index.json"}}},
    {"an array",
     "in/npy",
     "hostile.npy",
     {{"predict", "base/picture/run", "--input", "hostile.npy", "--json"},
      {"predict", "base/picture/run", "--input", "image=hostile.npy", "--output", "made.npy"},
      {"predict", "base/text/run", "--input", "hostile.npy", "--output", "made.npy"}}},
    {"a device",
     "in/device",
     "device.json",
     {{"plan", "picture.ini", "--device", "device.json"},
      {"plan", "text.ini", "--device", "device.json", "--ranks", "3", "--json"},
      {"bench", "picture.ini", "--device", "device.json", "--steps", "1", "--rounds", "1"},
      {"bench", "picture.ini", "--device", "device.json", "--steps", "1", "--rounds", "1", "--ranks", "2"},
      {"bench", "picture.ini", "--device", "device.json", "--steps", "1", "--rounds", "1", "--mode",
       "infer"}}},
    {"a configuration",
     "in/ini",
     "hostile.ini",
     {{"config", "check", "hostile.ini"},
      {"config", "show", "hostile.ini", "--all"},
      {"plan", "hostile.ini"},
      {"train", "hostile.ini", "--output", "", FAST},
      {"eval", "hostile.ini", "--weights", "base/picture/run"},
      {"data", "hostile.ini", "--picture", "x.png"},
      {"find-lr", "hostile.ini", "--steps", "20", "--set", "data.epoch=64", "--set", "data.cache=off"},
      {"bench", "hostile.ini", "--steps", "1", "--rounds", "1", "--warmup", "1"}}},
    {"a JPEG",
     "in/jpeg",
     "pictures/train/a/hostile.jpg",
     {{"train", "pictures.ini", FAST},
      {"init", "pictures", "--output", "made.ini"},
      {"predict", "pictures.ini", "--weights", "in/pictures.folder", "--input", "pictures/train/a"}}},
    {"a PNG",
     "in/png",
     "pictures/train/a/hostile.png",
     {{"train", "pictures.ini", FAST},
      {"init", "pictures", "--output", "made.ini"},
      {"predict", "pictures.ini", "--weights", "in/pictures.folder", "--input",
       "pictures/train/a/hostile.png", "--csv"}}},
    {"a file of IDX",
     "in/idx",
     "hostile.idx",
     {{"train", "idx.ini", FAST}, {"predict", "idx.ini", "--input", "hostile.idx"}}},
    {"a table",
     "in/table",
     "hostile.csv",
     {{"train", "table.ini", FAST}, {"init", "hostile.csv", "--output", "made.ini"}}},
    {"a text",
     "in/text",
     "hostile.txt",
     {{"train", "text.ini", "--set", "data.file=hostile.txt", FAST},
      {"train", "text.ini", "--set", "data.file=hostile.txt", "--set", "data.tokenizer=bytes", FAST},
      {"init", "hostile.txt", "--output", "made.ini"},
      {"predict", "base/text/run", "--input", "hostile.txt"},
      {"eval", "base/text/run", "--set", "data.file=hostile.txt"}}},
    {"a tokenizer",
     "in/tokenizer",
     "hostile.json",
     {{"tokenize", "hostile.json", "--tokenizer", "hostile.json", "--pieces"},
      {"tokenize", "hostile.json", "--tokenizer", "hostile.json", "--output", "made.bin", "--json"},
      {"train", "text.ini", "--set", "data.tokenizer=hostile.json", FAST}}},
    {"measurements",
     "in/tune",
     "tuned/hostile",
     {{"train", "tune.ini", "--output", "", FAST}, {"plan", "tune.ini"}}},
};
enum { INPUTS = sizeof inputs / sizeof *inputs };

static char tune_name[256]; /* of the file of measurements in its folder; "": this build measures nothing */

/* ---- valid files ---- */

static void inputs_take_seeds(const char *kind) {
  char from[1024], to[64];
  snprintf(from, sizeof from, "%s/%s", SEEDS, kind);
  snprintf(to, sizeof to, "in/%s", kind);
  attack_copy(from, to);
}

static const char inputs_pictures_ini[] =
    "[run]\nname = run\nthreads = 1\noutput =\n[data]\nsource = image_folder\nfolder = pictures\nsplit = "
    "0.5\nbatch = 1\n"
    "workers = 0\nsize = 0\ntransforms = resize([8, 8]), to_float\n[model]\ninputs = image: f32[3, 8, "
    "8]\nlayers =\n    "
    "flatten\n"
    "    fc: linear(2)\nloss = cross_entropy\n[backend]\nuse = cpu\nautotune = no\n";

static const char inputs_idx_ini[] =
    "[run]\nname = run\nthreads = 1\noutput =\n[data]\nsource = idx\nimages = hostile.idx\nlabels = "
    "hostile.idx\nbatch = 1\n"
    "workers = 0\ntransforms = to_float\n[model]\ninputs = image: f32[1, 2, 2]\nlayers =\n    flatten\n"
    "    fc: linear(3)\nloss = cross_entropy\n[backend]\nuse = cpu\nautotune = no\n";

static const char inputs_table_ini[] =
    "[run]\nname = run\nthreads = 1\noutput =\n[data]\nsource = table\nfile = hostile.csv\nbatch = 1\n"
    "workers = 0\ninputs =\n    a: numbers(a, missing=mean, standardize=yes)\n    b: categories(b)\n"
    "targets = c: category(c, missing=class)\n[model]\ninputs = a: f32[1]\ntargets = c: i32[]\nlayers = fc: "
    "linear(3)\nloss = cross_entropy\n[backend]\nuse = cpu\nautotune = no\n";
static const char inputs_table[] = "a,b,c\n1,x|y,no\n2.5e3,\"z, \"\"w\"\"\",yes\n,y,NA\n-4,\xC3\xA9,no\n";

static void inputs_make_pictures(void) {
  attack_folder("pictures/train/a");
  attack_folder("pictures/train/b");
  attack_copy("in/png", "pictures/train/b");
  attack_copy("in/png", "pictures/train/a");
  attack_write_text("pictures.ini", inputs_pictures_ini);
  attack_must((const char *[]){"train", "pictures.ini", "--output", "in/pictures.run", "--quiet", "--set",
                               "run.max_steps=1", NULL});
  attack_copy("in/pictures.run/run/checkpoints/last", "in/pictures.folder");
}

/* The file of measurements, where the backend has written one. */
static void inputs_make_measurements(void) {
  attack_bytes ini = attack_read("picture.ini");
  char text[4096];
  char *backend = strstr(ini.v, "[backend]");
  snprintf(text, sizeof text, "%.*s[backend]\nuse = onednn\nautotune = yes\ntune_folder = tuned\n",
           backend != NULL ? (int)(backend - ini.v) : 0, ini.v);
  free(ini.v);
  attack_write_text("tune.ini", text);
  attack_folder("in/tune");
  attack_must((const char *[]){"train", "tune.ini", "--output", "", "--quiet", NULL});
  attack_paths paths = attack_list("tuned");
  for (int i = 0; i < paths.n; i++) snprintf(tune_name, sizeof tune_name, "%s", paths.v[i]);
  attack_free_paths(&paths);
  if (tune_name[0] != '\0') attack_copy("tuned", "in/tune");
}

static void inputs_prepare(void) {
  static const char *const kinds[] = {"safetensors", "tokenizer", "npy", "ini", "jpeg", "png", "idx"};
  runs_make();
  attack_folder("in/device");
  attack_folder("in/text");
  attack_folder("in/table");
  attack_folder("in/index");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) inputs_take_seeds(kinds[i]);
  attack_bytes weights = attack_read("base/picture/run/checkpoints/best/model.safetensors"),
               text = attack_read("text.txt"), ini = attack_read("picture.ini"),
               rows = attack_read("rows.npy");
  attack_write("in/safetensors/picture", weights.v, weights.n);
  attack_write("shard.safetensors", weights.v, weights.n);
  attack_write_text("in/index/one", "{\"weight_map\": {\"fc.weight\": \"shard.safetensors\", \"fc.bias\": "
                                    "\"shard.safetensors\"}}");
  attack_write("in/npy/rows", rows.v, rows.n);
  attack_write("in/text/text", text.v, text.n);
  attack_write("in/ini/picture", ini.v, ini.n);
  const attack_result *r = attack_must((const char *[]){"doctor", "cpu", "--device-json", NULL});
  attack_write("in/device/cpu", r->out, r->n_out);
  attack_write_text("idx.ini", inputs_idx_ini);
  attack_write_text("table.ini", inputs_table_ini);
  attack_write_text("in/table/rows", inputs_table);
  inputs_make_pictures();
  inputs_make_measurements();
  free(weights.v), free(text.v), free(ini.v), free(rows.v);
}

/* ---- made up ---- */

/* A header of tensors with types, shapes, offsets and names that do not fit. */
static void inputs_make_weights(attack_bytes *b) {
  static const char *const types[] = {"F32", "F64", "I64", "BF16", "U8", "BOOL", "F99", ""};
  static const char *const names[] = {"fc.weight", "conv1.weight", "../../x", "a\\u001b[31m",
                                      "\\u0000",   "__metadata__", ""};
  size_t room = 16384, n = 8;
  b->v = realloc(b->v, room);
  if (b->v == NULL) attack_die("out of memory");
  n += (size_t)sprintf(b->v + n, "{");
  for (int i = 0, most = attack_draw_between(0, 6); i < most; i++)
    n += (size_t)snprintf(b->v + n, room - n,
                          "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s%s%s],\"data_offsets\":[%s,%s]}",
                          i > 0 ? "," : "", ATTACK_PICK(names), ATTACK_PICK(types), attack_strange_number(),
                          attack_draw(2) != 0 ? "," : "", attack_draw(3) != 0 ? "1" : attack_strange_number(),
                          attack_draw(2) != 0 ? "0" : attack_strange_number(),
                          attack_draw(2) != 0 ? "4" : attack_strange_number());
  n += (size_t)snprintf(b->v + n, room - n, "}");
  uint64_t header = n - 8;
  memcpy(b->v, &header, 8);
  memset(b->v + n, 0, 16);
  b->n = n + attack_draw(16);
  b->v[b->n] = '\0';
}

/* Lines of random sections and keys. */
static void inputs_make_ini(attack_bytes *b) {
  static const char *const keys[] = {"[run]",       "[data]",
                                     "[model]",     "[optimizer]",
                                     "[backend]",   "[schedule]",
                                     "[precision]", "[distributed]",
                                     "[weights]",   "[group.a]",
                                     "[block b]",   "source = random",
                                     "layers =",    "    fc: linear(3)",
                                     "    b",       "inputs = image: f32[4]",
                                     "loss = mse",  "shape = ",
                                     "batch = ",    "epochs = ",
                                     "seed = ",     "threads = ",
                                     "type = ",     "lr = ",
                                     "use = ",      "file = ",
                                     "match = ",    "samples = ",
                                     "classes = ",  "    relu <- "};
  size_t n = 0, room = 64 + LINES * 6200;
  b->v = realloc(b->v, room);
  if (b->v == NULL) attack_die("out of memory");
  for (int i = 0; i < LINES; i++)
    n += (size_t)snprintf(b->v + n, room - n, "%s%s\n", ATTACK_PICK(keys),
                          attack_draw(2) != 0   ? ""
                          : attack_draw(3) != 0 ? attack_strange_number()
                                                : attack_strange_text());
  b->n = n;
}

/* ---- one attack ---- */

static void inputs_draw_bytes(const input *in, attack_bytes *bytes, char words[256]) {
  char path[1024];
  attack_paths seeds = attack_list(in->seeds);
  if (seeds.n == 0) attack_die("%s: no valid files", in->seeds);
  const char *seed = seeds.v[attack_draw((uint64_t)seeds.n)];
  snprintf(path, sizeof path, "%s/%s", in->seeds, seed);
  *bytes = attack_read(path);
  size_t n = (size_t)snprintf(words, 256, "%s", seed);
  for (int i = 0, most = attack_draw_between(1, MOST_DAMAGES); i < most && n < 200; i++) {
    char damage[128];
    attack_damage_bytes(bytes, attack_draw(2) != 0 ? 256 : 0, damage, sizeof damage);
    n += (size_t)snprintf(words + n, 256 - n, ", %s", damage);
  }
  attack_free_paths(&seeds);
}

static const char *inputs_path(const input *in) {
  static char path[512];
  bool is_tune = strcmp(in->path, "tuned/hostile") == 0;
  snprintf(path, sizeof path, "%s%s", is_tune ? "tuned/" : in->path, is_tune ? tune_name : "");
  return path;
}

static void inputs_run(void) {
  const input *in = &ATTACK_PICK(inputs);
  attack_bytes bytes = {NULL, 0};
  char words[256] = "made up";
  if (strcmp(in->seeds, "in/tune") == 0 && tune_name[0] == '\0') in = &inputs[0];
  bool is_weights = strcmp(in->seeds, "in/safetensors") == 0, is_ini = strcmp(in->seeds, "in/ini") == 0;
  if (is_weights && attack_draw(3) == 0)
    inputs_make_weights(&bytes);
  else if (is_ini && attack_draw(3) == 0)
    inputs_make_ini(&bytes);
  else
    inputs_draw_bytes(in, &bytes, words);
  attack_remove(inputs_path(in));
  attack_write(inputs_path(in), bytes.v, bytes.n);
  if (attack_draw(12) == 0) snprintf(words, sizeof words, "%s", attack_replace(inputs_path(in)));
  attack_describe("%s: %s", in->name, words);
  free(bytes.v);
  for (int i = 0; i < MOST_COMMANDS && in->commands[i][0] != NULL; i++) {
    attack_command c = {.limit_s = 0};
    memcpy(c.words, in->commands[i], sizeof in->commands[i]);
    remove("made.ini");
    attack_run(&c);
  }
  if (strcmp(in->seeds, "in/jpeg") == 0 || strcmp(in->seeds, "in/png") == 0) attack_remove(inputs_path(in));
}

const attack_family attack_inputs = {"inputs", "files of others are read or refused", 3, inputs_prepare,
                                     inputs_run};

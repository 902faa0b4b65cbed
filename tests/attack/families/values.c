/* tests/attack/families/values.c: numbers that are not finite, or that overflow or underflow, in the weights
 * and inputs of a model of each layer, through every command that computes. The layers are those of the
 * reference: its page has a model for each. An output that is not finite is never exit code 0 without a
 * warning. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/attack/attack.h"

enum { MOST_LAYERS = 256, MODEL_BYTES = 2048, MOST_DIMS = 8, ROWS = 3, CLASSES = 16 };

/* A model of the page, whose input is renamed to the source's field. */
typedef struct example {
  char name[64], lines[MODEL_BYTES];
  bool is_tokens;
  int rank, dims[MOST_DIMS];
} example;

static example examples[MOST_LAYERS];
static int n_examples;

/* ---- the page ---- */

static bool values_is_letter(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Replaces the word, in the whole text. */
static void values_rename(char text[MODEL_BYTES], const char *word, const char *by) {
  char out[MODEL_BYTES];
  size_t n = 0, length = strlen(word);
  for (const char *at = text; *at != '\0' && n + 32 < sizeof out;) {
    bool begins = at == text || !values_is_letter(at[-1]);
    if (begins && strncmp(at, word, length) == 0 && !values_is_letter(at[length])) {
      n += (size_t)snprintf(out + n, sizeof out - n, "%s", by);
      at += length;
    } else
      out[n++] = *at++;
  }
  out[n] = '\0';
  memcpy(text, out, n + 1);
}

/* "x: f32[3, 32, 32]". */
static void values_read_input(example *e, const char *line) {
  char name[32] = "", type[8] = "";
  if (sscanf(line, " %31[^:]: %7[a-z0-9]", name, type) != 2)
    attack_die("the page of layers has the input '%.40s'", line);
  const char *at = strchr(line, '[');
  while (at != NULL && *at != ']' && *at != '\n' && e->rank < MOST_DIMS) {
    e->dims[e->rank++] = atoi(at + 1);
    at = strpbrk(at + 1, ",]");
  }
  e->is_tokens = strcmp(type, "i32") == 0;
  values_rename(e->lines, name, e->is_tokens ? "tokens" : "image");
}

/* One block "inputs = ...\nlayers = ...\n". */
static void values_read_block(const char *name, const char *block, const char *end) {
  static const char inputs[] = "inputs = ", layers[] = "layers =";
  const char *input = strstr(block, inputs), *model = strstr(block, layers);
  if (input == NULL || model == NULL || model > end || n_examples == MOST_LAYERS) return;
  example *e = &examples[n_examples++];
  snprintf(e->name, sizeof e->name, "%s", name);
  const char *at = model + strlen(layers);
  bool one_line = *at != '\n';
  snprintf(e->lines, sizeof e->lines, "%s%.*s", one_line ? "\n   " : "", (int)(end - at), at);
  values_read_input(e, input + strlen(inputs));
}

static void values_read_page(void) {
  attack_bytes page = attack_read(LAYERS);
  for (char *at = strstr(page.v, "\n## "); at != NULL; at = strstr(at + 1, "\n## ")) {
    char name[64] = "", *next = strstr(at + 1, "\n## "), *block = strstr(at, "```ini\n[model]\n");
    sscanf(at, "\n## %63[a-z_0-9]", name);
    if (block == NULL || (next != NULL && block > next)) continue;
    char *end = strstr(block, "\n```");
    if (end != NULL) values_read_block(name, block, end + 1);
  }
  free(page.v);
  if (n_examples < 10) attack_die("%s: %d models of layers", LAYERS, n_examples);
}

/* ---- a model, its weights and its rows ---- */

static const char values_end[] = "    last_head: linear(16)\nloss = cross_entropy\nmetrics = accuracy\n"
                                 "[optimizer]\ntype = sgd\nlr = 0.01\n";

/* The targets of tokens have the shape of the tokens; pictures have one. */
static void values_write_ini(const example *e, const char *backend, const char *policy) {
  char text[4 * MODEL_BYTES], shape[128] = "";
  size_t n =
      (size_t)snprintf(text, sizeof text,
                       "[run]\nname = run\nmax_steps = 2\nthreads = 1\nseed = 1\n"
                       "[precision]\npolicy = %s\n[backend]\nuse = %s\nfallback = allow\nautotune = no\n"
                       "[data]\nsource = random\nclasses = 16\nsamples = 24\nbatch = 8\nworkers = 0\n",
                       policy, backend);
  for (int i = 0; i < e->rank; i++) sprintf(shape + strlen(shape), "%s%d", i > 0 ? ", " : "", e->dims[i]);
  if (e->is_tokens)
    snprintf(text + n, sizeof text - n,
             "tokens = %s\n[model]\ninputs = tokens: i32[%s]\ntargets = next: i32[%s]\nlayers =%s%s", shape,
             shape, shape, e->lines, values_end);
  else
    snprintf(text + n, sizeof text - n,
             "shape = [%s]\n[model]\ninputs = image: f32[%s]\nlayers =%s    flatten\n%s", shape, shape,
             e->lines, values_end);
  attack_write_text("values.ini", text);
}

static float values_strange(void) {
  static const float values[] = {NAN, NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f, -1e-45f};
  return ATTACK_PICK(values);
}

/* A few elements of the weights, or all behind one. */
static void values_damage_weights(char words[128]) {
  attack_bytes b = attack_read("values/run/checkpoints/last/model.safetensors");
  uint64_t header = 0;
  if (b.n > 8) memcpy(&header, b.v, 8);
  if (b.n < 16 || header > b.n - 12) attack_die("the weights of a training cannot be read");
  size_t count = (b.n - 8 - (size_t)header) / 4, at = attack_draw(count),
         n = attack_draw(3) == 0 ? count - at : 1;
  float value = values_strange();
  for (size_t i = at; i < at + n; i++) memcpy(b.v + 8 + header + 4 * i, &value, 4);
  attack_write("values.safetensors", b.v, b.n);
  free(b.v);
  snprintf(words, 128, "%zu weights of %zu become %g", n, count, (double)value);
}

/* Rows of the model's input; *finite tells whether all are. */
static void values_write_rows(const example *e, bool damaged, char words[128]) {
  char header[256], shape[128] = "";
  size_t count = ROWS;
  for (int i = 0; i < e->rank; i++) {
    count *= (size_t)e->dims[i];
    sprintf(shape + strlen(shape), ", %d", e->dims[i]);
  }
  int length = snprintf(header, sizeof header, "{'descr': '<%s', 'fortran_order': False, 'shape': (%d%s), }",
                        e->is_tokens ? "i4" : "f4", ROWS, shape);
  char *bytes = calloc(1, 256 + 4 * count);
  if (bytes == NULL) attack_die("out of memory");
  memset(bytes, ' ', 256);
  memcpy(bytes, "\x93NUMPY\x01\x00\xf6\x00", 10);
  memcpy(bytes + 10, header, (size_t)length);
  bytes[255] = '\n';
  size_t at = attack_draw(count);
  for (size_t i = 0; i < count; i++) {
    float value = sinf((float)i);
    int32_t token = (int32_t)(i % 16);
    if (damaged && i == at) value = values_strange();
    if (damaged && i == at) token = INT32_MIN + (int32_t)attack_draw(3);
    memcpy(bytes + 256 + 4 * i, e->is_tokens ? (void *)&token : (void *)&value, 4);
  }
  if (damaged) snprintf(words, 128, "element %zu of the rows is strange", at);
  attack_write("values.npy", bytes, 256 + 4 * count);
  free(bytes);
}

/* ---- judgement ---- */

static bool values_warned(const attack_result *r) {
  return r->code != 0 || strstr(r->err, "warning") != NULL;
}

typedef struct number_form {
  const char *descr;
  size_t bytes;
  uint32_t exponent, sign; /* bits: all of the exponent are set in a number that is not finite */
} number_form;

/* A score of -infinity beside a finite one is a class that cannot be. */
static bool values_row_is_finite(const char *row, size_t n, const number_form *f) {
  size_t finite = 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t bits = 0;
    memcpy(&bits, row + i * f->bytes, f->bytes);
    bool special = (bits & f->exponent) == f->exponent;
    if (special && bits != (f->exponent | f->sign)) return false;
    finite += !special;
  }
  return finite > 0;
}

static void values_judge_array(const attack_result *r) {
  static const number_form forms[] = {{"'<f4'", 4, 0x7f800000, 0x80000000}, {"'<f2'", 2, 0x7c00, 0x8000}};
  attack_bytes b = attack_read("values.out.npy");
  size_t start = b.n > 10 ? 10 + (size_t)(unsigned char)b.v[8] + ((size_t)(unsigned char)b.v[9] << 8) : b.n;
  const number_form *f = NULL;
  for (int i = 0; i < 2 && b.n > 10; i++)
    if (strstr(b.v + 10, forms[i].descr) != NULL) f = &forms[i];
  if (b.n > 10 && f == NULL) attack_die("predict writes %.60s", b.v + 10);
  bool finite = true;
  for (size_t at = start; f != NULL && at + CLASSES * f->bytes <= b.n; at += CLASSES * f->bytes)
    finite = finite && values_row_is_finite(b.v + at, CLASSES, f);
  free(b.v);
  if (!finite && !values_warned(r))
    attack_find(ATTACK_WRONG, "predict: an output that is not finite, without a warning");
}

/* A loss that is not finite is null in JSON, nan or inf as text. */
static void values_judge_text(const attack_result *r, const char *what) {
  static const char *const signs[] = {"\"loss\": null", "\"value\": null", " nan", " inf", " -inf", "NaN"};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (!values_warned(r) && strstr(r->out, signs[i]) != NULL)
      attack_find(ATTACK_WRONG, "%s: '%s' without a warning", what, signs[i]);
}

static void values_run_commands(void) {
  static const char *const commands[][12] = {
      {"eval", "values.ini", "--weights", "values.safetensors", "--json"},
      {"eval", "values.ini", "--weights", "values.safetensors", "--classes"},
      {"predict", "values.ini", "--weights", "values.safetensors", "--input", "values.npy", "--json"},
      {"predict", "values.ini", "--weights", "values.safetensors", "--input", "values.npy", "--csv"},
      {"find-lr", "values.ini", "--weights", "values.safetensors", "--steps", "20", "--json"},
      {"train", "values.ini", "--weights", "values.safetensors", "--output", "values.again", "--json"},
      {"checkpoint", "show", "values.safetensors", "--stats"},
  };
  attack_remove("values.again");
  remove("values.out.npy");
  const attack_result *r =
      attack_run(&(attack_command){.words = {"predict", "values.ini", "--weights", "values.safetensors",
                                             "--input", "values.npy", "--output", "values.out.npy"}});
  values_judge_array(r);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    attack_command c = {.limit_s = 0};
    memcpy(c.words, commands[i], sizeof commands[i]);
    r = attack_run(&c);
    if (strcmp(commands[i][0], "checkpoint") != 0) values_judge_text(r, commands[i][0]);
  }
}

static void values_run(void) {
  static const char *const backends[] = {"cpu", "onednn", "onednn", "sim"}, *const policies[] = {
                                                                                "fp32", "fp32", "bf16",
                                                                                "fp16"};
  const example *e = &examples[attack_draw((uint64_t)n_examples)];
  const char *backend = ATTACK_PICK(backends), *policy = ATTACK_PICK(policies);
  char words[128] = "";
  bool in_rows = attack_draw(3) == 0;
  values_write_ini(e, backend, policy);
  attack_remove("values");
  attack_describe("%s, %s, %s: the model cannot be trained", e->name, backend, policy);
  const attack_result *r =
      attack_run(&(attack_command){.words = {"train", "values.ini", "--output", "values", "--quiet"}});
  if (r->code != 0) attack_find(ATTACK_OTHER, "train: exit code %d: %.200s", r->code, r->err);
  if (r->code != 0) return;
  values_write_rows(e, in_rows, words);
  if (in_rows)
    attack_copy("values/run/checkpoints/last", "values.safetensors");
  else
    values_damage_weights(words);
  attack_describe("%s, %s, %s: %s", e->name, backend, policy, words);
  values_run_commands();
  attack_remove("values.safetensors");
}

const attack_family attack_values = {"values", "numbers that are not finite are named", 2, values_read_page,
                                     values_run};

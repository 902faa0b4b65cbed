/* tests/integration/distributed/nets.c: configurations, runs, comparisons. */
#include "nets.h"

#include "configs.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- configurations ---- */

const char nets_lenet[] = "[run]\nname = run\nseed = 3\nepochs = 20\nmax_steps = 20\n"
                          "[data]\nsource = digits\nepoch = 64\nbatch = 8\nworkers = 1\n"
                          "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
                          "[data.valid]\nbatch = 16\nepoch = 50\n" LENET;

/* Where a pre-activation is within rounding of zero, ReLU may pass it in one run and not in the other, and
 * the weights differ by far more than rounding. Of seeds 1 to 4, this happens with 3 and accumulation. */
const char nets_resnet[] =
    "[run]\nname = run\nseed = 1\nepochs = 20\nmax_steps = 20\n"
    "[data]\nsource = random\nshape = 3, 12, 12\nclasses = 5\nsamples = 64\nbatch = 8\nworkers = 1\n"
    "[data.valid]\nepoch = 20\n" RESNET("batch_norm(sync=yes)", "", "0.01");

/* No bias for queries and keys: softmax cancels the bias of keys, so its gradient is noise around zero, which
 * Adam scales to steps of normal size. */
const char nets_transformer[] =
    "[run]\nname = run\nseed = 3\nepochs = 20\nmax_steps = 20\n"
    "[data]\nsource = random\ntokens = 16\nclasses = 30\n"
    "samples = 64\nbatch = 8\nworkers = 1\n" TRANSFORMER("linear(3*width, bias=no)");

/* The number of counted targets differs between samples, so the loss weights differ between ranks. */
const char nets_two_losses[] =
    "[run]\nname = run\nseed = 3\nepochs = 20\nmax_steps = 20\n"
    "[data]\nsource = random\ntokens = 12\nclasses = 5\nsamples = 64\nbatch = 8\nworkers = 1\n"
    "[data.valid]\nepoch = 20\n"
    "[model]\ninputs = tokens: i32[12]\ntargets = next: i32[12]\nlayers =\n"
    "    wte:  embedding(5, 16)\n"
    "    fc1:  linear(24)\n"
    "    act:  gelu(tanh)\n"
    "    one:  linear(5)\n"
    "    two:  linear(5) <- act\n"
    "loss =\n"
    "    main: cross_entropy(ignore=2) <- one, next\n"
    "    aux:  cross_entropy(weight=0.3, ignore=4, label_smoothing=0.1) <- two, next\n"
    "metrics = accuracy <- one, next\n"
    "[optimizer]\ntype = sgd\nlr = 0.1\nmomentum = 0.9\n";

const char nets_tokens[] =
    "[run]\nname = run\nseed = 5\nepochs = 1\n"
    "[data]\nsource = random\ntokens = 9\nclasses = 5\nsamples = 29\nbatch = 12\nlast = pad\nworkers = 1\n"
    "[data.valid]\nepoch = 12\n"
    "[model]\ninputs = tokens: i32[9]\ntargets = next: i32[9]\nlayers =\n"
    "    wte:  embedding(5, 16)\n"
    "    fc1:  linear(24)\n"
    "    act:  gelu(tanh)\n"
    "    fc2:  linear(5)\n"
    "loss = cross_entropy(ignore=2, label_smoothing=0.1, weights=[1, 3, 1, 0.2, 2])\n"
    "[optimizer]\ntype = sgd\nlr = 0.5\nmomentum = 0.9\nweight_decay = 0.01\nclip = 0.05\n";

const char nets_dropout[] =
    "[run]\nname = run\nseed = 3\nepochs = 20\nmax_steps = 20\n"
    "[data]\nsource = digits\nepoch = 64\nbatch = 8\nworkers = 1\ntransforms = to_float\n"
    "[data.valid]\nepoch = 16\n"
    "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"
    "         flatten\n"
    "         dropout(0.3)\n"
    "    fc1: linear(24)\n"
    "         relu\n"
    "         dropout(0.5)\n"
    "    fc2: linear(10)\n"
    "loss = cross_entropy\nmetrics = accuracy\n"
    "[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\n";

void nets_write_steady(const char *plugin, const char *source) {
  char text[1024];
  snprintf(text, sizeof text,
           "[run]\nname = run\nseed = 3\nepochs = 20\nmax_steps = 20\n"
           "[data]\nsource = steady\n%s\nshuffle = no\nbatch = 8\nworkers = 1\n"
           "[model]\ninputs = image: f32[3, 6, 6]\nlayers =\n"
           "    bn:  batch_norm(sync=yes, momentum=1)\n"
           "         flatten\n"
           "    fc:  linear(4)\n"
           "loss = cross_entropy\n"
           "[optimizer]\ntype = sgd\nlr = 0.05\n"
           "[plugins]\nload = %s\n",
           source, plugin);
  file_write("model.ini", text);
}

/* ---- runs ---- */

const json_t *nets_train(const char *folder, int devices, const char *more) {
  return program_json(
      0,
      "train model.ini --output %s --set backend.use=sim --set backend.fallback=error "
      "--set backend.sim.devices=%d --set distributed.devices=%d --set distributed.timeout=1h "
      "%s",
      folder, devices, devices, more);
}

/* ---- runs beside each other ---- */

enum { BESIDE = 10 };
static pid_t beside[BESIDE];

static const char *folder_of(int i) {
  static const char *const names[BESIDE] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  assert_true(i >= 0 && i < BESIDE);
  return names[i];
}

void nets_start(int i, const char *format, ...) {
  char line[2048];
  va_list args;
  va_start(args, format);
  assert_true(vsnprintf(line, sizeof line, format, args) < (int)sizeof line);
  va_end(args);
  program_place(folder_of(i));
  assert_int_equal(mkdir(folder_of(i), 0777), 0);
  program_start("%s", line);
  program_place(".");
  beside[i] = program_swap(0);
}

int nets_finish(int i) {
  program_place(folder_of(i));
  program_swap(beside[i]);
  int code = program_finish();
  program_place(".");
  return code;
}

const char *nets_path(int i, const char *path) {
  static char whole[256];
  snprintf(whole, sizeof whole, "%s/%s", folder_of(i), path);
  return whole;
}

/* ---- comparisons ---- */

typedef struct file {
  const char *path;
  json_t *header;
  const char *data;
} file;

/* 8 bytes of header length, header, data. */
static file open_file(const char *folder) {
  char path[160];
  uint64_t length;
  size_t n;
  snprintf(path, sizeof path, "%s/run/checkpoints/last/model.safetensors", folder);
  const char *bytes = file_read(path, &n);
  memcpy(&length, bytes, sizeof length);
  file f = {folder, json_loadb(bytes + 8, (size_t)length, 0, NULL), bytes + 8 + length};
  assert_non_null(f.header);
  return f;
}

static const float *floats_of(const file *f, const char *name, size_t *n) {
  const json_t *tensor = json_object_get(f->header, name), *at = json_object_get(tensor, "data_offsets");
  const char *dtype = json_string_value(json_object_get(tensor, "dtype"));
  *n = 0;
  if (!dtype) fail_msg("%s: no tensor '%s'", f->path, name);
  if (strcmp(dtype, "F32") != 0) return NULL;
  size_t start = (size_t)json_integer_value(json_array_get(at, 0)),
         end = (size_t)json_integer_value(json_array_get(at, 1));
  *n = (end - start) / sizeof(float);
  return (const float *)(const void *)(f->data + start);
}

static float element(const float *v, size_t i) {
  float x; /* tensors need not be aligned */
  memcpy(&x, (const char *)v + i * sizeof x, sizeof x);
  return x;
}

static double difference(const file *a, const file *b, const char *name) {
  size_t n, m;
  const float *x = floats_of(a, name, &n), *y = floats_of(b, name, &m);
  double most = 0, scale = 0;
  assert_int_equal(n, m);
  for (size_t i = 0; i < n; i++) {
    double difference = fabs((double)element(x, i) - (double)element(y, i));
    assert_true(isfinite(difference));
    most = fmax(most, difference);
    scale = fmax(scale, fabs((double)element(y, i)));
  }
  return scale > 0 ? most / scale : most;
}

float *nets_values(const char *folder, const char *name, size_t *n) {
  file f = open_file(folder);
  const float *v = floats_of(&f, name, n);
  float *values = malloc(*n * sizeof *values);
  assert_non_null(v);
  assert_non_null(values);
  memcpy(values, (const char *)v, *n * sizeof *values);
  json_decref(f.header);
  return values;
}

double nets_difference(const char *a, const char *b, const char *name) {
  file x = open_file(a), y = open_file(b);
  double d = difference(&x, &y, name);
  json_decref(x.header);
  json_decref(y.header);
  return d;
}

double nets_greatest(const char *a, const char *b, char *where, size_t size) {
  file x = open_file(a), y = open_file(b);
  const char *name;
  json_t *value;
  double most = 0;
  where[0] = '\0';
  json_object_foreach(x.header, name, value) {
    if (strcmp(name, "__metadata__") == 0) continue;
    double d = difference(&x, &y, name);
    if (d >= most) snprintf(where, size, "%s", name);
    most = fmax(most, d);
  }
  assert_int_equal(json_object_size(x.header), json_object_size(y.header));
  json_decref(x.header);
  json_decref(y.header);
  return most;
}

/* ---- updates ---- */

/* Sums of squares. */
typedef struct squares {
  double difference, update;
} squares;

static double relative(const squares *s) {
  if (s->difference == 0) return 0;
  return s->update > 0 ? sqrt(s->difference / s->update) : INFINITY;
}

static squares tensor_squares(const file *a, const file *b, const file *start, const char *name, size_t *n) {
  size_t na, nb;
  const float *x = floats_of(a, name, &na), *y = floats_of(b, name, &nb), *z = floats_of(start, name, n);
  squares sum = {0, 0};
  assert_true(na == *n && nb == *n);
  for (size_t i = 0; i < *n; i++) {
    double learned = element(y, i), apart = element(x, i) - learned;
    learned -= element(z, i);
    assert_true(isfinite(apart));
    sum.difference += apart * apart;
    sum.update += learned * learned;
  }
  return sum;
}

static void add_tensor(nets_update *u, const char *name, size_t n, const squares *s, squares *weights,
                       squares *statistics) {
  bool is_statistic = strstr(name, "running_") != NULL;
  squares *all = is_statistic ? statistics : weights;
  all->difference += s->difference;
  all->update += s->update;
  if (is_statistic || n < NETS_LARGE || relative(s) < u->tensor) return;
  u->tensor = relative(s);
  snprintf(u->where, sizeof u->where, "%s", name);
}

nets_update nets_compare_updates(const char *a, const char *b, const char *start) {
  file x = open_file(a), y = open_file(b), z = open_file(start);
  squares weights = {0, 0}, statistics = {0, 0};
  nets_update u = {.weights = 0};
  const char *name;
  json_t *value;
  json_object_foreach(x.header, name, value) {
    size_t n;
    if (strcmp(name, "__metadata__") == 0) continue;
    const squares s = tensor_squares(&x, &y, &z, name, &n);
    add_tensor(&u, name, n, &s, &weights, &statistics);
  }
  assert_true(weights.update > 0);
  u.weights = relative(&weights);
  u.statistics = relative(&statistics);
  json_decref(x.header);
  json_decref(y.header);
  json_decref(z.header);
  return u;
}

void nets_compare(const char *what, const char *a, const char *b, double limit) {
  char worst[128];
  double most = nets_greatest(a, b, worst, sizeof worst);
  print_message("%s: %s and %s differ by %.2g at most, in %s\n", what, a, b, most, worst);
  if (most > limit) fail_msg("%s: %g is more than %g", what, most, limit);
}

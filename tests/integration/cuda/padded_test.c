/* Padded rows on the double of CUDA: products of an odd number of columns, and readers of their results.
 * Behind each launch the padding of its results is zero; then NaN is planted there, which no reader of a row
 * may see. PLUGIN: the backend. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/shared/half.h"
#include "core/base/element.h"
#include "core/compile/layout/layout.h"
#include "core/conformance/trial/guard.h"
#include "core/conformance/trial/on_device.h"
#include "core/exec/bound_program.h"
#include "tenon/plugin/storage.h"
#include "double_device.h"

static fixture f;
static tn_device *device;

/* ---- the padding ---- */

typedef struct padding {
  bool plants; /* NaN, once the padding was zero */
  int results; /* that had padding */
  int wrong;   /* elements of padding that were not zero */
  char text[256];
} padding;

/* Visits the padding of rows in memory. */
static void padding_visit(padding *p, const tn_storage *s, const tn_view *view, uint8_t *data,
                          const char *launch) {
  const size_t size = tn_dtype_size(view->type.dtype);
  const int64_t columns = view->type.dims[view->type.rank - 1],
                row = s->count * columns / tn_type_count(&view->type);
  for (int64_t i = 0; i < s->count; i++) {
    if (i % row < columns) continue;
    for (size_t k = 0; k < size; k++)
      if (data[(size_t)i * size + k] != 0 && p->wrong++ == 0)
        snprintf(p->text, sizeof p->text, "%s: position %lld is not zero", launch, (long long)i);
    if (p->plants) memset(data + (size_t)i * size, 0xFF, size);
  }
}

static tn_status padding_copy(int32_t direction, const tn_view *view, uint8_t *data, int64_t bytes) {
  bool fetches = direction == TN_COPY_TO_HOST;
  void *stream = device->streams[TN_STREAM_COMPUTE];
  TN_TRY(device->backend->copy(&device->env, stream, direction, fetches ? (void *)data : view->data,
                               fetches ? view->data : (void *)data, (uint64_t)bytes));
  return device->backend->stream_wait(&device->env, stream);
}

static tn_status padding_look(padding *p, const tn_view *view, const char *launch) {
  tn_storage s = tn_storage_of(&view->type, &view->layout);
  int64_t bytes = tn_layout_bytes(&view->type, &view->layout);
  if (!s.padded) return TN_OK;
  uint8_t *data = malloc((size_t)bytes);
  p->results++;
  tn_status status = padding_copy(TN_COPY_TO_HOST, view, data, bytes);
  if (status == TN_OK) padding_visit(p, &s, view, data, launch);
  if (status == TN_OK) status = padding_copy(TN_COPY_TO_DEVICE, view, data, bytes);
  free(data);
  return status;
}

static tn_status padding_launched(void *context, tn_bound_step *step) {
  for (int32_t i = 0; i < step->host.pub.n_out; i++)
    TN_TRY(padding_look(context, &step->host.pub.out[i], step->host.pub.name));
  return TN_OK;
}

static tn_status padding_begin(void *context, const tn_bound_program *bound, int32_t slot) {
  (void)context, (void)bound, (void)slot;
  return TN_OK;
}

static tn_status padding_end(void *context, const tn_bound_program *bound) {
  (void)context, (void)bound;
  return TN_OK;
}

/* ---- running a graph ---- */

typedef struct ran {
  tn_on_device *on;
  padding padding;
} ran;

/* A number between -1 and 1 that bf16 has. */
static double number(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (double)(int32_t)(*seed >> 24) / 128 - 1;
}

static void start(ran *r, const char *text, bool plants) {
  tn_graph *graph;
  if (tn_graph_parse(&f.env, f.ops, text, "test", &graph) != TN_OK ||
      tn_on_device_create(&f.env, f.registry, device, graph, &r->on) != TN_OK)
    fail_msg("%s", tn_error_text(&f.env));
  r->padding = (padding){.plants = plants};
}

static double *give(ran *r, const char *name, int64_t n, double scale, int64_t below) {
  double *values = malloc((size_t)n * sizeof *values);
  uint32_t seed = (uint32_t)name[0];
  for (int64_t i = 0; i < n; i++) values[i] = below > 0 ? (double)(i * 37 % below) : scale * number(&seed);
  tn_on_device_input(r->on, name, values);
  return values;
}

/* Memory is NaN before the run. */
static void run(ran *r) {
  tn_run_observer observer = {&r->padding, padding_begin, NULL, padding_launched, padding_end};
  tn_executor *e = tn_on_device_executor(r->on);
  assert_int_equal(tn_guard_fill(e, 0xFF), TN_OK);
  e->observer = &observer;
  if (tn_on_device_run(r->on) != TN_OK) fail_msg("%s", tn_error_text(&f.env));
  e->observer = NULL;
  if (r->padding.wrong > 0) fail_msg("%d bytes of padding: %s", r->padding.wrong, r->padding.text);
}

/* Launches whose variant has this name's part. */
static int count(const ran *r, const char *part) {
  const tn_program *p = tn_on_device_program(r->on);
  int n = 0;
  for (int32_t i = 0; i < p->n_steps; i++) n += strstr(p->steps[i].group->choice.name, part) != NULL;
  return n;
}

static int count_kernel(const ran *r, const char *kernel) {
  const tn_program *p = tn_on_device_program(r->on);
  int n = 0;
  for (int32_t i = 0; i < p->n_steps; i++) n += strcmp(p->steps[i].group->kernel->item.name, kernel) == 0;
  return n;
}

static void expect(ran *r, const char *name, const double *wanted, double tolerance) {
  tn_type type;
  double *found = tn_on_device_output(r->on, name, &type);
  assert_non_null(found);
  for (int64_t i = 0; i < tn_type_count(&type); i++)
    if (!(fabs(found[i] - wanted[i]) <= tolerance))
      fail_msg("%s: element %lld is %g, expected %g", name, (long long)i, found[i], wanted[i]);
  tn_release(&f.env, found);
}

static void stop(ran *r) { tn_on_device_destroy(r->on); }

/* ---- a language model's last layer, its loss and its gradients ---- */

enum { ROWS = 512, CLASSES = 257, WIDTH = 320 };

static const char head[] = "x: bf16[8, 64, 320] = input(name=x)\n"
                           "w: bf16[257, 320] = input(name=w)\n"
                           "t: i32[8, 64] = input(name=t)\n"
                           "y = matmul(x, w, transpose_b=yes)\n"
                           "z = cast(y, to=f32)\n"
                           "l, s = cross_entropy(z, t)\n"
                           "a = argmax(z)\n"
                           "i = iota(dims=[1, 1, 257], axis=-1, dtype=i32)\n"
                           "u = reshape(t, dims=[8, 64, 1])\n"
                           "h = eq(i, u)\n"
                           "one = full(dims=[], value=1, dtype=f32)\n"
                           "zero = full(dims=[], value=0, dtype=f32)\n"
                           "k = reshape(s, dims=[8, 64, 1])\n"
                           "d = sub(z, k)\n"
                           "p = exp(d)\n"
                           "o = where(h, one, zero)\n"
                           "q = sub(p, o)\n"
                           "c = cast(q, to=bf16)\n"
                           "dx = matmul(c, w)\n"
                           "cr = reshape(c, dims=[512, 257])\n"
                           "xr = reshape(x, dims=[512, 320])\n"
                           "e = matmul(cr, xr, transpose_a=yes)\n"
                           "dw = cast(e, to=f32)\n"
                           "output l = l\noutput a = a\noutput dx = dx\noutput dw = dw\n";

typedef struct head_reference {
  double loss[ROWS], top[ROWS], grad[ROWS][CLASSES], dx[ROWS * WIDTH], dw[CLASSES * WIDTH];
} head_reference;

static double dot(const double *a, const double *b) {
  double sum = 0;
  for (int i = 0; i < WIDTH; i++) sum += a[i] * b[i];
  return sum;
}

static void head_row(head_reference *h, int row, const double *x, const double *w, int target) {
  double exps = 0, z[CLASSES];
  int top = 0;
  for (int c = 0; c < CLASSES; c++) {
    z[c] = dot(x + row * WIDTH, w + c * WIDTH);
    exps += exp(z[c]);
    if (z[c] > z[top]) top = c;
  }
  h->loss[row] = log(exps) - z[target];
  h->top[row] = top;
  for (int c = 0; c < CLASSES; c++) h->grad[row][c] = exp(z[c]) / exps - (c == target);
  for (int c = 0; c < CLASSES; c++)
    for (int i = 0; i < WIDTH; i++) {
      h->dx[row * WIDTH + i] += h->grad[row][c] * w[c * WIDTH + i];
      h->dw[c * WIDTH + i] += h->grad[row][c] * x[row * WIDTH + i];
    }
}

static void the_loss_of_an_odd_number_of_classes_has_padded_rows(void **state) {
  static head_reference h;
  ran r;
  (void)state;
  start(&r, head, true);
  double *x = give(&r, "x", ROWS * WIDTH, 0.5, 0), *w = give(&r, "w", CLASSES * WIDTH, 0.5, 0);
  double *t = give(&r, "t", ROWS, 0, CLASSES);
  run(&r);
  for (int row = 0; row < ROWS; row++) head_row(&h, row, x, w, (int)t[row]);
  assert_int_equal(r.padding.results, 2); /* the scores and their gradient */
  assert_int_equal(count(&r, "padded result"), 1);
  assert_int_equal(count(&r, "padded operand"), 2);
  assert_int_equal(count(&r, "padded rows"), 3); /* cross entropy, argmax, the region */
  assert_int_equal(count_kernel(&r, "cuda_reorder"), 0);
  expect(&r, "l", h.loss, 1e-3);
  expect(&r, "a", h.top, 0);
  expect(&r, "dx", h.dx, 0.02);
  expect(&r, "dw", h.dw, 0.05);
  free(x);
  free(w);
  free(t);
  stop(&r);
}

/* ---- batches of products, and regions that take any layout ---- */

static const char batches[] = "x: bf16[4, 256, 320] = input(name=x)\n"
                              "w: bf16[4, 320, 257] = input(name=w)\n"
                              "v: bf16[4, 257, 320] = input(name=v)\n"
                              "y = matmul(x, w)\n"
                              "e = neg(y)\n"
                              "z = matmul(e, v)\n"
                              "output z = z\n";

static void products_of_a_batch_have_padded_rows(void **state) {
  enum { N = 4, M = 256, K = 257 };
  static double y[K], z[N * M * WIDTH];
  ran r;
  (void)state;
  start(&r, batches, true);
  double *x = give(&r, "x", N * M * WIDTH, 0.125, 0), *w = give(&r, "w", N * WIDTH * K, 0.125, 0);
  double *v = give(&r, "v", N * K * WIDTH, 0.125, 0);
  run(&r);
  for (int n = 0; n < N * M; n++) {
    memset(y, 0, sizeof y);
    for (int i = 0; i < WIDTH; i++)
      for (int k = 0; k < K; k++) y[k] -= x[n * WIDTH + i] * w[(n / M * WIDTH + i) * K + k];
    for (int k = 0; k < K; k++)
      for (int i = 0; i < WIDTH; i++) z[n * WIDTH + i] += y[k] * v[(n / M * K + k) * WIDTH + i];
  }
  assert_int_equal(r.padding.results, 2);
  assert_int_equal(count(&r, "padded result"), 1);
  assert_int_equal(count(&r, "padded operand"), 1);
  expect(&r, "z", z, 0.02);
  free(x);
  free(w);
  free(v);
  stop(&r);
}

/* ---- reductions ---- */

static const char sums[] =
    "x: bf16[512, 320] = input(name=x)\n"
    "w: bf16[257, 320] = input(name=w)\n"
    "y = matmul(x, w, transpose_b=yes)\n"
    "z = cast(y, to=f32)\n"
    "s = reduce_sum(z, axes=[1])\n"
    "c = reduce_max(z, axes=[0])\n"
    "a = reduce_sum(z)\n"
    "m, v = moments(z, axes=[1])\n"
    "e = neg(y)\n"
    "g = matmul(e, w)\n"
    "output s = s\noutput c = c\noutput a = a\noutput m = m\noutput v = v\noutput g = g\n";

static void reductions_read_rows_without_their_padding(void **state) {
  static double s[ROWS], c[CLASSES], m[ROWS], v[ROWS], y[CLASSES];
  double all = 0;
  ran r;
  (void)state;
  start(&r, sums, true);
  double *x = give(&r, "x", ROWS * WIDTH, 0.5, 0), *w = give(&r, "w", CLASSES * WIDTH, 0.5, 0);
  run(&r);
  for (int row = 0; row < ROWS; row++) {
    for (int k = 0; k < CLASSES; k++) {
      y[k] = (double)tn_f32_of_bf16(tn_bf16_of_f32((float)dot(x + row * WIDTH, w + k * WIDTH)));
      s[row] += y[k];
      c[k] = row == 0 ? y[k] : fmax(c[k], y[k]);
    }
    m[row] = s[row] / CLASSES;
    for (int k = 0; k < CLASSES; k++) v[row] += (y[k] - m[row]) * (y[k] - m[row]) / CLASSES;
    all += s[row];
  }
  assert_true(r.padding.results >= 2);
  assert_true(count(&r, "padded rows") >= 3);
  expect(&r, "s", s, 0.1); /* elements may be rounded to bf16 the other way */
  expect(&r, "c", c, 0.04);
  expect(&r, "a", &all, 2);
  expect(&r, "m", m, 4e-4);
  expect(&r, "v", v, 0.01);
  free(x);
  free(w);
  stop(&r);
}

/* ---- a kernel that reads the padding, which is zero ---- */

static const char checked[] = "x: bf16[512, 320] = input(name=x)\n"
                              "w: bf16[257, 320] = input(name=w)\n"
                              "y = matmul(x, w, transpose_b=yes)\n"
                              "e = exp(y)\n"
                              "z = matmul(e, w)\n"
                              "g = all_finite(e)\n"
                              "output z = z\noutput g = g\n";

static void the_padding_is_finite_for_who_reads_storage(void **state) {
  const double yes = 1;
  ran r;
  (void)state;
  start(&r, checked, false);
  free(give(&r, "x", ROWS * WIDTH, 0.125, 0));
  free(give(&r, "w", CLASSES * WIDTH, 0.125, 0));
  run(&r);
  assert_int_equal(r.padding.results, 2);
  expect(&r, "g", &yes, 0);
  stop(&r);
}

/* ---- where no gap pays ---- */

static void aligned_rows_have_no_padding(void **state) {
  ran r;
  (void)state;
  start(&r,
        "x: bf16[512, 320] = input(name=x)\n"
        "w: bf16[264, 320] = input(name=w)\n"
        "y = matmul(x, w, transpose_b=yes)\n"
        "e = neg(y)\n"
        "z = matmul(e, w)\n"
        "output z = z\n",
        true);
  free(give(&r, "x", ROWS * WIDTH, 0.125, 0));
  free(give(&r, "w", 264 * WIDTH, 0.125, 0));
  run(&r);
  assert_int_equal(r.padding.results, 0);
  assert_int_equal(count(&r, "padded"), 0);
  stop(&r);
}

/* ---- the device ---- */

static int open_device(void **state) {
  (void)state;
  double_device_open(&f, &device);
  return 0;
}

static int close_device(void **state) {
  (void)state;
  tn_device_destroy(device);
  fixture_close(&f);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_loss_of_an_odd_number_of_classes_has_padded_rows),
      cmocka_unit_test(products_of_a_batch_have_padded_rows),
      cmocka_unit_test(reductions_read_rows_without_their_padding),
      cmocka_unit_test(the_padding_is_finite_for_who_reads_storage),
      cmocka_unit_test(aligned_rows_have_no_padding),
  };
  return cmocka_run_group_tests_name("cuda padded", tests, open_device, close_device);
}

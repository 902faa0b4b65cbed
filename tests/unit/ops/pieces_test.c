/* Tests of the gradient of a sliced tensor: the gradients of adjoining slices are concatenated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/conformance/reference/reference.h"
#include "tests/unit/ops/graph_text.h"

typedef struct example {
  const char *pieces;          /* statements that make p, q and r from x: f64[2, 6] */
  int32_t concats, pads, adds; /* adds besides those of the three squares */
} example;

static int32_t count(const tn_graph *g, const char *op) {
  int32_t n = 0;
  for (size_t i = 0; i < g->nodes.n; i++) n += strcmp(g->nodes.v[i].op->item.name, op) == 0;
  return n;
}

static tn_graph *differentiated(fixture *f, const example *e) {
  char text[2048];
  tn_graph *g = NULL, *merged = NULL;
  tn_builder *builder = NULL;
  tn_val gradient = 0;
  snprintf(text, sizeof text,
           "x: f64[2, 6] = input(name=x)\n%s\n"
           "pp = mul(p, p)\nqq = mul(q, q)\nrr = mul(r, r)\n"
           "ps = reduce_sum(pp)\nqs = reduce_sum(qq)\nrs = reduce_sum(rr)\n"
           "two = mul(ps, qs)\nall = mul(two, rs)\nloss = log(all)\noutput loss = loss\n",
           e->pieces);
  if (tn_graph_parse(&f->env, f->ops, text, "test", &g) != TN_OK) fail_msg("%s", tn_error_text(&f->env));
  assert_int_equal(tn_builder_create(g, &builder), TN_OK);
  tn_val x = g->inputs.v[0];
  assert_int_equal(tn_differentiate(tn_builder_handle(builder), tn_graph_find_output(g, "loss"), 0, &x, 1,
                                    &gradient, NULL),
                   TN_OK);
  assert_int_equal(tn_graph_output(g, "gradient", gradient), TN_OK);
  assert_int_equal(tn_graph_merge(g, &merged), TN_OK);
  tn_builder_destroy(builder);
  tn_graph_destroy(g);
  return merged;
}

static double loss_at(tn_reference *r, int64_t element, double step) {
  double *x = tn_reference_input(r, "x");
  for (int64_t i = 0; i < 12; i++) x[i] = 0.5 + 0.25 * (double)(i * 5 % 12) + (i == element ? step : 0);
  assert_int_equal(tn_reference_run(r), TN_OK);
  return tn_reference_output(r, "loss", NULL)[0];
}

static void check(fixture *f, const example *e) {
  tn_graph *g = differentiated(f, e);
  tn_reference *r = NULL;
  double got[12];
  int32_t concats = count(g, "concat"), pads = count(g, "pad"), adds = count(g, "add");
  if (concats != e->concats || pads != e->pads || adds != e->adds + 3)
    fail_msg("%s: %d concats, %d pads, %d adds", e->pieces, concats, pads, adds);
  assert_int_equal(tn_reference_create(g, &r), TN_OK);
  loss_at(r, 0, 0);
  memcpy(got, tn_reference_output(r, "gradient", NULL), sizeof got);
  for (int64_t i = 0; i < 12; i++) {
    double slope = (loss_at(r, i, 1e-5) - loss_at(r, i, -1e-5)) / 2e-5;
    if (!(got[i] - slope < 1e-8 && slope - got[i] < 1e-8))
      fail_msg("%s: element %d is %.10g, expected %.10g", e->pieces, (int)i, got[i], slope);
  }
  tn_reference_destroy(r);
  tn_graph_destroy(g);
}

#define PIECE(name, from, to) name " = slice(x, starts=[0, " #from "], stops=[2, " #to "])\n"

static void pieces_side_by_side_are_joined(void **state) {
  static const example examples[] = {
      {PIECE("p", 0, 2) PIECE("q", 2, 4) PIECE("r", 4, 6), 1, 0, 0},
      {PIECE("r", 0, 1) PIECE("q", 1, 5) PIECE("p", 5, 6), 1, 0, 0},
      {PIECE("p", 1, 2) PIECE("q", 2, 4) PIECE("r", 4, 5), 1, 1, 0}, /* the ends are in no slice */
      {PIECE("p", 0, 3) PIECE("q", 2, 4) PIECE("r", 4, 6), 1, 2, 1}, /* two overlap */
      {PIECE("p", 0, 2) PIECE("q", 4, 6) PIECE("r", 2, 4), 1, 0, 0},
      {"p = slice(x, starts=[0, 0], stops=[2, 6], steps=[1, 2])\n" PIECE("q", 2, 4) PIECE("r", 4, 6), 1, 2,
       1}, /* one has gaps */
      {"p = slice(x, starts=[0, 0], stops=[1, 3])\nq = slice(x, starts=[1, 0], stops=[2, 6])\n"
       "r = slice(x, starts=[0, 3], stops=[1, 6])\n",
       0, 3, 2}, /* along two dimensions */
  };
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) check(*state, &examples[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_side_by_side_are_joined)};
  return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}

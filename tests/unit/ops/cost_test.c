/* Flops and bytes, against counts by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/ops/graph_text.h"

typedef struct example {
  const char *inputs, *statement;
  double flops, bytes;
} example;

static tn_cost cost_of(const tn_graph *g) {
  const tn_gnode *node = &g->nodes.v[g->nodes.n - 1];
  const tn_type *in[8];
  tn_type out[4];
  for (int32_t i = 0; i < node->n_in; i++) in[i] = node->in[i] == 0 ? NULL : tn_graph_type(g, node->in[i]);
  for (int32_t i = 0; i < node->n_out; i++) out[i] = *tn_graph_type(g, node->first_out + (tn_val)i);
  tn_node n = {(uint32_t)sizeof(tn_node), node->n_in, node->n_out, node->op->item.name,
               node->attributes,          in,         out};
  tn_cost cost = {.struct_size = sizeof cost};
  assert_non_null(node->op->cost);
  node->op->cost(&n, &cost);
  return cost;
}

static const example examples[] = {
    {"a: f32[2, 3]; b: f32[3, 4]", "y = matmul(a, b)", 2 * 2 * 3 * 4, 4 * (6 + 12 + 8)},
    {"a: f16[5, 3, 2]; b: f16[3, 4]; c: f16[4]", "y = matmul(a, b, c, transpose_a=yes)", 5 * 2 * 4 * 7,
     2 * (30 + 12 + 4 + 40)},
    {"x: f32[2, 4, 5, 5]; w: f32[6, 2, 3, 3]", "y = conv2d(x, w, padding=[1, 1], groups=2)",
     2.0 * 2 * 6 * 25 * 2 * 9, 4 * (200 + 108 + 300)},
    {"d: f32[2, 6, 5, 5]; w: f32[6, 2, 3, 3]",
     "y = conv2d_grad_input(d, w, padding=[1, 1], groups=2, dims=[2, 4, 5, 5])", 2.0 * 2 * 6 * 25 * 2 * 9,
     4 * (200 + 108 + 300)},
    {"x: f32[2, 4, 5, 5]; d: f32[2, 6, 5, 5]",
     "y = conv2d_grad_weight(x, d, padding=[1, 1], groups=2, dims=[6, 2, 3, 3])", 2.0 * 2 * 6 * 25 * 2 * 9,
     4 * (200 + 108 + 300)},
    {"x: f32[1, 1, 4, 4]", "y, i = max_pool2d(x, kernel=[2, 2])", 16, 4 * (16 + 4 + 4)},
    {"x: f64[3, 5]", "y = reduce_sum(x, axes=[0])", 15, 8 * (15 + 5)},
    {"x: f16[3, 5]", "m, v = moments(x, axes=[0])", 45, 2 * 15 + 4 * 10},
    {"q: f32[1, 2, 3, 4]; k: f32[1, 2, 5, 4]; v: f32[1, 2, 5, 6]", "y, z = attention(q, k, v)",
     2 * 15 * (2 * 4 + 2 * 6 + 5), 4 * (24 + 40 + 60 + 36 + 6)},
    {"q: f32[1, 1, 3, 4]; k: f32[1, 1, 5, 4]", "y, z = attention(q, k, k, causal=yes)",
     (3 + 4 + 5) * (2 * 4 + 2 * 4 + 5), 4 * (12 + 20 + 20 + 12 + 3)},
    {"q: f32[1, 3, 8]; k: f32[1, 5, 8]; v: f32[1, 5, 12]", "y, z = attention(q, k, v, heads=2)",
     2 * 15 * (2 * 4 + 2 * 6 + 5), 4 * (24 + 40 + 60 + 36 + 6)},
    {"q: f32[1, 3, 8]; v: f32[1, 3, 12]; c: f32[1, 10, 8]; d: f32[1, 10, 12]; p: i64[]",
     "a, b, e = cached_attention(q, q, v, c, d, p, heads=2)", 2 * 3 * 5 * (2 * 4 + 2 * 6 + 5),
     4 * (2 * (24 + 36) + 40 + 60)},
    {"i: i32[3]; t: f32[100, 4]", "y = embedding(i, t)", 0, 4 * (3 + 12 + 12)},
    {"x: f32[3, 5]", "y = transpose(x, order=[1, 0])", 0, 4 * 30},
    {"x: f32[3, 5]", "y = reshape(x, dims=[15])", 0, 0},
};

static void costs_are_exact(void **state) {
  fixture *f = *state;
  for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
    const example *e = &examples[i];
    tn_graph *g = NULL;
    if (graph_of(f, e->inputs, e->statement, &g) != TN_OK)
      fail_msg("%s: %s", e->statement, tn_error_text(&f->env));
    tn_cost cost = cost_of(g);
    if (cost.flops != e->flops || cost.bytes != e->bytes)
      fail_msg("%s: %g flops and %g bytes, expected %g and %g", e->statement, cost.flops, cost.bytes,
               e->flops, e->bytes);
    tn_graph_destroy(g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(costs_are_exact)};
  return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}

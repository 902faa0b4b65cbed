#include "tests/unit/compile/kernels.h"

#include <stdbool.h>
#include <string.h>

tn_status launch_nothing(tn_launch *l) {
  (void)l;
  return TN_OK;
}

tn_status offer_plain(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status offer_matmul(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "blocked", .workspace_bytes = 100, .deterministic = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

enum { PAIRS = 64 };

static int32_t list_pairs(const tn_match *m, int32_t (*pairs)[2]) {
  int32_t n = 0;
  for (int32_t i = 0; i < m->n_in; i++)
    for (int32_t k = 0; k < m->n_out; k++)
      if (m->in[i] != NULL && tn_type_equal(m->in[i], m->out[k]) && n < PAIRS) {
        pairs[n][0] = i;
        pairs[n++][1] = k;
      }
  return n;
}

/* The pass must not form a region with two iteration spaces. */
static bool one_space(const tn_match *m) {
  for (int32_t i = 1; i < m->n_out; i++)
    if (!tn_type_same_dims(m->out[i], m->out[0])) return false;
  return true;
}

static tn_status offer_pointwise(tn_query *q) {
  if (!one_space(q->match)) return tn_fail(q, TN_EINTERNAL, NULL, "results of different dims");
  int32_t pairs[PAIRS][2];
  if (q->match->n_nodes > 20)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "%d nodes are too many", (int)q->match->n_nodes);
  for (int32_t i = 0; i < q->match->n_nodes; i++)
    if (strcmp(q->match->nodes[i].node->op, "erf") == 0)
      return tn_fail(q, TN_EUNSUPPORTED, NULL, "erf is too hard");
  tn_variant v = {.struct_size = sizeof v,
                  .name = "tiles",
                  .n_inplace = list_pairs(q->match, pairs),
                  .inplace = pairs,
                  .deterministic = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

KERNEL(k_matmul, "t.matmul", "t", "y = matmul(a, b, bias?)", offer_matmul);
KERNEL(k_reduce_sum, "t.reduce_sum", "t", "y = reduce_sum(x)", offer_plain);
KERNEL(k_reduce_max, "t.reduce_max", "t", "y = reduce_max(x)", offer_plain);
KERNEL(k_conv2d, "t.conv2d", "t", "y = conv2d(x, w, bias?)", offer_plain);
KERNEL(k_transpose, "t.transpose", "t", "y = transpose(x)", offer_plain);
KERNEL(k_concat, "t.concat", "t", "y = concat(xs*)", offer_plain);
KERNEL(k_copy, "t.copy", "t", "y = copy(x)", offer_plain);
KERNEL(k_reorder, "t.reorder", "t", "y = reorder(x)", offer_plain);
KERNEL(k_moments, "t.moments", "t", "m, v = moments(x)", offer_plain);
KERNEL(k_embedding, "t.embedding", "t", "y = embedding(ids, table)", offer_plain);
KERNEL(k_pointwise, "t.pointwise", "t", "pointwise+", offer_pointwise);
KERNEL(k_matmul_relu, "t.matmul_relu", "t", "y = matmul(a, b, bias?); z = relu(y)", offer_matmul);
KERNEL(k_matmul_add_relu, "t.matmul_add_relu", "t", "y = matmul(a, b, bias?); s = add(y, r); z = relu(s)",
       offer_matmul);

/* backends/onednn/own/split.c: a linear layer whose columns go to several results, as those of the queries,
 * keys and values of attention do: it writes each of them where it is wanted, and nothing is sliced. */
#include <stdbool.h>
#include <stddef.h>

#include "kernels.h"
#include "own/gemm_plan.h"
#include "tenon/attributes.h"

enum { PARTS = 3 };

typedef struct split_plan {
  tn_gemm_cut cut; /* a product for each result */
  const tn_gemm_loops *loops;
  int64_t start[PARTS]; /* column of the whole product */
} split_plan;

/* ---- query --------------------------------------------------------------------------------------- */

static tn_status check_product(tn_query *q) {
  const tn_match *match = q->match;
  const tn_matmul_attributes *t = match->nodes[0].node.attributes;
  int32_t dtype = match->out[0]->dtype;
  if (dtype != TN_F32 && dtype != TN_BF16)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f32 or bf16", tn_dtype_name(dtype));
  if (t->math != TN_MATH_FULL)
    return tn_fail(q, TN_EUNSUPPORTED, "math", "products are rounded to tf32, expected full precision");
  if (t->transpose_a || !t->transpose_b || match->in[1]->rank != 2)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "not the product of a linear layer, with its weight transposed");
  return TN_OK;
}

/* Whether a slice takes columns alone; all of them are as wide as the first. */
static bool takes_columns(const tn_match *match, int32_t part) {
  const tn_match_node *node = &match->nodes[1 + part];
  const tn_slice_attributes *a = node->node.attributes;
  const tn_type *from = &match->nodes[0].node.out[0], *to = &node->node.out[0];
  int32_t last = from->rank - 1;
  for (int32_t i = 0; i < last; i++)
    if (to->dims[i] != from->dims[i]) return false;
  return to->dims[last] == match->out[0]->dims[last] && (a->steps.n == 0 || a->steps.v[last] == 1);
}

static tn_status check_parts(tn_query *q) {
  const tn_match *match = q->match;
  for (int32_t i = 0; i < match->n_out; i++)
    if (!takes_columns(match, i))
      return tn_fail(q, TN_EUNSUPPORTED, NULL, "the slices are not columns of the product, as many in each");
  return TN_OK;
}

static void make_plan(const tn_match *match, const void *backend, split_plan *p) {
  const tn_type *a = match->in[0], *y = match->out[0];
  int64_t rows = 1;
  for (int32_t i = 0; i < y->rank - 1; i++) rows *= y->dims[i];
  *p = (split_plan){.loops = TN_LOOPS_PICK_AT(tn_loops_gemm, tn_onednn_isa_of(backend))};
  for (int32_t i = 0; i < match->n_out; i++) {
    const tn_slice_attributes *s = match->nodes[1 + i].node.attributes;
    p->start[i] = s->starts.v[y->rank - 1];
  }
  tn_gemm_cut_make(&p->cut, y->dtype, 0, 1, match->n_out, rows, y->dims[y->rank - 1], a->dims[a->rank - 1],
                   TN_GEMM_ENDED);
}

static tn_status query(tn_query *q) {
  tn_status status = check_product(q);
  if (status == TN_OK) status = check_parts(q);
  if (status != TN_OK) return status;
  split_plan p;
  make_plan(q->match, q->backend, &p);
  const tn_variant variant = {.struct_size = (uint32_t)sizeof variant,
                              .name = "apart",
                              .workspace_bytes = tn_gemm_cut_workspace(&p.cut),
                              .keep_bytes = (int64_t)sizeof p,
                              .cost_s = tn_gemm_cut_cost_s(&p.cut, q->device->threads),
                              .deterministic = 1,
                              .capturable = 1};
  tn_add_variant(q, &variant);
  return TN_OK;
}

static tn_status prepare(tn_prepare *p, void **plan) {
  split_plan *made = tn_new(p, sizeof *made);
  if (made == NULL) return TN_ENOMEM;
  make_plan(p->match, p->backend, made);
  *plan = made;
  return TN_OK;
}

static void release(tn_env *env, void *plan) { tn_delete(env, plan); }

/* ---- launch -------------------------------------------------------------------------------------- */

static tn_gemm_matrices matrices_of(const tn_launch *l, int64_t part) {
  const split_plan *p = l->plan;
  const void *bias = l->n_in > 2 ? l->in[2].data : NULL;
  int64_t size = (int64_t)tn_dtype_size(p->cut.dtype), start = p->start[part];
  return (tn_gemm_matrices){.a = l->in[0].data,
                            .b = (const char *)l->in[1].data + start * p->cut.k * size,
                            .bias = bias == NULL ? NULL : (const char *)bias + start * size,
                            .c = l->out[part].data};
}

static void run_chunk(void *arg, int64_t chunk) {
  const tn_launch *l = arg;
  const split_plan *p = l->plan;
  const tn_gemm_end end = {.bias = NULL};
  int64_t count, first = tn_gemm_cut_chunk(&p->cut, chunk, &count);
  for (int64_t item = first; item < first + count; item++) {
    tn_gemm_range range;
    const tn_gemm_matrices x = matrices_of(l, tn_gemm_cut_item(&p->cut, item, &range));
    tn_gemm_cut_run(&p->cut, p->loops, &x, &end, &range, (char *)l->workspace + chunk * p->cut.scratch_bytes,
                    NULL);
  }
}

static tn_status launch(tn_launch *l) {
  const split_plan *p = l->plan;
  if (p->cut.chunks == 1)
    run_chunk(l, 0);
  else if (p->cut.chunks > 1)
    tn_parallel(l, p->cut.chunks, run_chunk, l);
  return TN_OK;
}

#define SPLIT(name, text)                                                                                    \
  const tn_kernel tn_onednn_##name = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #name,           \
                                                            "a linear layer with results side by side"),     \
                                      .family = "onednn",                                                    \
                                      .pattern = text,                                                       \
                                      .query = query,                                                        \
                                      .prepare = prepare,                                                    \
                                      .release = release,                                                    \
                                      .launch = launch}

SPLIT(split_2, "y = matmul(x, w, bias?); a = slice(y); b = slice(y) -> a, b");
SPLIT(split_3, "y = matmul(x, w, bias?); a = slice(y); b = slice(y); c = slice(y) -> a, b, c");

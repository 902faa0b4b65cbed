/* tests/integration/compare/broken/product.h: a kernel of the family onednn for matrix products in f32.
 * FAULT(y, rows, columns, launches) spoils the result; launches counts those of the prepared kernel. */
#include <tenon/attributes.h>
#include <tenon/plugin/kernel.h>

typedef struct product {
  tn_matmul_attributes attributes;
  int64_t launches;
} product;

static tn_status query(tn_query *q) {
  const tn_match *m = q->match;
  if (m->in[0]->dtype != TN_F32 || m->in[0]->rank != 2 || m->in[1]->rank != 2)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "matrices in f32 only");
  tn_variant v = {
      .struct_size = sizeof v, .name = "loops", .cost_s = 1e-12, .deterministic = 1, .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status prepare(tn_prepare *p, void **prepared) {
  product *kept = tn_new(p, sizeof *kept);
  if (kept == NULL) return TN_ENOMEM;
  kept->attributes = *(const tn_matmul_attributes *)p->match->nodes[0].node->attributes;
  *prepared = kept;
  return TN_OK;
}

static void release(tn_env *env, void *prepared) { tn_delete(env, prepared); }

static float element(const tn_view *m, int32_t transposed, int64_t i, int64_t k) {
  int64_t columns = m->type.dims[1];
  return ((const float *)m->data)[transposed ? k * columns + i : i * columns + k];
}

static tn_status launch(tn_launch *l) {
  product *p = l->prepared;
  const tn_view *a = &l->in[0], *b = &l->in[1];
  const float *bias = l->n_in > 2 ? l->in[2].data : NULL;
  int64_t rows = l->out[0].type.dims[0], columns = l->out[0].type.dims[1];
  int64_t depth = a->type.dims[p->attributes.transpose_a ? 0 : 1];
  float *y = l->out[0].data;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      double sum = bias != NULL ? (double)bias[j] : 0.0;
      for (int64_t k = 0; k < depth; k++)
        sum += (double)element(a, p->attributes.transpose_a, i, k) *
               (double)element(b, !p->attributes.transpose_b, j, k);
      y[i * columns + j] = (float)sum;
    }
  p->launches++;
  if (rows > 0 && columns > 0) FAULT(y, rows, columns, p->launches);
  return TN_OK;
}

static const tn_kernel kernel = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, NAME, "a matrix product with a fault"),
    .family = "onednn",
    .pattern = "y = matmul(a, b, bias?)",
    .query = query,
    .prepare = prepare,
    .release = release,
    .launch = launch};
TN_PLUGIN(broken, "1", "MIT", &kernel.item)

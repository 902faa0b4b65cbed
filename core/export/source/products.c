/* core/export/source/products.c: steps that call a kernel. */
#include <string.h>

#include "core/export/source/source.h"
#include "tenon/attributes.h"

static bool product_is_f32(const source_use *u) {
  for (int32_t i = 0; i < u->node->n_in; i++)
    if (source_has(u, i) && source_in(u, i)->dtype != TN_F32) return false;
  return true;
}

/* ---- convolutions ---- */

static int64_t conv_behind(const tn_conv2d_attributes *a, int32_t i) {
  return a->padding.v[a->padding.n > a->stride.n ? a->stride.n + i : i];
}

/* The padded image, and what the last block of a row reads behind it. */
enum { CONV_SLACK = 16 };

static void product_conv(const source_use *u) {
  const tn_conv2d_attributes *a = u->node->attributes;
  const tn_type *x = source_in(u, 0), *w = source_in(u, 1), *y = source_out(u, 0);
  int64_t height = x->dims[2] + a->padding.v[0] + conv_behind(a, 0),
          width = x->dims[3] + a->padding.v[1] + conv_behind(a, 1), row = width + CONV_SLACK * a->stride.v[1],
          scratch = x->dims[1] * height * row * (int64_t)sizeof(float);
  source_begin(u, scratch);
  u->p->kernels |= SOURCE_CONV;
  tn_text_addf(
      &u->p->steps,
      "  const conv_sizes s = {.batch = %lld, .in = %lld, .height = %lld, .width = %lld, .out = %lld,\n"
      "                        .kernel = {%lld, %lld}, .result = {%lld, %lld}, .stride = {%lld, %lld},\n"
      "                        .padding = {%lld, %lld}, .dilation = {%lld, %lld}, .groups = %lld,\n"
      "                        .padded = %lld, .row = %lld};\n"
      "  conv2d(&s, a0, a1, %s, y0, scratch);\n",
      (long long)x->dims[0], (long long)x->dims[1], (long long)x->dims[2], (long long)x->dims[3],
      (long long)y->dims[1], (long long)w->dims[2], (long long)w->dims[3], (long long)y->dims[2],
      (long long)y->dims[3], (long long)a->stride.v[0], (long long)a->stride.v[1], (long long)a->padding.v[0],
      (long long)a->padding.v[1], (long long)a->dilation.v[0], (long long)a->dilation.v[1],
      (long long)a->groups, (long long)height, (long long)row, source_has(u, 2) ? "a2" : "0");
  source_end(u);
}

/* ---- matrix products ---- */

/* The offset of a matrix of the batch, from the places i0, i1 ... in the result's batch. */
static void product_offset(tn_text *t, const tn_type *type, int32_t rank) {
  int64_t step = type->rank >= 2 ? type->dims[type->rank - 1] * type->dims[type->rank - 2] : 1;
  tn_text_add(t, "0");
  for (int32_t k = type->rank - 3; k >= 0; step *= type->dims[k--])
    if (type->dims[k] != 1) tn_text_addf(t, " + i%d * %lld", (int)(rank - type->rank + k), (long long)step);
}

static bool product_takes_matrices(const source_use *u) {
  return product_is_f32(u) && source_in(u, 0)->rank >= 2 && source_in(u, 1)->rank >= 2;
}

static void product_of_matrices(const source_use *u) {
  const tn_matmul_attributes *m = u->node->attributes;
  const tn_type *a = source_in(u, 0), *b = source_in(u, 1), *y = source_out(u, 0);
  int64_t rows = y->dims[y->rank - 2], columns = y->dims[y->rank - 1],
          inner = a->dims[a->rank - (m->transpose_a ? 2 : 1)];
  tn_text *t = &u->p->steps;
  source_begin(u, 0);
  u->p->kernels |= SOURCE_MATMUL;
  for (int32_t i = 0; i + 2 < y->rank; i++)
    tn_text_addf(t, "  for (long i%d = 0; i%d < %lld; i%d++)\n", (int)i, (int)i, (long long)y->dims[i],
                 (int)i);
  tn_text_add(t, "  matmul(a0 + ");
  product_offset(t, a, y->rank);
  tn_text_add(t, ", a1 + ");
  product_offset(t, b, y->rank);
  tn_text_addf(t, ", %s, y0 + ", source_has(u, 2) ? "a2" : "0");
  product_offset(t, y, y->rank);
  tn_text_addf(t, ", %lld, %lld, %lld, %d, %d);\n", (long long)rows, (long long)columns, (long long)inner,
               (int)m->transpose_a, (int)m->transpose_b);
  source_end(u);
}

/* ---- pooling ---- */

static void product_pool(const source_use *u, uint32_t kernel, const char *name, const char *more) {
  const tn_pool2d_attributes *a = u->node->attributes;
  const tn_type *x = source_in(u, 0), *y = source_out(u, 0);
  const int64_t *stride = a->stride.n > 0 ? a->stride.v : a->kernel.v;
  source_begin(u, 0);
  u->p->kernels |= kernel;
  tn_text_addf(&u->p->steps,
               "  %s(a0, y0, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld%s);\n", name,
               (long long)(x->dims[0] * x->dims[1]), (long long)x->dims[2], (long long)x->dims[3],
               (long long)y->dims[2], (long long)y->dims[3], (long long)a->kernel.v[0],
               (long long)a->kernel.v[1], (long long)stride[0], (long long)stride[1],
               (long long)a->padding.v[0], (long long)a->padding.v[1], more);
  source_end(u);
}

static void product_max_pool(const source_use *u) { product_pool(u, SOURCE_MAX_POOL, "max_pool2d", ""); }
static void product_avg_pool(const source_use *u) {
  const tn_pool2d_attributes *a = u->node->attributes;
  product_pool(u, SOURCE_AVG_POOL, "avg_pool2d", a->include_pad ? ", 1" : ", 0");
}

/* The kernel gives values alone. */
static bool product_takes_values(const source_use *u) {
  return product_is_f32(u) && u->p->reads[u->node->first_out + 1] == 0;
}

const source_row source_rows_products[] = {
    {"conv2d", .emit = product_conv, .takes = product_is_f32},
    {"matmul", .emit = product_of_matrices, .takes = product_takes_matrices},
    {"max_pool2d", .emit = product_max_pool, .takes = product_takes_values},
    {"avg_pool2d", .emit = product_avg_pool, .takes = product_is_f32},
    {NULL},
};

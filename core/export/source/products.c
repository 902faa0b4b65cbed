/* core/export/source/products.c: steps that call a kernel. */
#include <string.h>

#include "core/export/source/source.h"
#include "core/graph/input_state.h"
#include "tenon/attributes.h"

static bool product_is_f32(const source_use *u) {
  for (int32_t i = 0; i < u->node->n_in; i++)
    if (source_has(u, i) && source_in(u, i)->dtype != TN_F32) return false;
  return true;
}

/* The weight behind operand i, a state of f32 in its own order of elements; NULL path: it is computed. */
static source_weight product_state(const source_use *u, int32_t i) {
  const tn_gnode *node = u->node, *maker = tn_graph_maker(u->p->graph, node->in[i]);
  while (source_is_view(u->p, maker)) {
    node = maker;
    i = 0;
    maker = tn_graph_maker(u->p->graph, node->in[0]);
  }
  source_weight w = {.path = tn_export_state_path(u->p->graph, node, i)};
  if (w.path != NULL) w.type = ((const tn_state_attributes *)maker->attributes)->type;
  return w;
}

/* ---- convolutions ---- */

static int64_t conv_behind(const tn_conv2d_attributes *a, int32_t i) {
  return a->padding.v[a->padding.n > a->stride.n ? a->stride.n + i : i];
}

static bool conv_is_depthwise(const source_use *u) {
  const tn_conv2d_attributes *a = u->node->attributes;
  return a->groups > 1 && a->groups == source_in(u, 0)->dims[1];
}

static source_panels conv_panels(const source_use *u) {
  const tn_conv2d_attributes *a = u->node->attributes;
  const tn_type *w = source_in(u, 1);
  return (source_panels){
      .groups = a->groups, .columns = w->dims[0] / a->groups, .inner = w->dims[1] * w->dims[2] * w->dims[3]};
}

/* The bias that comes of a batch norm. */
static source_parameter conv_shift(const source_use *u, const tn_export_norm *norm) {
  const source_weight shift = {.norm = norm,
                               .type = {.dtype = TN_F32, .rank = 1, .dims = {source_in(u, 1)->dims[0]}}};
  return (source_parameter){"a2", "float", source_weight_pointer(u->p, &shift)};
}

/* The kernel, with `packed` in panels, and the bias; in the file with the batch norm behind them, which is
 * part of them. Returns their number. */
static int32_t conv_operands(const source_use *u, source_weight kernel, bool packed, source_parameter in[2]) {
  source_program *p = u->p;
  tn_val by = p->folded[u->node->first_out];
  if (by != 0) kernel.norm = tn_export_fold_norm(&p->arena, p->graph, u->node, by);
  if (packed) kernel.panels = conv_panels(u);
  bool lost = by != 0 && kernel.norm == NULL; /* memory is out */
  in[0] = lost                ? (source_parameter){"a1", "float", NULL}
          : packed || by != 0 ? (source_parameter){"a1", "float", source_weight_pointer(p, &kernel)}
                              : source_parameter_of(p, "a1", u->node->in[1]);
  if (by != 0 && !lost)
    in[1] = conv_shift(u, kernel.norm);
  else if (by == 0 && source_has(u, 2))
    in[1] = source_parameter_of(p, "a2", u->node->in[2]);
  else
    return 1;
  return 2;
}

static int64_t conv_padded(const source_use *u, int32_t i) {
  const tn_conv2d_attributes *a = u->node->attributes;
  return source_in(u, 0)->dims[2 + i] + a->padding.v[i] + conv_behind(a, i);
}

/* Bytes of padded planes: of one, or of all. */
static int64_t conv_scratch(const source_use *u) {
  const tn_type *x = source_in(u, 0);
  int64_t planes = conv_is_depthwise(u) ? 1 : x->dims[1];
  return planes * conv_padded(u, 0) * conv_padded(u, 1) * (int64_t)sizeof(float);
}

static void conv_add_sizes(const source_use *u) {
  const tn_conv2d_attributes *a = u->node->attributes;
  const tn_type *x = source_in(u, 0), *w = source_in(u, 1), *y = source_out(u, 0);
  tn_text_addf(
      &u->p->steps,
      "  const conv_sizes s = {.batch = %lld, .in = %lld, .height = %lld, .width = %lld, .out = %lld,\n"
      "                        .kernel = {%lld, %lld}, .result = {%lld, %lld}, .stride = {%lld, %lld},\n"
      "                        .padding = {%lld, %lld}, .dilation = {%lld, %lld}, .groups = %lld,\n"
      "                        .padded = {%lld, %lld}};\n",
      (long long)x->dims[0], (long long)x->dims[1], (long long)x->dims[2], (long long)x->dims[3],
      (long long)y->dims[1], (long long)w->dims[2], (long long)w->dims[3], (long long)y->dims[2],
      (long long)y->dims[3], (long long)a->stride.v[0], (long long)a->stride.v[1], (long long)a->padding.v[0],
      (long long)a->padding.v[1], (long long)a->dilation.v[0], (long long)a->dilation.v[1],
      (long long)a->groups, (long long)conv_padded(u, 0), (long long)conv_padded(u, 1));
}

/* Panels of a kernel that is computed lie behind the padded planes. */
static void product_conv(const source_use *u) {
  const source_weight kernel = product_state(u, 1);
  bool depthwise = conv_is_depthwise(u), state = kernel.path != NULL, packs = !depthwise && !state;
  const source_panels panels = conv_panels(u);
  source_parameter in[3] = {source_parameter_of(u->p, "a0", u->node->in[0])};
  int32_t n = 1 + conv_operands(u, kernel, !depthwise && state, in + 1);
  int64_t planes = conv_scratch(u), packed = source_panel_elements(&panels);
  source_begin_with(u, in, n, planes + (packs ? packed * (int64_t)sizeof(float) : 0));
  u->p->kernels |= SOURCE_CONV_SIZES | (depthwise ? SOURCE_DEPTHWISE : SOURCE_TILE | SOURCE_CONV) |
                   (packs ? SOURCE_PACK : 0);
  conv_add_sizes(u);
  if (packs)
    tn_text_addf(&u->p->steps,
                 "  float *panels = scratch + %lld;\n  for (long g = 0; g < %lld; g++)\n"
                 "    pack_panels(a1 + g * %lld, panels + g * %lld, %lld, %lld, 1);\n",
                 (long long)(planes / (int64_t)sizeof(float)), (long long)panels.groups,
                 (long long)(panels.columns * panels.inner), (long long)(packed / panels.groups),
                 (long long)panels.columns, (long long)panels.inner);
  tn_text_addf(&u->p->steps, "  %s(&s, a0, %s, %s, y0, scratch);\n",
               depthwise ? "conv2d_depthwise" : "conv2d", packs ? "panels" : "a1", n == 3 ? "a2" : "0");
  source_end(u);
}

static bool product_takes_conv(const source_use *u) {
  return product_is_f32(u) && tn_type_count(source_in(u, 1)) > 0;
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

static source_panels matrix_panels(const source_use *u) {
  const tn_matmul_attributes *m = u->node->attributes;
  const tn_type *b = source_in(u, 1);
  int64_t rows = b->dims[b->rank - 2], columns = b->dims[b->rank - 1];
  return (source_panels){.groups = 1,
                         .columns = m->transpose_b ? rows : columns,
                         .inner = m->transpose_b ? columns : rows,
                         .turned = !m->transpose_b};
}

/* A matrix of the file in panels; path NULL: there is a batch of them, or they are computed. */
static source_weight matrix_weight(const source_use *u, const source_panels *panels) {
  source_weight w = product_state(u, 1);
  if (w.path != NULL && tn_type_count(&w.type) != panels->columns * panels->inner) w.path = NULL;
  if (w.path != NULL) w.panels = *panels;
  return w;
}

static void matrix_loops(const source_use *u) {
  const tn_type *y = source_out(u, 0);
  for (int32_t i = 0; i + 2 < y->rank; i++)
    tn_text_addf(&u->p->steps, "  for (long i%d = 0; i%d < %lld; i%d++)\n", (int)i, (int)i,
                 (long long)y->dims[i], (int)i);
  tn_text_add(&u->p->steps, "  {\n");
}

/* "    const tile_matrix m = {a1, 10, 84};", behind the packing of b where it is no weight. */
static void matrix_panels_text(const source_use *u, const source_panels *panels, bool packs) {
  tn_text *t = &u->p->steps;
  if (packs) {
    tn_text_add(t, "    pack_panels(a1 + ");
    product_offset(t, source_in(u, 1), source_out(u, 0)->rank);
    tn_text_addf(t, ", scratch, %lld, %lld, %d);\n", (long long)panels->columns, (long long)panels->inner,
                 (int)!panels->turned);
  }
  tn_text_addf(t, "    const tile_matrix m = {%s, %lld, %lld};\n", packs ? "scratch" : "a1",
               (long long)panels->columns, (long long)panels->inner);
}

static void product_of_matrices(const source_use *u) {
  const tn_matmul_attributes *m = u->node->attributes;
  const tn_type *a = source_in(u, 0), *y = source_out(u, 0);
  const source_panels panels = matrix_panels(u);
  const source_weight w = matrix_weight(u, &panels);
  bool packs = w.path == NULL;
  source_parameter in[3] = {source_parameter_of(u->p, "a0", u->node->in[0]),
                            packs ? source_parameter_of(u->p, "a1", u->node->in[1])
                                  : (source_parameter){"a1", "float", source_weight_pointer(u->p, &w)}};
  if (source_has(u, 2)) in[2] = source_parameter_of(u->p, "a2", u->node->in[2]);
  source_begin_with(u, in, source_has(u, 2) ? 3 : 2,
                    packs ? source_panel_elements(&panels) * (int64_t)sizeof(float) : 0);
  u->p->kernels |= SOURCE_TILE | SOURCE_MATMUL | (packs ? SOURCE_PACK : 0);
  matrix_loops(u);
  matrix_panels_text(u, &panels, packs);
  tn_text_add(&u->p->steps, "    matmul(a0 + ");
  product_offset(&u->p->steps, a, y->rank);
  tn_text_addf(&u->p->steps, ", &m, %s, y0 + ", source_has(u, 2) ? "a2" : "0");
  product_offset(&u->p->steps, y, y->rank);
  tn_text_addf(&u->p->steps, ", %lld, %d);\n  }\n", (long long)y->dims[y->rank - 2], (int)m->transpose_a);
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
    {"conv2d", .emit = product_conv, .takes = product_takes_conv},
    {"matmul", .emit = product_of_matrices, .takes = product_takes_matrices},
    {"max_pool2d", .emit = product_max_pool, .takes = product_takes_values},
    {"avg_pool2d", .emit = product_avg_pool, .takes = product_is_f32},
    {NULL},
};

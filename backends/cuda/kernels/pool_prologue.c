/* backends/cuda/kernels/pool_prologue.c: max_pool2d and its gradient with the region in front of them: the
 * activation that is pooled, or the sum of gradients that comes back (device/pool_kernels.cuh).
 *
 * Windows overlap, so max_pool2d makes the elements under a tile of windows once, in shared memory. The
 * gradient reads an element of dy where it was the largest, and of each window that is one. Results of the
 * region are not stored: their elements are made several times, or not at all. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/kernels/image_layouts.h"
#include "backends/cuda/kernels/index.h"
#include "backends/cuda/kernels/pool.h"
#include "backends/cuda/kernels/threads.h"
#include "backends/cuda/pointwise/prologue.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"

enum { POOL_ROWS = 8, POOL_LANES = 32, POOL_PACK_BYTES = 16 };

/* The argument of the functions (POOL_WITH_PROLOGUE). */
typedef struct pool_joined_args {
  struct pool_args pool;
  struct pool_tile tile;
  uint64_t words[TN_CUDA_EPILOGUE_WORDS - 64];
} pool_joined_args;
_Static_assert(sizeof(pool_joined_args) <= 4096, "CUDA's limit of arguments");

typedef struct pool_joined {
  tn_cuda_function function;
  tn_cuda_grid grid;
  struct pool_args args;
  struct pool_tile tile;
  tn_cuda_prologue front;
  int32_t index, out[2]; /* numbers of the launch; index: of the gradient's operand */
} pool_joined;

/* ---- the match ---- */

static const tn_match *pool_statement(const tn_cuda_prologue_text *t) { return &t->parts.rest.match; }

static bool pool_joined_is_gradient(const tn_match *m) { return m->n_in > 1; }

static tn_status pool_split(const void *handle, const tn_match *m, tn_cuda_prologue_text *t) {
  tn_status status = tn_prologue_split(handle, m, m->n_nodes - 1, &t->parts);
  const tn_prologue *p = &t->parts;
  if (status != TN_OK) return status;
  if (p->n_taken != 1 || p->rest.source[0].place != TN_EPILOGUE_INNER)
    return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the region in front makes another operand");
  if (m->n_out == p->rest.match.n_out && m->n_out == m->nodes[m->n_nodes - 1].node->n_out) return TN_OK;
  return tn_fail(handle, TN_EUNSUPPORTED, NULL, "a value of the region in front has another reader");
}

/* ---- tiles ---- */

static int pool_under(const struct pool_axis *a, int outputs) {
  return (outputs - 1) * (int)a->stride.divisor + a->kernel;
}

static int64_t pool_tile_bytes(const struct pool_args *a, const struct pool_tile *t, int64_t size) {
  return (int64_t)pool_under(&a->axis[0], t->rows) * pool_under(&a->axis[1], t->columns) * t->lanes * size;
}

/* Tiles become smaller until the elements under them fit. False: those of one window do not. */
static bool pool_shrink_tile(const struct pool_args *a, struct pool_tile *t, int32_t pack, int64_t size) {
  while (pool_tile_bytes(a, t, size) > POOL_TILE_BYTES) {
    if (t->rows > 1 && t->rows >= t->columns)
      t->rows = (t->rows + 1) / 2;
    else if (t->columns > 1)
      t->columns = (t->columns + 1) / 2;
    else if (t->lanes > pack)
      t->lanes = (t->lanes / pack + 1) / 2 * pack;
    else
      return false;
  }
  return true;
}

/* Elements of a pack: neighbouring lanes. */
static int32_t pool_pack(const struct pool_args *a, int64_t size) {
  int32_t pack = (int32_t)(POOL_PACK_BYTES / size);
  while (a->lanes.divisor % pack != 0) pack /= 2;
  return pack;
}

/* The least multiple of the pack from n on. */
static int pool_whole_packs(int64_t n, int32_t pack) { return (int)((n + pack - 1) / pack * pack); }

static bool pool_make_tile(const struct pool_args *a, int64_t size, struct pool_tile *t) {
  int32_t pack = pool_pack(a, size);
  int64_t lanes = least(a->lanes.divisor, POOL_LANES), out[2] = {a->axis[0].out, a->axis[1].out};
  *t = (struct pool_tile){.rows = (int)at_least_1(least(out[0], POOL_ROWS)),
                          .columns =
                              (int)at_least_1(least(out[1], POOL_ROWS * (a->lanes.divisor == 1 ? 4 : 1))),
                          .lanes = pool_whole_packs(at_least_1(lanes), pack)};
  if (!pool_shrink_tile(a, t, pack, size)) return false;
  t->in_rows = pool_under(&a->axis[0], t->rows);
  t->in_columns = pool_under(&a->axis[1], t->columns);
  int64_t tiles[3] = {divide_up(out[0], t->rows), divide_up(out[1], t->columns),
                      divide_up(a->lanes.divisor, t->lanes)};
  t->count = 1;
  for (int32_t i = 0; i < 3; i++) {
    t->tiles[i] = tn_cuda_divider(at_least_1(tiles[i]));
    t->count *= tiles[i];
  }
  t->packs = tn_cuda_divider(t->lanes / pack);
  t->pixels = tn_cuda_divider(t->in_columns);
  t->outputs[0] = tn_cuda_divider(t->columns);
  t->outputs[1] = tn_cuda_divider(t->lanes);
  return true;
}

/* The planes of a tile's count. */
static void pool_count_tiles(const struct pool_args *a, struct pool_tile *t) {
  int64_t plane = (int64_t)a->axis[0].out * a->axis[1].out * a->lanes.divisor;
  t->count *= plane > 0 ? a->count / plane : 0;
}

/* ---- the text ---- */

/* The arguments of a variant; tiles are for max_pool2d. */
typedef struct pool_variant {
  struct pool_args args;
  struct pool_tile tile;
} pool_variant;

static tn_status pool_make_variant(const void *handle, const tn_match *statement, int32_t how,
                                   pool_variant *v) {
  int64_t size = (int64_t)tn_dtype_size(statement->in[0]->dtype);
  tn_cuda_pool_fill(statement, how, &v->args);
  if (tn_cuda_is_long(tn_type_count(statement->in[0])) || tn_cuda_is_long(v->args.count))
    return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the images have more than 2^31 elements");
  if (pool_joined_is_gradient(statement)) return TN_OK;
  if (!pool_make_tile(&v->args, size, &v->tile))
    return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the elements under a window need more than %d bytes",
                   (int)POOL_TILE_BYTES);
  pool_count_tiles(&v->args, &v->tile);
  return TN_OK;
}

static tn_status pool_print(const void *handle, tn_cuda_prologue_text *t, int32_t how,
                            const pool_variant *v) {
  const tn_match *m = pool_statement(t);
  const tn_operand_layout rule = tn_cuda_image_layout(how);
  int32_t dtype = m->in[0]->dtype;
  tn_cuda_front front = {
      .width = pool_joined_is_gradient(m) ? 1 : pool_pack(&v->args, (int64_t)tn_dtype_size(dtype)), .n = 1};
  char tail[128];
  snprintf(tail, sizeof tail,
           "#include \"backends/cuda/device/pool_kernels.cuh\"\n\nPOOL_WITH_PROLOGUE(%s, %s)\n",
           tn_dtype_name(dtype), dtype == TN_F64 ? "f64" : "f32");
  tn_status status =
      tn_cuda_prologue_print(handle, t, how == TN_CUDA_ROW_MAJOR ? NULL : &rule.layout, &front, tail);
  int32_t most = (int32_t)(sizeof(((pool_joined_args *)0)->words) / sizeof(uint64_t));
  if (status == TN_OK && t->printed.n_words > most)
    return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the region needs %d words of arguments, at most %d",
                   (int)t->printed.n_words, (int)most);
  return status;
}

/* ---- query ---- */

/* How often an element of x is made: where tiles overlap, again. */
static double pool_times_made(const tn_match *statement, const pool_variant *v) {
  double elements = (double)tn_type_count(statement->in[0]);
  if (pool_joined_is_gradient(statement) || elements == 0) return 1;
  return (double)v->tile.count * v->tile.in_rows * v->tile.in_columns * v->tile.lanes / elements;
}

static void pool_add(tn_query *q, const tn_cuda_prologue_text *t, int32_t how, const pool_variant *v,
                     tn_operand_layout *in, tn_operand_layout *out) {
  const tn_match *m = q->match;
  const tn_epilogue_part *rest = &t->parts.rest;
  const tn_operand_layout rule = tn_cuda_image_layout(how);
  memset(in, 0, (size_t)m->n_in * sizeof *in);
  for (int32_t i = 1; i < rest->match.n_in; i++) in[rest->source[i].at] = rule;
  for (int32_t k = 0; k < m->n_out; k++) out[k] = rule;
  tn_cuda_prologue_rules(t, &rule, in, out);
  double flops = t->printed.flops * pool_times_made(&rest->match, v);
  tn_offer(q, (tn_variant){.id = how,
                           .name = how == TN_CUDA_ROW_MAJOR ? "planes" : "channels last",
                           .in = in,
                           .out = out,
                           .prepared_bytes = sizeof(pool_joined),
                           .cost_s = tn_cuda_estimate_s(q->device, TN_CUDA_ROWS, tn_match_bytes(m), flops,
                                                        q->device->vector_flops_per_s)});
}

static tn_status pool_joined_offer(tn_query *q, tn_cuda_prologue_text *t, tn_operand_layout *rules) {
  tn_status status = tn_cuda_pool_check(q, pool_statement(t));
  for (int32_t how = TN_CUDA_ROW_MAJOR; how <= TN_CUDA_CHANNELS_LAST && status == TN_OK; how++) {
    pool_variant v = {{0}};
    status = pool_make_variant(q, pool_statement(t), how, &v);
    if (status == TN_OK) status = pool_print(q, t, how, &v);
    if (status == TN_OK) pool_add(q, t, how, &v, rules, rules + q->match->n_in);
  }
  return status;
}

static tn_status cuda_pool_prologue_query(tn_query *q) {
  tn_cuda_prologue_text *t = tn_new(q, sizeof *t);
  tn_operand_layout *rules = tn_new(q, ((size_t)q->match->n_in + (size_t)q->match->n_out) * sizeof *rules);
  tn_status status = t != NULL && rules != NULL ? pool_split(q, q->match, t) : TN_ENOMEM;
  if (status == TN_OK) status = pool_joined_offer(q, t, rules);
  if (t != NULL) tn_cuda_prologue_drop(q, t);
  tn_delete(q, t);
  tn_delete(q, rules);
  return status;
}

/* ---- prepare ---- */

static void pool_joined_keep(pool_joined *keep, const tn_cuda_prologue_text *t, const pool_variant *v) {
  const tn_epilogue_part *rest = &t->parts.rest;
  bool gradient = pool_joined_is_gradient(&rest->match);
  keep->args = v->args;
  keep->tile = v->tile;
  keep->grid = gradient ? tn_cuda_grid_of(v->args.count, TN_CUDA_THREADS, TN_CUDA_BLOCKS)
                        : tn_cuda_task_grid(v->tile.count, 1, TN_CUDA_THREADS);
  keep->index = gradient ? (int32_t)rest->source[1].at : -1;
  for (int32_t k = 0; k < rest->match.n_out; k++) {
    const tn_epilogue_source *s = &rest->source[rest->match.n_in + k];
    keep->out[k] = s->place == TN_EPILOGUE_RESULT ? (int32_t)s->at : -1;
  }
  tn_cuda_prologue_keep(t, &keep->front);
}

static tn_status pool_request(tn_prepare *p, tn_cuda_prologue_text *t, pool_joined *keep) {
  pool_variant v = {{0}};
  char title[96];
  tn_status status = pool_split(p, p->match, t);
  if (status == TN_OK) status = pool_make_variant(p, pool_statement(t), p->variant, &v);
  if (status == TN_OK) status = pool_print(p, t, p->variant, &v);
  if (status != TN_OK || v.args.count == 0) return status;
  const tn_match *m = pool_statement(t);
  pool_joined_keep(keep, t, &v);
  snprintf(title, sizeof title, "%s and a region of %d ops", m->nodes[0].node->op,
           (int)p->match->n_nodes - 1);
  return tn_cuda_request_text(p, &keep->function, title, t->printed.text,
                              pool_joined_is_gradient(m) ? "max_grad_pool" : "max_pool");
}

static tn_status cuda_pool_prologue_prepare(tn_prepare *p, void **made) {
  tn_cuda_prologue_text *t = tn_new(p, sizeof *t);
  pool_joined *keep = tn_new(p, sizeof *keep);
  *made = keep;
  tn_status status = t != NULL && keep != NULL ? pool_request(p, t, keep) : TN_ENOMEM;
  if (t != NULL) tn_cuda_prologue_drop(p, t);
  tn_delete(p, t);
  return status;
}

/* ---- launch ---- */

static tn_status cuda_pool_prologue_launch(tn_launch *l) {
  const pool_joined *k = l->prepared;
  pool_joined_args a = {.pool = k->args, .tile = k->tile};
  if (a.pool.count == 0) return TN_OK;
  a.tile.aligned = tn_cuda_prologue_point(&k->front, l, a.words);
  a.pool.to = l->out[k->out[0]].data;
  a.pool.index = k->index >= 0 ? l->in[k->index].data : l->out[k->out[1]].data;
  return tn_cuda_launch(l, &k->function, &k->grid, &a,
                        offsetof(pool_joined_args, words) + (size_t)k->front.part.n_words * sizeof *a.words);
}

TN_DEFINE_KERNEL(cuda, max_pool2d_prologue, "cuda_max_pool2d_prologue",
                 "pointwise+; y, index = max_pool2d(x)",
                 "maxima of windows of what the region in front makes",
                 TN_KERNEL_CALLBACKS_WITH(cuda_pool_prologue, tn_cuda_release_function));
TN_DEFINE_KERNEL(cuda, max_pool2d_grad_prologue, "cuda_max_pool2d_grad_prologue",
                 "pointwise+; dx = max_pool2d_grad(dy, index)",
                 "each element collects what the region in front makes",
                 TN_KERNEL_CALLBACKS_WITH(cuda_pool_prologue, tn_cuda_release_function));

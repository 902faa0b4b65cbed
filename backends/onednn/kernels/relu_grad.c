/* backends/onednn/kernels/relu_grad.c: the gradient of a ReLU and the sums that the gradient of the
 * normalization before the ReLU needs, in one pass, so that the gradient is not read again to be summed.
 * Where the activation has two readers, their gradients are added first. Where the ReLU's operand is the
 * normalization's result, its sign is computed again from the normalization's operand, which is read for the
 * sums in any case. Channels come in blocks as wide as a vector. */
#include "backends/onednn/kernels/relu_grad.h"
#include "backends/shared/integer_math.h"

#include <stdbool.h>
#include <string.h>

#include "backends/shared/constants.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/onednn/kernels/image_layouts.h"
#include "tenon/attributes.h"

enum {
  CHUNK = 1 << 15, /* elements of a chunk, at least */
  CHUNKS = 64      /* at most */
};

/* The positions of the operands in a pattern; -1: absent. */
typedef struct relu_grad_operands {
  int32_t dy, more, r, bound, other, x, mean, rstd, scale, shift;
} relu_grad_operands;
static const relu_grad_operands relu_grad_plain = {2, -1, 0, 1, 3, 4, 5, 6, -1, -1},
                                relu_grad_added = {0, 1, 2, 3, 4, 5, 6, 7, -1, -1},
                                relu_grad_normalized = {5, -1, -1, 4, 4, 3, 0, 6, 1, 2};

typedef struct relu_grad_kernel {
  relu_grad_operands operands;
  void (*run)(const tn_relu_grad *g, int64_t n);
  int32_t lanes;
  int64_t size;                          /* of an element */
  int64_t images, blocks, pixels;        /* blocks of channels */
  int64_t part, parts, blocks_per_chunk; /* images in a part; a chunk is some blocks of one part */
} relu_grad_kernel;

/* ---- launch --------------------------------------------------------------------------------------- */

typedef struct relu_grad_job {
  const relu_grad_kernel *p;
  const tn_launch *l;
} relu_grad_job;

static double *relu_grad_sums(const relu_grad_job *j, int64_t part, int64_t block) {
  return (double *)j->l->workspace + (part * j->p->blocks + block) * 2 * j->p->lanes;
}

static const void *relu_grad_operand(const relu_grad_job *j, int32_t i, int64_t offset) {
  return i < 0 ? NULL : (const uint8_t *)j->l->in[i].data + offset;
}

static void relu_grad_block(const relu_grad_job *j, int64_t part, int64_t block) {
  const relu_grad_kernel *p = j->p;
  int64_t row = block * p->lanes * (int64_t)sizeof(float);
  tn_relu_grad g = {.mean = relu_grad_operand(j, p->operands.mean, row),
                    .scale = relu_grad_operand(j, p->operands.scale, row),
                    .shift = relu_grad_operand(j, p->operands.shift, row),
                    .sums = relu_grad_sums(j, part, block)};
  int64_t end = least(p->images, (part + 1) * p->part);
  memset(g.sums, 0, (size_t)p->lanes * 2 * sizeof *g.sums);
  for (int64_t image = part * p->part; image < end; image++) {
    int64_t offset = (image * p->blocks + block) * p->pixels * p->lanes * p->size;
    g.dy = relu_grad_operand(j, p->operands.dy, offset);
    g.more = relu_grad_operand(j, p->operands.more, offset);
    g.r = relu_grad_operand(j, p->operands.r, offset);
    g.x = relu_grad_operand(j, p->operands.x, offset);
    g.h = (uint8_t *)j->l->out[0].data + offset;
    p->run(&g, p->pixels);
  }
}

static void relu_grad_run_chunk(void *arg, int64_t chunk) {
  const relu_grad_job *j = arg;
  int64_t block = chunk / j->p->parts * j->p->blocks_per_chunk;
  int64_t end = least(j->p->blocks, block + j->p->blocks_per_chunk);
  for (; block < end; block++) relu_grad_block(j, chunk % j->p->parts, block);
}

/* Adds up the parts of some blocks of channels, in the order of the parts. */
static void relu_grad_combine_chunk(void *arg, int64_t chunk) {
  const relu_grad_job *j = arg;
  const relu_grad_kernel *p = j->p;
  float *sum = j->l->out[1].data, *dot = j->l->out[2].data;
  const float *rstd = j->l->in[p->operands.rstd].data;
  int64_t block = chunk * p->blocks_per_chunk, end = least(p->blocks, block + p->blocks_per_chunk);
  for (; block < end; block++) {
    double *sums = relu_grad_sums(j, 0, block);
    for (int64_t part = 1; part < p->parts; part++)
      for (int32_t i = 0; i < 2 * p->lanes; i++) sums[i] += relu_grad_sums(j, part, block)[i];
    for (int32_t i = 0; i < p->lanes; i++) {
      int64_t channel = block * p->lanes + i;
      sum[channel] = (float)sums[i];
      dot[channel] = (float)(sums[p->lanes + i] * (double)rstd[channel]);
    }
  }
}

static tn_status onednn_relu_grad_launch(tn_launch *l) {
  const relu_grad_kernel *p = l->prepared;
  relu_grad_job j = {p, l};
  int64_t chunks = divide_up(p->blocks, p->blocks_per_chunk);
  tn_parallel(l, chunks * p->parts, relu_grad_run_chunk, &j);
  tn_parallel(l, chunks, relu_grad_combine_chunk, &j);
  return TN_OK;
}

/* ---- query and prepare ---------------------------------------------------------------------------- */

static bool relu_grad_are_batch_axes(const tn_reduce_attributes *a, int32_t rank) {
  for (int64_t i = 0; i < a->axes.n; i++)
    if (a->axes.v[i] == 1 || a->axes.v[i] + rank == 1) return false;
  return a->axes.n == rank - 1;
}

static bool relu_grad_types_fit(const tn_match *m, const relu_grad_operands *at) {
  const int32_t wide[] = {at->dy, at->more, at->r};
  for (int32_t i = 0; i < 3; i++)
    if (wide[i] >= 0 && !tn_type_equal(m->in[wide[i]], m->in[at->x])) return false;
  return tn_operand_is_zero(m, at->bound) && tn_operand_is_zero(m, at->other) &&
         tn_type_equal(m->out[0], m->in[at->x]) && m->in[at->mean]->dtype == TN_F32;
}

/* The first three nodes of a normalization are views of one row for each channel, the next ones compute in
 * f32; the ReLU reads their result in the type of x. */
static bool relu_grad_is_normalized(const tn_match *m, const relu_grad_operands *at) {
  const tn_type *x = m->in[at->x], *relu = &m->nodes[m->n_nodes - 4].node->out[0];
  if (m->in[at->scale]->dtype != TN_F32 || m->in[at->shift]->dtype != TN_F32 || !tn_type_equal(relu, x) ||
      m->nodes[m->n_nodes - 5].node->in[0]->dtype != TN_F32)
    return false;
  for (int32_t i = 0; i < 3; i++) {
    const tn_type *row = &m->nodes[i].node->out[0];
    if (row->rank != x->rank || row->dims[1] != x->dims[1] || tn_type_count(row) != x->dims[1]) return false;
  }
  return true;
}

/* Chunks of blocks of channels, and parts of the images where there are few blocks. */
static void relu_grad_divide(relu_grad_kernel *p) {
  int64_t work = at_least_1(p->images * p->pixels * p->lanes), chunks;
  p->blocks_per_chunk = at_least_1(CHUNK / work);
  chunks = divide_up(p->blocks, p->blocks_per_chunk);
  p->part = at_least_1(p->images);
  while (p->part > 1 && work / divide_up(p->images, p->part) > CHUNK &&
         chunks * divide_up(p->images, p->part) < CHUNKS)
    p->part = (p->part + 1) / 2;
  p->parts = at_least_1(divide_up(p->images, p->part));
}

/* False where the kernel does not support the match. */
static bool relu_grad_make(const tn_match *m, const void *backend, relu_grad_kernel *p) {
  const tn_relu_grad_loops *loops = TN_LOOPS_PICK_AT(tn_loops_relu_grad, tn_onednn_isa_of(backend));
  bool normalized = m->n_nodes > 4;
  relu_grad_operands at = normalized     ? relu_grad_normalized
                          : m->n_in == 8 ? relu_grad_added
                                         : relu_grad_plain;
  const tn_type *x = m->in[at.x];
  *p = (relu_grad_kernel){.operands = at, .run = loops->run[x->dtype], .lanes = loops->lanes, .pixels = 1};
  if (p->run == NULL || x->rank < 3 || x->dims[1] == 0 || x->dims[1] % p->lanes != 0 ||
      !relu_grad_types_fit(m, &at) || (normalized && !relu_grad_is_normalized(m, &at)) ||
      !relu_grad_are_batch_axes(m->nodes[m->n_nodes - 1].node->attributes, x->rank))
    return false;
  p->size = (int64_t)tn_dtype_size(x->dtype);
  p->images = x->dims[0];
  p->blocks = x->dims[1] / p->lanes;
  for (int32_t i = 2; i < x->rank; i++) p->pixels *= x->dims[i];
  relu_grad_divide(p);
  return true;
}

static tn_status onednn_relu_grad_query(tn_query *q) {
  const tn_match *m = q->match;
  relu_grad_kernel p;
  if (!relu_grad_make(m, q->backend, &p))
    return tn_fail(
        q, TN_EUNSUPPORTED, NULL,
        "the channels do not fill blocks, the gate is not that of a ReLU, or the axes or types are not "
        "those of a batch norm");
  tn_operand_layout in[8] = {{0}}, out[3] = {{0}};
  tn_operand_layout blocked = {TN_LAYOUT_FIXED, 0, tn_channels_blocked(m->out[0]->rank, p.lanes)};
  const int32_t wide[] = {p.operands.dy, p.operands.more, p.operands.r, p.operands.x};
  int32_t tensors = 1;
  for (int32_t i = 0; i < 4; i++) {
    if (wide[i] < 0) continue;
    in[wide[i]] = blocked;
    tensors++;
  }
  out[0] = blocked;
  const int32_t inplace[2][2] = {{p.operands.dy, 0}, {p.operands.more, 0}};
  return tn_offer(
      q, (tn_variant){.name = "blocks",
                      .in = in,
                      .out = out,
                      .workspace_bytes = p.parts * p.blocks * p.lanes * 2 * (int64_t)sizeof(double),
                      .prepared_bytes = sizeof(relu_grad_kernel),
                      .n_inplace = p.operands.more < 0 ? 1 : 2,
                      .inplace = inplace,
                      .cost_s = tn_cost_of_bytes(q->device, tensors * (double)tn_type_bytes(m->out[0]))});
}

static tn_status onednn_relu_grad_prepare(tn_prepare *p, void **made) {
  relu_grad_kernel *kernel = tn_new(p, sizeof *kernel);
  if (kernel == NULL) return TN_ENOMEM;
  relu_grad_make(p->match, p->backend, kernel);
  *made = kernel;
  return TN_OK;
}

TN_DEFINE_KERNEL(onednn, relu_norm_grad_sums, "onednn_relu_norm_grad_sums",
                 "g = gt(r, c); h = where(g, dy, d); s, q = norm_grad_sums(h, x, mean, rstd) -> h, s, q",
                 "the gradient of a ReLU and the sums of the normalization before it",
                 TN_KERNEL_CALLBACKS_WITH(onednn_relu_grad, tn_delete_prepared));
TN_DEFINE_KERNEL(
    onednn, add_relu_norm_grad_sums, "onednn_add_relu_norm_grad_sums",
    "a = add(u, v); g = gt(r, c); h = where(g, a, d); s, q = norm_grad_sums(h, x, mean, rstd) -> h, s, q",
    "two gradients added, a ReLU's gradient, and the sums of the normalization before it",
    TN_KERNEL_CALLBACKS_WITH(onednn_relu_grad, tn_delete_prepared));

/* The normalization in f32, and around it the casts of mixed precision. */
#define ROWS "&m = reshape(mean); &w = reshape(scale); &b = reshape(shift); "
#define GATE "g = gt(r, z); h = where(g, dy, z); s, q = norm_grad_sums(h, x, mean, rstd) -> h, s, q"
TN_DEFINE_KERNEL(
    onednn, norm_relu_grad_sums, "onednn_norm_relu_grad_sums",
    ROWS "&c = sub(x, m); &p = mul(c, w); &n = add(p, b); &r = maximum(n, z); " GATE,
    "the gradient of a ReLU whose gate is computed again, and the sums of the normalization before it",
    TN_KERNEL_CALLBACKS_WITH(onednn_relu_grad, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, cast_norm_relu_grad_sums, "onednn_cast_norm_relu_grad_sums",
                 ROWS "&f = cast(x); &c = sub(f, m); &p = mul(c, w); &a = add(p, b); &n = cast(a); "
                      "&r = maximum(n, z); " GATE,
                 "the same in mixed precision, with the normalization in f32",
                 TN_KERNEL_CALLBACKS_WITH(onednn_relu_grad, tn_delete_prepared));

/* The gradient of a ReLU, with the sum of two gradients in front of it where an activation has two readers,
 * and the sums that the gradient of the normalization before the ReLU needs, in one pass: what the ReLU lets
 * through is written once and need not be read again to be summed. Channels in blocks as wide as a vector. */
#include "backends/onednn/kernels/relu_grad.h"
#include "backends/onednn/integer_math.h"

#include <stdbool.h>
#include <string.h>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/image_layouts.h"
#include "tenon/attributes.h"

enum {
  CHUNK = 1 << 15, /* elements that a chunk should at least have */
  CHUNKS = 64      /* that are enough for any team */
};

/* Where a pattern's operands are. */
typedef struct places {
  int32_t dy, more, r, bound, otherwise, x, mean, rstd;
} places;
static const places plain = {2, -1, 0, 1, 3, 4, 5, 6}, added = {0, 1, 2, 3, 4, 5, 6, 7};

typedef struct plan {
  places at;
  void (*run)(const tn_gate *g, int64_t n);
  int32_t lanes;
  int64_t size;                          /* of an element */
  int64_t images, blocks, pixels;        /* blocks of channels */
  int64_t part, parts, blocks_per_chunk; /* images in a part; a chunk is some blocks of one part */
} plan;

/* ---- launch --------------------------------------------------------------------------------------- */

typedef struct job {
  const plan *p;
  const tn_launch *l;
} job;

static double *sums_of(const job *j, int64_t part, int64_t block) {
  return (double *)j->l->workspace + (part * j->p->blocks + block) * 2 * j->p->lanes;
}

static const void *operand(const job *j, int32_t i, int64_t offset) {
  return i < 0 ? NULL : (const uint8_t *)j->l->in[i].data + offset;
}

static void do_block(const job *j, int64_t part, int64_t block) {
  const plan *p = j->p;
  tn_gate g = {.bound = operand(j, p->at.bound, 0),
               .otherwise = operand(j, p->at.otherwise, 0),
               .mean = (const float *)j->l->in[p->at.mean].data + block * p->lanes,
               .sums = sums_of(j, part, block)};
  int64_t end = least(p->images, (part + 1) * p->part);
  memset(g.sums, 0, (size_t)p->lanes * 2 * sizeof *g.sums);
  for (int64_t image = part * p->part; image < end; image++) {
    int64_t offset = (image * p->blocks + block) * p->pixels * p->lanes * p->size;
    g.dy = operand(j, p->at.dy, offset);
    g.more = operand(j, p->at.more, offset);
    g.r = operand(j, p->at.r, offset);
    g.x = operand(j, p->at.x, offset);
    g.h = (uint8_t *)j->l->out[0].data + offset;
    p->run(&g, p->pixels);
  }
}

static void gate_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  int64_t block = chunk / j->p->parts * j->p->blocks_per_chunk;
  int64_t end = least(j->p->blocks, block + j->p->blocks_per_chunk);
  for (; block < end; block++) do_block(j, chunk % j->p->parts, block);
}

/* Parts in their order; chunk by chunk of channels. */
static void combine_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const plan *p = j->p;
  float *sum = j->l->out[1].data, *dot = j->l->out[2].data;
  const float *rstd = j->l->in[p->at.rstd].data;
  int64_t block = chunk * p->blocks_per_chunk, end = least(p->blocks, block + p->blocks_per_chunk);
  for (; block < end; block++) {
    double *sums = sums_of(j, 0, block);
    for (int64_t part = 1; part < p->parts; part++)
      for (int32_t i = 0; i < 2 * p->lanes; i++) sums[i] += sums_of(j, part, block)[i];
    for (int32_t i = 0; i < p->lanes; i++) {
      int64_t channel = block * p->lanes + i;
      sum[channel] = (float)sums[i];
      dot[channel] = (float)(sums[p->lanes + i] * (double)rstd[channel]);
    }
  }
}

static tn_status launch(tn_launch *l) {
  const plan *p = l->plan;
  job j = {p, l};
  int64_t chunks = divide_up(p->blocks, p->blocks_per_chunk);
  tn_parallel(l, chunks * p->parts, gate_chunk, &j);
  tn_parallel(l, chunks, combine_chunk, &j);
  return TN_OK;
}

/* ---- query and prepare ---------------------------------------------------------------------------- */

static bool are_batch_axes(const tn_reduce_attributes *a, int32_t rank) {
  for (int64_t i = 0; i < a->axes.n; i++)
    if (a->axes.v[i] == 1 || a->axes.v[i] + rank == 1) return false;
  return a->axes.n == rank - 1;
}

static bool types_fit(const tn_match *m, const places *at) {
  const tn_type *x = m->in[at->x];
  const int32_t wide[] = {at->dy, at->more < 0 ? at->dy : at->more, at->r},
                one[] = {at->bound, at->otherwise};
  for (int32_t i = 0; i < 3; i++)
    if (!tn_type_equal(m->in[wide[i]], x)) return false;
  for (int32_t i = 0; i < 2; i++)
    if (m->in[one[i]]->dtype != x->dtype || tn_type_count(m->in[one[i]]) != 1) return false;
  return tn_type_equal(m->out[0], x) && m->in[at->mean]->dtype == TN_F32;
}

/* Blocks of channels first, and images where those are few. */
static void divide(plan *p) {
  int64_t work = at_least_1(p->images * p->pixels * p->lanes), chunks;
  p->blocks_per_chunk = at_least_1(CHUNK / work);
  chunks = divide_up(p->blocks, p->blocks_per_chunk);
  p->part = at_least_1(p->images);
  while (p->part > 1 && work / divide_up(p->images, p->part) > CHUNK &&
         chunks * divide_up(p->images, p->part) < CHUNKS)
    p->part = (p->part + 1) / 2;
  p->parts = at_least_1(divide_up(p->images, p->part));
}

/* False: not among its own. */
static bool make_plan(const tn_match *m, const void *backend, plan *p) {
  const tn_gate_loops *loops = TN_LOOPS_PICK_AT(tn_loops_gate, tn_onednn_isa_of(backend));
  places at = m->n_in == 8 ? added : plain;
  const tn_type *x = m->in[at.x];
  *p = (plan){.at = at, .run = loops->run[x->dtype], .lanes = loops->lanes, .pixels = 1};
  if (p->run == NULL || x->rank < 3 || x->dims[1] == 0 || x->dims[1] % p->lanes != 0 || !types_fit(m, &at) ||
      !are_batch_axes(m->nodes[m->n_nodes - 1].node->attributes, x->rank))
    return false;
  p->size = (int64_t)tn_dtype_size(x->dtype);
  p->images = x->dims[0];
  p->blocks = x->dims[1] / p->lanes;
  for (int32_t i = 2; i < x->rank; i++) p->pixels *= x->dims[i];
  divide(p);
  return true;
}

static tn_status query(tn_query *q) {
  const tn_match *m = q->match;
  plan p;
  if (!make_plan(m, q->backend, &p))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "channels that do not come in blocks, or other axes or types");
  tn_operand_layout in[8] = {{0}}, out[3] = {{0}};
  tn_operand_layout blocked = {TN_LAYOUT_FIXED, 0, tn_channels_blocked(m->out[0]->rank, p.lanes)};
  const int32_t wide[] = {p.at.dy, p.at.more < 0 ? p.at.dy : p.at.more, p.at.r, p.at.x};
  for (int32_t i = 0; i < 4; i++) in[wide[i]] = blocked;
  out[0] = blocked;
  const int32_t inplace[2][2] = {{p.at.dy, 0}, {p.at.more, 0}};
  tn_variant v = {.struct_size = sizeof v,
                  .name = "blocks",
                  .in = in,
                  .out = out,
                  .workspace_bytes = p.parts * p.blocks * p.lanes * 2 * (int64_t)sizeof(double),
                  .prepared_bytes = sizeof(plan),
                  .n_inplace = p.at.more < 0 ? 1 : 2,
                  .inplace = inplace,
                  .cost_s = 1e-7 + (p.at.more < 0 ? 4 : 5) * (double)tn_type_bytes(m->out[0]) / 1e10,
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status prepare(tn_prepare *p, void **made) {
  plan *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  make_plan(p->match, p->backend, keep);
  *made = keep;
  return TN_OK;
}

static void release(tn_env *env, void *made) { tn_delete(env, made); }

#define GATE(id, text, what)                                                                                 \
  const tn_kernel tn_onednn_##id = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #id, what),        \
                                    .family = "onednn",                                                      \
                                    .pattern = text,                                                         \
                                    .query = query,                                                          \
                                    .prepare = prepare,                                                      \
                                    .release = release,                                                      \
                                    .launch = launch}

GATE(relu_norm_grad_sums,
     "g = gt(r, c); h = where(g, dy, d); s, q = norm_grad_sums(h, x, mean, rstd) -> h, s, q",
     "the gradient of a ReLU and the sums of the normalization before it");
GATE(add_relu_norm_grad_sums,
     "a = add(u, v); g = gt(r, c); h = where(g, a, d); s, q = norm_grad_sums(h, x, mean, rstd) -> h, s, q",
     "two gradients added, a ReLU's gradient, and the sums of the normalization before it");

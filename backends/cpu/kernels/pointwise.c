/* Pointwise regions: as many neighbouring pointwise ops as the host finds, in one pass over memory.
 * The region is compiled (pointwise_ops.h) and its program run tile by tile. */
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/pointwise_ops.h"
#include "tenon/plugin/storage.h"

#include <string.h>

/* What prepare keeps. */
typedef struct plan {
  tn_pw_program *program;
  tn_storage storage; /* of every operand and result that is not a single value */
} plan;

/* ---- launch ---- */

typedef struct run {
  const tn_pw_program *program;
  const tn_launch *launch;
} run;

static void step(const tn_pw_insn *insn, const tn_pw_tile *tile) {
  if (insn->op >= PW_LOAD) {
    tn_pw_access(insn, tile);
    return;
  }
  void *in[3];
  for (int32_t k = 0; k < 3; k++) in[k] = insn->in[k] < 0 ? NULL : tile->reg[insn->in[k]];
  tn_pw_compute(insn, tile->reg[insn->out], in, tile->n);
}

/* Points the registers that are memory at the tile. */
static void bind(const tn_pw_tile *tile) {
  const tn_pw_program *p = tile->program;
  const tn_launch *l = tile->launch;
  for (int32_t i = 0; i < p->n_bindings; i++) {
    const tn_pw_binding *b = &p->bindings[i];
    const tn_view *view = b->view < l->n_in ? &l->in[b->view] : &l->out[b->view - l->n_in];
    tile->reg[b->reg] = (uint8_t *)view->data + (size_t)tile->at * b->size;
  }
}

static void run_chunk(void *arg, int64_t chunk) {
  const run *r = arg;
  const tn_pw_program *p = r->program;
  _Alignas(64) uint8_t buffer[TN_PW_BUFFER];
  void *reg[TN_PW_REGISTERS];
  int64_t at = chunk * TN_PW_CHUNK, end = at + TN_PW_CHUNK < p->count ? at + TN_PW_CHUNK : p->count;
  tn_pw_tile tile = {p, r->launch, reg, at, end - at < p->tile ? end - at : p->tile};
  for (int32_t i = 0; i < p->n_slots; i++) reg[i] = buffer + p->slots[i] * (size_t)p->tile;
  for (int32_t i = 0; i < p->n_prologue; i++) step(&p->insns[i], &tile);
  for (; tile.at < end; tile.at += tile.n) {
    if (end - tile.at < tile.n) tile.n = end - tile.at;
    bind(&tile);
    for (int32_t i = p->n_prologue; i < p->n_insns; i++) step(&p->insns[i], &tile);
  }
}

static tn_status launch(tn_launch *l) {
  const plan *made = l->plan;
  run r = {made->program, l};
  tn_parallel(l, (r.program->count + TN_PW_CHUNK - 1) / TN_PW_CHUNK, run_chunk, &r);
  for (int32_t i = 0; i < l->n_out && made->storage.padded; i++)
    tn_storage_clear_padding(&made->storage, &l->out[i].type, l->out[i].data);
  return TN_OK;
}

/* ---- query, prepare, release ---- */

/* Bytes moved, and a nanosecond for every eight elements of an instruction. */
static double cost(const tn_match *m, const tn_pw_program *p) {
  double bytes = 0;
  for (int32_t i = 0; i < m->n_in; i++) bytes += m->in[i] == NULL ? 0 : (double)tn_type_bytes(m->in[i]);
  for (int32_t i = 0; i < m->n_out; i++) bytes += (double)tn_type_bytes(m->out[i]);
  return bytes / 1e10 + 1.25e-10 * (double)p->count * (p->n_insns - p->n_prologue);
}

/* Every operand and result in one layout, whatever it is; single values need none. */
static void any_layout(const tn_match *m, tn_operand_layout *rules) {
  for (int32_t i = 0; i < m->n_in; i++)
    if (m->in[i] != NULL && tn_type_count(m->in[i]) != 1) rules[i].rule = TN_LAYOUT_ANY;
  for (int32_t i = 0; i < m->n_out; i++)
    if (tn_type_count(m->out[i]) != 1) rules[m->n_in + i].rule = TN_LAYOUT_ANY;
}

static tn_status offer(tn_query *q, const tn_pw_program *p) {
  const tn_match *m = q->match;
  tn_operand_layout *rules = tn_new(q, ((size_t)m->n_in + (size_t)m->n_out) * sizeof *rules);
  if (rules == NULL) return TN_ENOMEM;
  if (p->storage_order) any_layout(m, rules);
  tn_variant v = {.struct_size = sizeof v,
                  .name = "tiles",
                  .in = rules,
                  .out = rules + m->n_in,
                  .prepared_bytes = (int64_t)(sizeof(plan) + p->bytes),
                  .n_inplace = p->n_inplace,
                  .inplace = (const int32_t(*)[2])p->inplace,
                  .cost_s = cost(m, p),
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  tn_delete(q, rules);
  return TN_OK;
}

static tn_status query(tn_query *q) {
  tn_pw_program *program = NULL;
  tn_status status = tn_pw_compile(q, q->match, &program);
  if (status != TN_OK) return status;
  status = offer(q, program);
  tn_delete(q, program);
  return status;
}

static void release(tn_env *env, void *made) {
  plan *p = made;
  if (p == NULL) return;
  tn_delete(env, p->program);
  tn_delete(env, p);
}

static tn_status prepare(tn_prepare *p, void **made) {
  plan *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  tn_status status = tn_pw_compile(p, p->match, &keep->program);
  if (status != TN_OK) {
    release(&p->env, keep);
    return status;
  }
  tn_layout unset = {0};
  keep->storage = tn_storage_of(p->match->out[0], p->out_layout != NULL ? &p->out_layout[0] : &unset);
  keep->program->count = keep->storage.count;
  *made = keep;
  return TN_OK;
}

#define POINTWISE(id, text, what)                                                                            \
  const tn_kernel tn_cpu_##id = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, #id, what),                     \
                                 .family = "cpu",                                                            \
                                 .pattern = text,                                                            \
                                 .query = query,                                                             \
                                 .prepare = prepare,                                                         \
                                 .release = release,                                                         \
                                 .launch = launch}

POINTWISE(pointwise, "pointwise+", "pointwise regions, compiled to instructions over tiles");
POINTWISE(random_uniform, "y = random_uniform(iteration, block?)", "uniform random numbers");
POINTWISE(random_normal, "y = random_normal(iteration, block?)", "normally distributed random numbers");

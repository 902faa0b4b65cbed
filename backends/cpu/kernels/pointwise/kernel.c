/* Pointwise regions: as many neighbouring pointwise ops as the host finds, in one pass over memory.
 * The region is compiled (program.h) and its program run tile by tile. */
#include "backends/cpu/kernels/pointwise/program.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/plugin/storage.h"

/* Made by prepare, used by launch. */
typedef struct pointwise_plan {
  tn_pw_program *program;
  tn_storage storage; /* of every operand and result that is not a single value */
} pointwise_plan;

/* ---- launch ---- */

typedef struct pointwise_run {
  const tn_pw_program *program;
  const tn_launch *launch;
} pointwise_run;

static void pointwise_step(const tn_pw_insn *insn, const tn_cpu_pw_tile *tile) {
  if (insn->op >= TN_PW_COMPUTED) {
    tn_cpu_pw_access(insn, tile);
    return;
  }
  void *in[TN_PW_INPUTS];
  for (int32_t k = 0; k < TN_PW_INPUTS; k++) in[k] = insn->in[k] < 0 ? NULL : tile->reg[insn->in[k]];
  tn_cpu_pw_compute(insn, tile->reg[insn->out], in, tile->n);
}

/* Points the registers that are memory at the tile. */
static void pointwise_bind(const tn_cpu_pw_tile *tile) {
  const tn_pw_program *p = tile->program;
  const tn_launch *l = tile->launch;
  for (int32_t i = 0; i < p->n_bindings; i++) {
    const tn_pw_binding *b = &p->bindings[i];
    const tn_view *view = b->view < l->n_in ? &l->in[b->view] : &l->out[b->view - l->n_in];
    tile->reg[b->reg] = (uint8_t *)view->data + (size_t)tile->at * b->size;
  }
}

static void pointwise_run_chunk(void *arg, int64_t chunk) {
  const pointwise_run *r = arg;
  const tn_pw_program *p = r->program;
  const tn_pw_insn *insns = p->insns;
  _Alignas(64) uint8_t buffer[TN_CPU_PW_BUFFER];
  void *reg[TN_PW_REGISTERS];
  int64_t at = chunk * TN_CPU_PW_CHUNK,
          end = at + TN_CPU_PW_CHUNK < p->count ? at + TN_CPU_PW_CHUNK : p->count;
  tn_cpu_pw_tile tile = {p, r->launch, reg, at, end - at < p->tile ? end - at : p->tile};
  for (int32_t i = 0; i < p->n_slots; i++) reg[i] = buffer + p->slots[i];
  for (int32_t i = 0; i < p->end[TN_PW_ONCE]; i++) pointwise_step(&insns[i], &tile);
  for (; tile.at < end; tile.at += tile.n) {
    if (end - tile.at < tile.n) tile.n = end - tile.at;
    pointwise_bind(&tile);
    for (int32_t i = p->end[TN_PW_ONCE]; i < p->end[TN_PW_PER_ELEMENT]; i++) pointwise_step(&insns[i], &tile);
  }
}

static tn_status pointwise_launch(tn_launch *l) {
  const pointwise_plan *made = l->prepared;
  pointwise_run r = {made->program, l};
  tn_parallel(l, (r.program->count + TN_CPU_PW_CHUNK - 1) / TN_CPU_PW_CHUNK, pointwise_run_chunk, &r);
  for (int32_t i = 0; i < l->n_out && made->storage.padded; i++)
    tn_storage_clear_padding(&made->storage, &l->out[i].type, l->out[i].data);
  return TN_OK;
}

/* ---- query, prepare, release ---- */

/* Random numbers and spread compute an index first, and a block adds to it. */
static int32_t pointwise_work_of(const tn_pw_insn *insn) {
  bool random = insn->op == TN_PW_UNIFORM || insn->op == TN_PW_NORMAL;
  return 1 + (random || insn->op == TN_PW_SPREAD) + (random && insn->in[1] != TN_PW_NONE);
}

/* An instruction takes a core of 1e11 flop/s a nanosecond for every eight elements. */
static double pointwise_cost(const tn_device_properties *d, const tn_match *m, const tn_pw_program *p) {
  const tn_pw_insn *insns = p->insns;
  int32_t work = 0;
  for (int32_t i = p->end[TN_PW_ONCE]; i < p->end[TN_PW_PER_ELEMENT]; i++)
    work += pointwise_work_of(&insns[i]);
  return tn_estimate_s(d, tn_match_bytes(m), 12.5 * (double)p->count * work, d->vector_flops_per_s);
}

/* All operands and results share any one layout; single values are row-major. */
static void pointwise_any_layout(const tn_match *m, tn_operand_layout *rules) {
  for (int32_t i = 0; i < m->n_in; i++)
    if (m->in[i] != NULL && tn_type_count(m->in[i]) != 1) rules[i].rule = TN_LAYOUT_ANY;
  for (int32_t i = 0; i < m->n_out; i++)
    if (tn_type_count(m->out[i]) != 1) rules[m->n_in + i].rule = TN_LAYOUT_ANY;
}

static tn_status pointwise_offer(tn_query *q, const tn_pw_program *p) {
  const tn_match *m = q->match;
  tn_operand_layout *rules = tn_new(q, ((size_t)m->n_in + (size_t)m->n_out) * sizeof *rules);
  if (rules == NULL) return TN_ENOMEM;
  if (p->storage_order) pointwise_any_layout(m, rules);
  tn_offer(q, (tn_variant){.name = "tiles",
                           .in = rules,
                           .out = rules + m->n_in,
                           .prepared_bytes = (int64_t)(sizeof(pointwise_plan) + p->bytes),
                           .n_inplace = p->n_inplace,
                           .inplace = (const int32_t(*)[2])p->inplace,
                           .cost_s = pointwise_cost(q->device, m, p)});
  tn_delete(q, rules);
  return TN_OK;
}

static tn_status pointwise_query(tn_query *q) {
  tn_pw_program *program = NULL;
  TN_TRY(tn_cpu_pw_compile(q, q->match, &program));
  tn_status status = pointwise_offer(q, program);
  tn_delete(q, program);
  return status;
}

static void pointwise_release(tn_env *env, void *made) {
  pointwise_plan *p = made;
  if (p == NULL) return;
  tn_delete(env, p->program);
  tn_delete(env, p);
}

static tn_status pointwise_prepare(tn_prepare *p, void **made) {
  pointwise_plan *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  tn_status status = tn_cpu_pw_compile(p, p->match, &keep->program);
  if (status != TN_OK) {
    pointwise_release(&p->env, keep);
    return status;
  }
  tn_layout unset = {0};
  keep->storage = tn_storage_of(p->match->out[0], p->out_layout != NULL ? &p->out_layout[0] : &unset);
  keep->program->count = keep->storage.count;
  *made = keep;
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, pointwise, "pointwise", "pointwise+",
                 "pointwise regions, compiled to instructions over tiles", TN_KERNEL_CALLBACKS(pointwise));
TN_DEFINE_KERNEL(cpu, random_uniform, "random_uniform", "y = random_uniform(iteration, block?)",
                 "uniform random numbers", TN_KERNEL_CALLBACKS(pointwise));
TN_DEFINE_KERNEL(cpu, random_normal, "random_normal", "y = random_normal(iteration, block?)",
                 "normally distributed random numbers", TN_KERNEL_CALLBACKS(pointwise));

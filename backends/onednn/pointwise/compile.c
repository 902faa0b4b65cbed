/* From a match to a program (program.h):
 *
 *   cut       the order of the elements and its segments (space.c)
 *   build     the shared list of instructions (backends/shared/pointwise/ir.h)
 *   lower     operands along segments, narrow values (lower.c)
 *   fuse      some instructions become one (fuse.c)
 *   schedule, place, assign: shared */
#include <string.h>

#include "backends/onednn/pointwise/compile.h"
#include "backends/shared/cost.h"

/* ---- chunks ---- */

static double tile_compile_weight(const tn_tile_insn *insn) {
#define FUNCTION(op, ...) case TN_PW_FN_##op:
  switch (insn->op) {
    TN_FUNCTIONS_OF_ONE(FUNCTION)
    TN_FUNCTIONS_OF_TWO(FUNCTION)
  case TN_PW_FMOD: return 100;
  case TN_PW_EXP:
  case TN_PW_LOG:
  case TN_PW_TANH:
  case TN_PW_SIGMOID:
  case TN_PW_ERF: return insn->lane == TN_LANE_F32 ? 8 : 100;
  case TN_PW_UNIFORM:
  case TN_PW_NORMAL:
  case TILE_GATHER: return 10;
  case TN_PW_DIV:
  case TN_PW_SQRT:
  case TN_PW_RSQRT:
  case TN_PW_RECIPROCAL: return 3;
  default: return 1;
  }
}

/* Nanoseconds for the instructions of an element. */
static double tile_compile_element_ns(const tn_tile_program *p) {
  const tn_tile_insn *insns = p->base.insns;
  double work = 0;
  for (int32_t i = p->base.end[TN_PW_PER_SEGMENT]; i < p->base.end[TN_PW_PER_ELEMENT]; i++)
    work += tile_compile_weight(&insns[i]);
  return 0.05 * work;
}

/* A chunk is worth waking a thread for, with memory at 10 GB/s: the number of chunks is the same on all
 * machines. There is an even number of them where there are few, and a bound where there are many: a chunk
 * begins with instructions that run once, and with memory that the processor does not fetch ahead. */
static void tile_compile_choose_chunks(const tn_match *m, tn_tile_program *p) {
  enum { MOST_CHUNKS = 1024 };
  const double chunk_ns = 16000;
  if (p->base.count == 0) return;
  double work_ns = (double)p->base.count * tile_compile_element_ns(p);
  double all_ns = work_ns + tn_match_bytes(m) / 10;
  int64_t n = (int64_t)(all_ns / chunk_ns) + 1, even = 1;
  while (even < n) even *= 2;
  if (even <= 16) n = even;
  if (n > MOST_CHUNKS) n = MOST_CHUNKS;
  p->chunk = (p->base.count + n - 1) / n;
  p->chunk = (p->chunk + p->base.tile - 1) / p->base.tile * p->base.tile;
  p->n_chunks = (p->base.count + p->chunk - 1) / p->chunk;
  p->work_s = work_ns * 1e-9;
  p->streams = tn_match_bytes(m) > (double)tn_onednn_cached_bytes();
}

/* ---- the space ---- */

/* Operands that are read element by element and repeated: not the values of spread. */
static void tile_compile_list_repeated(const tn_match *m, const tn_type **types) {
  memcpy(types, m->in, (size_t)m->n_in * sizeof *types);
  for (int32_t i = 0; i < m->n_nodes; i++)
    if (strcmp(m->nodes[i].node->op, "spread") == 0 && m->nodes[i].in[0] < m->n_in)
      types[m->nodes[i].in[0]] = NULL;
  for (int32_t i = 0; i < m->n_in; i++)
    if (types[i] != NULL && (tn_pw_is_single(types[i]) || tn_type_same_dims(types[i], m->out[0]) ||
                             !tn_pw_broadcasts(types[i], m->out[0])))
      types[i] = NULL;
}

static tn_status tile_compile_cut(const void *handle, const tn_match *m, const tn_pw_space *s,
                                  tn_tile_compiler *c) {
  const tn_type **types = tn_new(handle, ((size_t)m->n_in + 1) * sizeof *types);
  if (types == NULL) return TN_ENOMEM;
  tile_compile_list_repeated(m, types);
  c->first = tn_tile_space_cut(s, types, m->n_in);
  c->segment = 1;
  for (int32_t i = c->first; i < s->n_axes; i++) c->segment *= s->axis[i].extent;
  for (int32_t i = 0; i < m->n_in && c->cycle > 0; i++) {
    bool repeats =
        types[i] != NULL && (c->first == 0 || tn_tile_manner(s, types[i], c->first) == TILE_REPEATS);
    int64_t cycle = repeats ? tn_tile_cycle(s, types[i], c->first) : 0;
    if (cycle <= TILE_MOST && cycle > c->cycle) c->cycle = cycle;
  }
  if (c->cycle == 0) c->cycle = 1;
  tn_delete(handle, types);
  return TN_OK;
}

static bool tile_compile_has_positions(const tn_match *m) {
  static const char *const op[] = {"iota", "spread", "random_uniform", "random_normal"};
  for (int32_t i = 0; i < m->n_nodes; i++)
    for (size_t k = 0; k < sizeof op / sizeof op[0]; k++)
      if (strcmp(m->nodes[i].node->op, op[k]) == 0) return true;
  return false;
}

bool tn_tile_takes_any_layout(const tn_match *m) {
  return tn_pw_is_elementwise(m) && !tile_compile_has_positions(m);
}

/* ---- the program ---- */

static tn_tile_insn tile_compile_insn(const tn_pw_region *r, const tn_pw_insn *from) {
  tn_tile_insn insn = {.op = from->op,
                       .op2 = from->op2,
                       .lane = from->lane,
                       .dtype = from->dtype,
                       .wide = from->out != TN_PW_NONE && !r->values[from->out].narrow,
                       .out = tn_pw_register(r, from->out),
                       .view = from->view,
                       .map = from->map,
                       .table = from->table,
                       .n_table = from->n_table,
                       .count = from->count,
                       .a = from->a,
                       .b = from->b,
                       .bits = from->bits};
  for (int32_t k = 0; k < TN_PW_INPUTS; k++) {
    insn.in[k] = tn_pw_register(r, from->in[k]);
    insn.step[k] = from->in[k] != TN_PW_NONE && !r->values[from->in[k]].narrow;
  }
  return insn;
}

static tn_status tile_compile_fill(const tn_tile_compiler *c, int32_t isa, tn_tile_program *p) {
  const tn_pw_region *r = &c->region;
  tn_tile_insn *insns = p->base.insns;
  p->segment = c->segment;
  for (int32_t i = 0; i < r->n_insns; i++) {
    insns[i] = tile_compile_insn(r, &r->insns[i]);
    if (!tn_tile_resolve(&insns[i], isa))
      return tn_fail(r->handle, TN_EUNSUPPORTED, NULL, "instruction %d of lane %d has no loop",
                     (int)insns[i].op, (int)insns[i].lane);
  }
  tile_compile_choose_chunks(r->match, p);
  return TN_OK;
}

static tn_status tile_compile_region(tn_tile_compiler *c, int32_t isa, tn_tile_program **program) {
  tn_pw_region *r = &c->region;
  const tn_pw_machine machine = {.program = sizeof(tn_tile_program),
                                 .insn = sizeof(tn_tile_insn),
                                 .most = TILE_MOST,
                                 .least = TILE_LEAST,
                                 .multiple = c->cycle,
                                 .buffer = TILE_BUFFER};
  tn_tile_lower(c);
  int32_t *uses = tn_new(r->handle, (size_t)r->n_values * sizeof *uses + 1);
  if (uses == NULL) return TN_ENOMEM;
  tn_tile_fuse(r, uses);
  tn_delete(r->handle, uses);
  tn_pw_schedule(r);
  tn_pw_place(r, true);
  tn_pw_program *base = NULL;
  TN_TRY(tn_pw_assign(r, &machine, &base));
  tn_status status = tile_compile_fill(c, isa, (tn_tile_program *)(void *)base);
  if (status == TN_OK)
    *program = (tn_tile_program *)(void *)base;
  else
    tn_delete(r->handle, base);
  return status;
}

static tn_status tile_compile_in(const void *handle, const tn_match *m, const tn_pw_space *space,
                                 tn_tile_compiler *c, int32_t isa, tn_tile_program **program) {
  TN_TRY(tile_compile_cut(handle, m, space, c));
  tn_status status = tn_pw_build(handle, m, space, &c->region);
  if (status == TN_OK) status = tile_compile_region(c, isa, program);
  tn_pw_drop(&c->region);
  return status;
}

tn_status tn_tile_compile(const void *handle, const tn_match *m, const tn_layout *layout, int32_t isa,
                          tn_tile_program **program) {
  tn_pw_space space;
  if (m->n_out < 1) return tn_fail(handle, TN_EUNSUPPORTED, NULL, "the region has no result");
  if (tn_tile_takes_any_layout(m) && !tn_pw_is_single(m->out[0]))
    space = tn_tile_space_flat(m->out[0], layout);
  else if (!tn_tile_space_of(m->out[0], layout, &space))
    return tn_fail(handle, TN_EUNSUPPORTED, "layout",
                   "regions with repeated operands are done row-major or in "
                   "blocks of 8 or 16 channels that divide them");
  tn_tile_compiler c = {.cycle = 1}, again = {.cycle = 0}; /* no cycles, which need large tiles */
  tn_status status = tile_compile_in(handle, m, &space, &c, isa, program);
  if (status == TN_EUNSUPPORTED && c.cycle > 1)
    status = tile_compile_in(handle, m, &space, &again, isa, program);
  return status;
}

/* Pointwise regions on the fast CPU: compiled to instructions over tiles (program.h), in row-major
 * order and in the blocks of channels that convolutions leave behind, or with channels innermost. Operands
 * with a value per channel, and those with one value, lie row-major in either case. */
#include "backends/onednn/pointwise/code/code.h"

#include "backends/onednn/kernels/image_layouts.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/plugin/storage.h"

/* ---- launch ---- */

typedef struct tile_job {
  const tn_tile_program *program;
  const tn_tile_code *code; /* NULL: the interpreter does all */
  const tn_launch *launch;
  bool past_caches;
  bool one_unit; /* the first one is all */
} tile_job;

enum { GROUP = 16 };

static void tile_run_part(tn_tile_run *run, int32_t rate) {
  const tn_pw_program *p = &run->program->base;
  const tn_tile_insn *insns = p->insns;
  for (int32_t i = rate == 0 ? 0 : p->end[rate - 1]; i < p->end[rate]; i++)
    insns[i].fn(&insns[i], run, insns[i].wide ? p->tile : GROUP);
}

/* Prefetches the memory of a register at the next tile, while this one is computed. */
static void tile_fetch_ahead(const tn_tile_run *run, const tn_pw_binding *b) {
  enum { LINE = 64 };
  if (run->past_caches && b->view >= run->launch->n_in) return;
  size_t tile = (size_t)run->program->base.tile * b->size;
  const char *next = (const char *)run->reg[b->reg] + tile;
  for (size_t at = 0; at < tile; at += LINE) __builtin_prefetch(next + at, 0, 2);
}

/* The streams of memory are fetched ahead one after the other, between instructions. */
static void tile_run_tile(tn_tile_run *run, const tn_tile_code *code, int64_t n) {
  const tn_pw_program *p = &run->program->base;
  const tn_tile_insn *insns = p->insns;
  const bool streams = run->program->streams;
  int32_t first = p->end[TN_PW_PER_SEGMENT], end = p->end[TN_PW_PER_ELEMENT], fetched = 0, unit = 0;
  for (int32_t i = first, next; i < end; i = next) {
    bool coded = code != NULL && unit < code->n_units && code->unit[unit].first == i;
    next = coded ? code->unit[unit].end : i + 1;
    for (; streams && fetched * (end - first) < (next - first) * p->n_bindings; fetched++)
      tile_fetch_ahead(run, &p->bindings[fetched]);
    if (coded)
      tn_tile_code_run(&code->unit[unit++], run, n);
    else
      insns[i].fn(&insns[i], run, n);
  }
}

/* Points the registers that are memory at the tile. */
static void tile_bind(tn_tile_run *run) {
  const tn_pw_program *p = &run->program->base;
  const tn_launch *l = run->launch;
  for (int32_t i = 0; i < p->n_bindings; i++) {
    const tn_pw_binding *b = &p->bindings[i];
    const tn_view *view = b->view < l->n_in ? &l->in[b->view] : &l->out[b->view - l->n_in];
    int64_t at = run->at;
    if (b->map != TN_PW_NONE)
      at += tn_pw_walk_to(&p->maps[b->map], run->segment).offset - run->segment * run->program->segment;
    run->reg[b->reg] = (uint8_t *)view->data + (size_t)at * b->size;
  }
}

/* From run->at on, up to `stop`, in one segment. A unit that is all needs no tiles; it reads its memory
 * evenly, which the processor fetches ahead by itself. */
static void tile_run_stretch(tn_tile_run *run, const tile_job *j, int64_t stop) {
  const int64_t tile = run->program->base.tile;
  if (j->one_unit) {
    tile_bind(run);
    tn_tile_code_run(&j->code->unit[0], run, stop - run->at);
    return;
  }
  for (; run->at < stop; run->at += tile) {
    tile_bind(run);
    tile_run_tile(run, j->code, stop - run->at < tile ? stop - run->at : tile);
  }
}

/* Tiles end where segments do. */
static void tile_run_chunk(void *arg, int64_t chunk) {
  const tile_job *j = arg;
  const tn_tile_program *p = j->program;
  _Alignas(64) uint8_t buffer[TILE_BUFFER];
  tn_tile_run run;
  run.program = p;
  run.launch = j->launch;
  run.past_caches = j->past_caches;
  run.at = chunk * p->chunk;
  run.segment = -1;
  int64_t end = run.at + p->chunk < p->base.count ? run.at + p->chunk : p->base.count;
  for (int32_t i = 0; i < p->base.n_slots; i++) run.reg[i] = buffer + p->base.slots[i];
  tile_run_part(&run, TN_PW_ONCE);
  while (run.at < end) {
    int64_t segment = run.at / p->segment, stop = (segment + 1) * p->segment;
    stop = stop < end ? stop : end;
    if (segment != run.segment) {
      run.segment = segment;
      tile_run_part(&run, TN_PW_PER_SEGMENT);
    }
    tile_run_stretch(&run, j, stop);
    run.at = stop;
  }
  if (run.past_caches) tn_tile_code_fence();
}

/* Made by prepare, used by launch. */
typedef struct tile_plan {
  tn_tile_program *program;
  tn_tile_code *code; /* NULL: the interpreter does all */
  tn_storage storage; /* of results that are not single values */
} tile_plan;

/* Where a result is in an operand's place, its lines are in the cache anyway. */
static bool tile_is_past_caches(const tile_plan *made, const tn_launch *l) {
  if (made->code == NULL || !made->program->streams) return false;
  for (int32_t i = 0; i < l->n_out; i++)
    for (int32_t k = 0; k < l->n_in; k++)
      if (l->in[k].data == l->out[i].data) return false;
  return true;
}

static tn_status tile_launch(tn_launch *l) {
  const tile_plan *made = l->prepared;
  tile_job j = {made->program, made->code, l, tile_is_past_caches(made, l),
                tn_tile_code_is_all(made->program, made->code)};
  if (made->program->n_chunks == 1)
    tile_run_chunk(&j, 0);
  else
    tn_parallel(l, made->program->n_chunks, tile_run_chunk, &j);
  for (int32_t i = 0; i < l->n_out && made->storage.padded; i++)
    tn_storage_clear_padding(&made->storage, &l->out[i].type, l->out[i].data);
  return TN_OK;
}

/* ---- query ---- */

/* Operands and results of the region's dimensions lie so; others row-major. */
static void tile_set_rules(const tn_match *m, int32_t rule, const tn_layout *layout,
                           tn_operand_layout *rules) {
  for (int32_t i = 0; i < m->n_in + m->n_out; i++) {
    const tn_type *type = i < m->n_in ? m->in[i] : m->out[i - m->n_in];
    rules[i] = (tn_operand_layout){0};
    if (type == NULL || tn_type_count(type) == 1 || !tn_type_same_dims(type, m->out[0])) continue;
    rules[i].rule = rule;
    if (layout != NULL) rules[i].layout = *layout;
  }
}

typedef struct tile_offer {
  int32_t id, rule;
  const char *name;
  const tn_layout *layout;
} tile_offer;

/* *cost_s: what it costs at least; becomes its estimate. */
static tn_status tile_add_variant(tn_query *q, const tile_offer *o, tn_operand_layout *rules,
                                  double *cost_s) {
  const tn_match *m = q->match;
  tn_tile_program *p = NULL;
  TN_TRY(tn_tile_compile(q, m, o->layout, tn_onednn_isa_of(q->backend), &p));
  tile_set_rules(m, o->rule, o->layout, rules);
  int32_t threads = q->device->threads > 0 && p->n_chunks > 1 ? q->device->threads : 1;
  double estimate_s =
      tn_estimate_s(q->device, tn_match_bytes(m), p->work_s, tn_thread_speed(q->device) * threads);
  if (estimate_s > *cost_s) *cost_s = estimate_s;
  tn_offer(q, (tn_variant){.id = o->id,
                           .name = o->name,
                           .in = rules,
                           .out = rules + m->n_in,
                           .prepared_bytes = (int64_t)(sizeof(tile_plan) + p->base.bytes),
                           .n_inplace = p->base.n_inplace,
                           .inplace = (const int32_t(*)[2])p->base.inplace,
                           .cost_s = *cost_s});
  tn_delete(q, p);
  return TN_OK;
}

/* Activations of images: whether channels can come in blocks of this size. */
static bool tile_has_blocks(const tn_type *type, int32_t size) {
  return type->rank == 4 && type->dims[1] % size == 0 && tn_type_count(type) > type->dims[1];
}

static tn_status tile_add_variants(tn_query *q, tn_operand_layout *rules) {
  const tn_type *type = q->match->out[0];
  const tn_layout by_16 = tn_channels_blocked(type->rank, 16), by_8 = tn_channels_blocked(type->rank, 8);
  const tile_offer any = {0, TN_LAYOUT_ANY, "tiles", NULL},
                   plain = {1, TN_LAYOUT_ROW_MAJOR, "row-major", NULL};
  const tile_offer eights = {8, TN_LAYOUT_FIXED, "channels by 8", &by_8};
  const tile_offer sixteens = {16, TN_LAYOUT_FIXED, "channels by 16", &by_16};
  const tn_layout innermost = tn_channels_last(type->rank);
  const tile_offer last = {2, TN_LAYOUT_FIXED, "channels last", &innermost};
  double cost_s = 0, by_16_s = 0, by_8_s = 0;
  if (tn_tile_takes_any_layout(q->match)) return tile_add_variant(q, &any, rules, &cost_s);
  tn_status status = tile_add_variant(q, &plain, rules, &cost_s);
  if (status == TN_OK && tile_has_blocks(type, 16)) status = tile_add_variant(q, &sixteens, rules, &by_16_s);
  if (status == TN_OK && tile_has_blocks(type, 8)) status = tile_add_variant(q, &eights, rules, &by_8_s);
  /* A region alone is no reason to leave blocks: then channels innermost cost no less. */
  double last_s = by_16_s > by_8_s ? by_16_s : by_8_s;
  if (status == TN_OK && tile_has_blocks(type, 1)) status = tile_add_variant(q, &last, rules, &last_s);
  return status;
}

static tn_status tile_query(tn_query *q) {
  const tn_match *m = q->match;
  if (m->n_out < 1) return tn_fail(q, TN_EUNSUPPORTED, NULL, "the region has no result");
  tn_operand_layout *rules = tn_new(q, ((size_t)m->n_in + (size_t)m->n_out) * sizeof *rules);
  if (rules == NULL) return TN_ENOMEM;
  tn_status status = tile_add_variants(q, rules);
  tn_delete(q, rules);
  return status;
}

/* ---- prepare, release ---- */

static void tile_release(tn_env *env, void *made) {
  tile_plan *p = made;
  if (p == NULL) return;
  tn_tile_code_delete(env, p->code);
  tn_delete(env, p->program);
  tn_delete(env, p);
}

static tn_status tile_prepare(tn_prepare *p, void **made) {
  tile_plan *keep = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  const tn_type *type = p->match->out[0];
  tn_layout layout = p->out_layout != NULL ? p->out_layout[0] : tn_layout_row_major(type->rank);
  keep->storage = tn_storage_of(type, &layout);
  tn_status status = tn_tile_compile(p, p->match, &layout, tn_onednn_isa_of(p->backend), &keep->program);
  if (status == TN_OK)
    status = tn_tile_code_new(p, keep->program, tn_onednn_code_isa(p->backend), &keep->code);
  if (status != TN_OK) {
    tile_release(&p->env, keep);
    return status;
  }
  *made = keep;
  return TN_OK;
}

TN_DEFINE_KERNEL(onednn, pointwise, "onednn_pointwise", "pointwise+",
                 "pointwise regions, compiled to vectorized instructions over tiles",
                 TN_KERNEL_CALLBACKS(tile));

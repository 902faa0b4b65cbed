/* core/step/programs/memory_report.c: the rows of the table, and the values at its peak. The arena is that of
 * the largest program; its rows are the bytes that are live at the launch that needs the most of it. */
#include "core/step/programs/memory_report.h"

#include "core/step/programs/memory_states.h"

/* ---- the executor's bytes ---- */

static void memory_add_areas(const tn_program_set *set, int32_t slots, bool direct, int64_t *rows) {
  int64_t slot = 0, output = 0, host = 0;
  for (int32_t i = 0; i < set->n; i++) {
    const tn_program *p = set->list[i];
    if (p->slot_bytes > slot) slot = p->slot_bytes;
    if (p->output_bytes > output) output = p->output_bytes;
    if (p->host_bytes > host) host = p->host_bytes;
    rows[TN_USE_CONSTANTS] += p->constant_bytes + p->folded_bytes - p->live.kept_gradients;
    rows[TN_USE_GRADIENTS] += p->live.kept_gradients;
    rows[TN_USE_LIBRARIES] += p->prepared_bytes;
  }
  rows[TN_USE_INPUTS] = slots * slot;
  rows[TN_USE_OUTPUTS] = slots * output;
  rows[TN_USE_STAGING] = direct ? 0 : slots * (slot + output);
  rows[TN_USE_FALLBACKS] = host;
}

/* ---- the arena ---- */

static int32_t memory_arena_row(int32_t kind) {
  static const int32_t rows[] = {[TN_LIVE_ACTIVATION] = TN_USE_ACTIVATIONS,
                                 [TN_LIVE_GRADIENT] = TN_USE_GRADIENTS,
                                 [TN_LIVE_WORKSPACE] = TN_USE_WORKSPACES,
                                 [TN_LIVE_STREAMED] = TN_USE_STREAMED};
  return rows[kind];
}

static bool memory_is_live(const tn_live_memory *block, int32_t launch) {
  return block->first <= launch && launch <= block->last;
}

static tn_status memory_find_peak(tn_memory_report *report, tn_arena *arena) {
  const tn_program *p = report->program;
  int64_t *bytes = tn_arena_alloc(arena, tn_size_mul((size_t)p->n_steps + 1, sizeof *bytes));
  int32_t peak = 0;
  if (bytes == NULL) return TN_ENOMEM;
  tn_live_memory_curve(&p->live, TN_LIVE_KINDS, p->n_steps, bytes);
  for (int32_t s = 1; s <= p->n_steps; s++)
    if (bytes[s] > bytes[peak]) peak = s;
  report->peak = peak - 1;
  report->rows[TN_USE_FRAGMENTATION] = p->arena_bytes - bytes[peak];
  for (int32_t i = 0; i < p->live.n; i++)
    if (memory_is_live(&p->live.v[i], report->peak))
      report->rows[memory_arena_row(p->live.v[i].kind)] += p->live.v[i].bytes;
  return TN_OK;
}

/* ---- the values at the peak ---- */

static void memory_hold(tn_memory_report *report, tn_memory_holder holder) {
  int32_t i = report->n_holders;
  while (i > 0 && report->holders[i - 1].bytes < holder.bytes) i--;
  if (i == TN_MEMORY_HOLDERS) return;
  if (report->n_holders < TN_MEMORY_HOLDERS) report->n_holders++;
  for (int32_t k = report->n_holders - 1; k > i; k--) report->holders[k] = report->holders[k - 1];
  report->holders[i] = holder;
}

/* The result that was written last into a block, up to a launch; NULL: none was. */
static const tn_operand *memory_written(const tn_program *p, const tn_live_memory *block, int32_t launch,
                                        int32_t *step) {
  for (*step = launch; *step >= block->first && *step >= 0; (*step)--)
    for (int32_t k = 0; k < p->steps[*step].n_out; k++) {
      const tn_location *l = &p->steps[*step].out[k].location;
      if (l->base == TN_BASE_ARENA && l->offset >= block->offset && l->offset < block->offset + block->bytes)
        return &p->steps[*step].out[k];
    }
  return NULL;
}

static const char *memory_block_name(tn_arena *arena, const tn_program *p, const tn_live_memory *block,
                                     int32_t launch) {
  char type[TN_TYPE_TEXT];
  int32_t step = -1;
  if (block->kind == TN_LIVE_GRADIENT) return "gradients of parameters";
  if (block->kind == TN_LIVE_WORKSPACE && launch < 0) return "workspace of a constant";
  if (block->kind == TN_LIVE_WORKSPACE)
    return tn_arena_printf(arena, "workspace of %s", p->steps[launch].name);
  const tn_operand *y = memory_written(p, block, launch, &step);
  if (y == NULL) return "a value of the fallback";
  return tn_arena_printf(arena, "%s: %s", p->steps[step].name, tn_type_format(&y->type, type));
}

static tn_status memory_find_holders(const tn_program_set *set, tn_arena *arena, tn_memory_report *report) {
  const tn_program *p = report->program;
  for (size_t i = 0; i < set->map->states.n; i++) {
    const tn_placement *state = &set->map->states.v[i];
    if (state->path[0] == '@' || tn_state_map_is_far(set->map, state)) continue;
    memory_hold(report, (tn_memory_holder){state->path, tn_memory_state_row(state),
                                           (int64_t)tn_type_bytes(&state->type), -1, -1});
  }
  for (int32_t i = 0; i < p->live.n; i++) {
    const tn_live_memory *block = &p->live.v[i];
    if (memory_is_live(block, report->peak))
      memory_hold(report, (tn_memory_holder){NULL, memory_arena_row(block->kind), block->bytes, i, -1});
  }
  for (int32_t i = 0; i < report->n_holders; i++) {
    tn_memory_holder *h = &report->holders[i];
    if (h->name != NULL) continue;
    const tn_live_memory *block = &p->live.v[h->first];
    h->name = memory_block_name(arena, p, block, report->peak);
    h->first = block->first;
    h->last = block->last;
    if (h->name == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

/* ---- the whole ---- */

const tn_program *tn_largest_program(const tn_program_set *set) {
  const tn_program *largest = set->list[0];
  for (int32_t i = 1; i < set->n; i++)
    if (set->list[i]->arena_bytes > largest->arena_bytes) largest = set->list[i];
  return largest;
}

void tn_memory_report_measure(tn_device *device, tn_memory_report *report) {
  tn_device_memory_use use;
  if (!tn_device_read_memory_use(device, &use)) return;
  report->total_bytes += use.libraries - report->rows[TN_USE_LIBRARIES];
  report->rows[TN_USE_LIBRARIES] = use.libraries;
  report->rows[TN_USE_GRAPH] = -1;
  report->measured = true;
}

tn_status tn_memory_report_make(const tn_program_set *set, int32_t slots, bool direct, tn_arena *arena,
                                tn_memory_report *report) {
  *report = (tn_memory_report){.program = tn_largest_program(set)};
  memory_add_areas(set, slots, direct, report->rows);
  TN_TRY(tn_memory_add_states(set->map, report->rows));
  TN_TRY(memory_find_peak(report, arena));
  TN_TRY(memory_find_holders(set, arena, report));
  for (int32_t r = 0; r < TN_USE_LIBRARIES; r++) report->executor_bytes += report->rows[r];
  report->total_bytes = report->executor_bytes + report->rows[TN_USE_LIBRARIES];
  for (int32_t i = 0; i < set->n; i++)
    if (set->list[i]->offload_bytes > report->offloaded_bytes)
      report->offloaded_bytes = set->list[i]->offload_bytes;
  report->streamed_bytes = tn_state_map_streamed_bytes(set->map);
  report->placed_bytes = tn_state_map_host_bytes(set->map) - report->streamed_bytes;
  report->offloaded_bytes += report->placed_bytes + report->streamed_bytes;
  return TN_OK;
}

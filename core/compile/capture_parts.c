/* core/compile/capture_parts.c: cuts segments around launches that cannot be captured. */
#include "core/compile/capture_parts.h"

#include "core/compile/kernels/collective_kernel.h"

typedef struct part_cutter {
  const tn_program *program;
  tn_capture_part *parts;
  int32_t n;
  tn_awaits flying; /* per stream: its last step of the segment outside of captures; -1 */
  tn_awaits landed; /* the last of them that the compute stream awaits; -1 */
} part_cutter;

static bool step_is_capturable(const tn_program *p, int32_t step) {
  return p->steps[step].group->choice.capturable;
}

/* A step of a stream outside of captures that the compute stream awaits before a step; -1. A captured step of
 * that stream follows those before it; others are in the order of their stream anyway. */
static int32_t awaited_outside(const part_cutter *c, int32_t step, int32_t role) {
  const tn_program *p = c->program;
  int32_t awaited = p->steps[step].awaits.of[role];
  if (p->steps[step].group->role == role) awaited = step_is_capturable(p, step) ? c->flying.of[role] : -1;
  bool outside = awaited >= 0 && !step_is_capturable(p, awaited);
  return outside && awaited > c->landed.of[role] ? awaited : -1;
}

/* Of all streams; returns whether there is one. */
static bool find_awaited_outside(const part_cutter *c, int32_t step, tn_awaits *awaited) {
  bool any = false;
  *awaited = (tn_awaits)TN_AWAITS_NONE;
  for (int32_t role = TN_STREAM_COMPUTE + 1; role < TN_STREAMS; role++) {
    awaited->of[role] = awaited_outside(c, step, role);
    any = any || awaited->of[role] >= 0;
  }
  return any;
}

/* The last step of a captured part on another stream, unless one of its compute steps awaits it. */
static int32_t unawaited_step(const tn_program *p, const tn_capture_part *part, int32_t role) {
  int32_t last = -1, awaited = -1;
  for (int32_t i = part->first; i < part->first + part->n; i++) {
    const tn_step *step = &p->steps[i];
    if (step->group->role == role) last = i;
    if (step->group->role == TN_STREAM_COMPUTE && step->awaits.of[role] > awaited)
      awaited = step->awaits.of[role];
  }
  return last > awaited ? last : -1;
}

static void end_part(part_cutter *c) {
  tn_capture_part *part = &c->parts[c->n - 1];
  for (int32_t role = TN_STREAM_COMPUTE + 1; part->captured && role < TN_STREAMS; role++)
    part->joins.of[role] = unawaited_step(c->program, part, role);
}

static void add_step(part_cutter *c, int32_t segment, int32_t step, bool first) {
  bool captured = step_is_capturable(c->program, step);
  int32_t own = c->program->steps[step].group->role;
  tn_awaits awaited;
  bool any = find_awaited_outside(c, step, &awaited);
  if (first || captured != c->parts[c->n - 1].captured || (captured && any)) {
    if (!first) end_part(c);
    c->parts[c->n++] = (tn_capture_part){segment, step, 0, captured, TN_AWAITS_NONE, TN_AWAITS_NONE};
    if (captured) c->parts[c->n - 1].awaits = awaited;
  }
  for (int32_t role = TN_STREAM_COMPUTE + 1; role < TN_STREAMS; role++)
    if (awaited.of[role] >= 0 && (captured || own == TN_STREAM_COMPUTE))
      c->landed.of[role] = awaited.of[role];
  if (!captured && own > TN_STREAM_COMPUTE) c->flying.of[own] = step;
  c->parts[c->n - 1].n++;
}

static void cut_segment(part_cutter *c, int32_t index) {
  const tn_segment *s = &c->program->segments[index];
  c->flying = c->landed = (tn_awaits)TN_AWAITS_NONE;
  for (int32_t i = s->first; i < s->first + s->n; i++) add_step(c, index, i, i == s->first);
  if (s->n > 0) end_part(c);
}

int32_t tn_capture_parts_list(const tn_program *program, bool captures, tn_capture_part *parts) {
  part_cutter c = {.program = program, .parts = parts};
  for (int32_t i = 0; i < program->n_segments; i++) {
    const tn_segment *s = &program->segments[i];
    if (captures && !s->fallback)
      cut_segment(&c, i);
    else
      c.parts[c.n++] = (tn_capture_part){i, s->first, s->n, false, TN_AWAITS_NONE, TN_AWAITS_NONE};
  }
  return c.n;
}

void tn_capture_part_reason(const tn_step *step, tn_text *text) {
  const tn_group *g = step->group;
  if (tn_kernel_is_collective(g->kernel) && g->choice.name[0] == '\0')
    tn_text_add(text, "no communicator");
  else if (tn_kernel_is_collective(g->kernel))
    tn_text_addf(text, "communicator %s cannot be captured", g->choice.name);
  else
    tn_text_addf(text, "kernel %s cannot be captured", g->kernel->item.name);
}

bool tn_capture_part_lacks(const tn_program *p, const tn_capture_part *part, int32_t step) {
  return !part->captured && !p->segments[part->segment].fallback && !p->steps[step].group->placed;
}

static int32_t count_uncaptured(const tn_program *p, const tn_capture_part *parts, int32_t n,
                                int32_t *captured) {
  int32_t steps = 0;
  *captured = 0;
  for (int32_t i = 0; i < n; i++) {
    *captured += parts[i].captured;
    for (int32_t k = parts[i].first; k < parts[i].first + parts[i].n; k++)
      steps += tn_capture_part_lacks(p, &parts[i], k);
  }
  return steps;
}

static void add_uncaptured(const tn_program *p, const tn_capture_part *part, bool *first, tn_text *text) {
  for (int32_t i = part->first; i < part->first + part->n; i++) {
    if (!tn_capture_part_lacks(p, part, i)) continue;
    tn_text_addf(text, "%s%s (", *first ? ": " : ", ", p->steps[i].name);
    tn_capture_part_reason(&p->steps[i], text);
    tn_text_add(text, ")");
    *first = false;
  }
}

int32_t tn_capture_parts_describe(const tn_program *p, const tn_capture_part *parts, int32_t n,
                                  tn_text *text) {
  int32_t captured, steps = count_uncaptured(p, parts, n, &captured);
  bool first = true;
  tn_text_addf(text, "%d captured part%s, %d launch%s not captured", (int)captured, captured == 1 ? "" : "s",
               (int)steps, steps == 1 ? "" : "es");
  for (int32_t i = 0; i < n; i++) add_uncaptured(p, &parts[i], &first, text);
  return steps;
}

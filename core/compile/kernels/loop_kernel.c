/* core/compile/kernels/loop_kernel.c: the variant of a loop, and the bodies of a cover. */
#include "core/compile/kernels/loop_kernel.h"

#include <string.h>

#include "core/compile/packing/pack_intervals.h"

/* A capture holds every launch of every step. */
enum { MOST_CAPTURED = 1 << 16 };

/* ---- bodies ---- */

void tn_loop_bodies_destroy(tn_loop_bodies *bodies) {
  if (bodies == NULL) return;
  for (size_t i = 0; i < bodies->list.n; i++) bodies->free(bodies->list.v[i]);
  tn_vec_free(bodies->env, &bodies->list);
  tn_arena_free(&bodies->arena);
  tn_release(bodies->env, bodies);
}

static tn_status compile_body(tn_loop_bodies *bodies, const tn_target *target, const tn_loop_attributes *a,
                              const tn_loop_body **found) {
  tn_loop_body *body = tn_arena_alloc(&bodies->arena, sizeof *body);
  if (body == NULL) return TN_ENOMEM;
  body->text = tn_arena_strdup(&bodies->arena, a->body);
  body->family = tn_arena_strdup(&bodies->arena, target->families[0]);
  if (body->text == NULL || body->family == NULL) return TN_ENOMEM;
  tn_status status = bodies->compile(bodies, target, a, body);
  if (status == TN_OK) status = tn_vec_push(bodies->env, &bodies->list, body);
  if (status != TN_OK) bodies->free(body);
  *found = body;
  return status;
}

tn_status tn_loop_bodies_find(const tn_target *target, const tn_loop_attributes *a,
                              const tn_loop_body **body) {
  tn_loop_bodies *bodies = target->loops;
  for (size_t i = 0; i < bodies->list.n; i++) {
    *body = bodies->list.v[i];
    if (tn_text_equal((*body)->text, a->body) && tn_text_equal((*body)->family, target->families[0]))
      return TN_OK;
  }
  return compile_body(bodies, target, a, body);
}

tn_loop_areas tn_loop_areas_of(const tn_loop_body *body, const tn_loop_attributes *a,
                               const tn_type *const *operands) {
  tn_loop_areas areas = {.constants = tn_interval_aligned(body->arena_bytes)};
  areas.folded = areas.constants + tn_interval_aligned(body->constant_bytes);
  areas.states = areas.folded + tn_interval_aligned(body->folded_bytes);
  areas.bytes = areas.states;
  for (int64_t i = a->stacked; i < a->states; i++)
    if (!tn_loop_is_in_place(body, a, i))
      areas.bytes += 2 * tn_interval_aligned((int64_t)tn_type_bytes(operands[tn_loop_first_state(a) + i]));
  return areas;
}

/* ---- the kernel ---- */

/* Pairs of operand and result: the last value of a state in place may lie over the first one, and without
 * states an output over a sequence. */
static int32_t loop_inplace_pairs(const tn_loop_body *body, const tn_loop_attributes *a,
                                  int32_t (*pairs)[2]) {
  int32_t n = body->n_inplace;
  memcpy(pairs, body->inplace, (size_t)n * sizeof *pairs);
  for (int64_t i = 0; i < a->states; i++) {
    if (!tn_loop_is_in_place(body, a, i)) continue;
    pairs[n][0] = tn_loop_first_state(a) + (int32_t)i;
    pairs[n++][1] = (int32_t)(a->outputs + i);
  }
  return n;
}

static tn_status loop_query(tn_query *q) {
  const tn_target *target = q->backend; /* the host's own kernels get the target (query.c) */
  const tn_loop_attributes *a = q->match->nodes[0].node->attributes;
  const tn_loop_body *body;
  TN_TRY(tn_loop_bodies_find(target, a, &body));
  int32_t(*pairs)[2] = tn_alloc(q, tn_size_mul((size_t)(a->states + body->n_inplace) + 1, sizeof *pairs));
  if (pairs == NULL) return TN_ENOMEM;
  double steps = (double)a->steps;
  tn_variant v = {.struct_size = sizeof v,
                  .name = "",
                  .workspace_bytes = tn_loop_areas_of(body, a, q->match->in).bytes,
                  .prepared_bytes = body->prepared_bytes,
                  .n_inplace = loop_inplace_pairs(body, a, pairs),
                  .inplace = (const int32_t(*)[2])pairs,
                  .cost_s = body->start_s + steps * body->step_s,
                  .deterministic = body->deterministic,
                  .capturable = body->capturable && steps * body->launches <= MOST_CAPTURED};
  tn_add_variant(q, &v);
  tn_release(q, pairs);
  return TN_OK;
}

static tn_status loop_launch(tn_launch *l) {
  return tn_fail(l, TN_EINTERNAL, NULL, "%s: the executor repeats the body of a loop", l->name);
}

/* All results of the node belong to the match, though the pattern names one. */
const tn_kernel tn_loop_kernel = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "loop", "a body repeated for each step of sequences"),
    .family = "",
    .pattern = "y = loop(x*)",
    .query = loop_query,
    .launch = loop_launch,
};

const tn_entry tn_loop_entry = {.item = &tn_loop_kernel.item, .plugin = "tenon", .version = "0", .file = ""};

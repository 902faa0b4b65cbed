/* core/compile/kernels/query.c: calls the `query` of a kernel for a candidate and keeps the variants that it
 * offers. */
#include "core/compile/kernels/query.h"

#include <math.h>
#include <string.h>

#include "core/compile/kernels/answers.h"
#include "core/compile/kernels/choice.h"
#include "core/compile/kernels/collective_kernel.h"
#include "core/compile/kernels/describe_match.h"
#include "core/compile/kernels/loop_kernel.h"
#include "core/compile/kernels/measure_variants.h"
#include "core/compile/kernels/recorded_choices.h"
#include "core/plugin/handles.h"

/* ---- variants ---- */

/* The variants of one query. The handle of the kernel is its first member. */
typedef struct variant_list {
  tn_query_host host;
  tn_arena *arena;
  const tn_candidate *candidate;
  double default_cost_s; /* of a variant that gives no cost */
  tn_choice *variants;
  int32_t n, capacity;
  tn_status status;
} variant_list;

static const char *find_wrong_rule(const tn_operand_layout *rules, int32_t n, const tn_match *m) {
  for (int32_t i = 0; rules != NULL && i < n; i++) {
    if (rules[i].rule < TN_LAYOUT_ROW_MAJOR || rules[i].rule > TN_LAYOUT_PREFERRED)
      return "an unknown layout rule";
    if (rules[i].rule == TN_LAYOUT_SAME_AS &&
        (rules[i].same_as < 0 || rules[i].same_as >= m->n_in + m->n_out))
      return "a layout as that of an operand which is not there";
    if (rules[i].rule == TN_LAYOUT_FIXED && !rules[i].layout.set) return "a fixed layout that is unset";
  }
  return NULL;
}

static const char *find_wrong_promise(const tn_kernel *k, const tn_variant *v, const tn_match *m) {
  const char *wrong = find_wrong_rule(v->in, m->n_in, m);
  if (wrong == NULL) wrong = find_wrong_rule(v->out, m->n_out, m);
  if (wrong != NULL) return wrong;
  if (v->workspace_bytes < 0 || v->prepared_bytes < 0 || v->folded_bytes < 0)
    return "a negative number of bytes";
  if (v->folded_bytes > 0 && k->fold == NULL) return "folded memory, but the kernel has no fold";
  if (v->n_inplace < 0 || (v->n_inplace > 0 && v->inplace == NULL))
    return "in-place pairs that are not there";
  for (int32_t i = 0; i < v->n_inplace; i++)
    if (v->inplace[i][0] < 0 || v->inplace[i][0] >= m->n_in || v->inplace[i][1] < 0 ||
        v->inplace[i][1] >= m->n_out)
      return "an in-place pair of an operand or result that is not there";
  return NULL;
}

static bool query_is_cost(double cost_s) { return cost_s > 0 && isfinite(cost_s); }

/* A variant in the form of a choice, whose arrays are still the kernel's. */
static tn_choice offered_choice(const tn_variant *v, double cost_s) {
  return (tn_choice){.id = v->id,
                     .name = v->name != NULL ? v->name : "",
                     .in_rule = v->in,
                     .out_rule = v->out,
                     .workspace_bytes = v->workspace_bytes,
                     .prepared_bytes = v->prepared_bytes,
                     .folded_bytes = v->folded_bytes,
                     .n_inplace = v->n_inplace,
                     .inplace = v->inplace,
                     .cost_s = cost_s,
                     .estimate_s = query_is_cost(v->cost_s) ? v->cost_s : 0,
                     .deterministic = v->deterministic != 0,
                     .capturable = v->capturable != 0,
                     .plain_sums = v->plain_sums != 0};
}

/* Makes room for one more variant. The old array stays in the arena, unused. */
static tn_status reserve_variant(variant_list *c) {
  if (c->n < c->capacity) return TN_OK;
  int32_t capacity = c->capacity == 0 ? 2 : 2 * c->capacity;
  tn_choice *more = tn_arena_alloc(c->arena, (size_t)capacity * sizeof *more);
  if (more == NULL) return TN_ENOMEM;
  if (c->n > 0) memcpy(more, c->variants, (size_t)c->n * sizeof *more);
  c->variants = more;
  c->capacity = capacity;
  return TN_OK;
}

static tn_status add_choice(variant_list *c, const tn_choice *offered) {
  TN_TRY(reserve_variant(c));
  TN_TRY(tn_choice_copy(c->arena, c->candidate->match, offered, &c->variants[c->n]));
  c->n++;
  return TN_OK;
}

/* NaN and infinities count as an unknown cost: comparisons with NaN are false. */
static tn_status add_checked_variant(variant_list *c, const tn_variant *v) {
  tn_choice offered = offered_choice(v, query_is_cost(v->cost_s) ? v->cost_s : c->default_cost_s);
  return add_choice(c, &offered);
}

/* The implementation of tn_add_variant. */
static void query_add_variant(tn_query *q, const tn_variant *given) {
  variant_list *c = (variant_list *)q;
  tn_variant v = {0};
  if (c->status != TN_OK) return;
  memcpy(&v, given, given->struct_size < sizeof v ? given->struct_size : sizeof v);
  const char *wrong = find_wrong_promise(c->candidate->kernel->kernel, &v, c->candidate->match);
  c->status = wrong == NULL
                  ? add_checked_variant(c, &v)
                  : tn_failf(q, TN_EINVAL, "variant \"%s\" promises %s", v.name != NULL ? v.name : "", wrong);
}

/* The reason of a kernel that declines is the error text of the handle. */
static tn_status store_decline_reason(tn_env *env, tn_arena *arena, tn_candidate *candidate,
                                      const char *reason) {
  candidate->reason = tn_arena_strdup(arena, reason[0] != '\0' ? reason : "it gave no reason");
  tn_error_clear(env);
  return candidate->reason == NULL ? TN_ENOMEM : TN_OK;
}

static tn_status fail_query(tn_env *env, const tn_candidate *candidate, tn_status status) {
  const tn_entry *entry = candidate->kernel->entry;
  return tn_wrap(env, status, "kernel %s of plugin %s", entry->item->name, entry->plugin);
}

/* A collective is executed by the communicator of the target in place of a backend, and a loop by the host.
 */
static void *kernel_self(const tn_target *target, const tn_catalog_kernel *kernel) {
  if (tn_kernel_is_collective(kernel->kernel) || tn_kernel_is_loop(kernel->kernel))
    return (void *)(uintptr_t)target;
  return target->selves != NULL ? target->selves[kernel->rank] : NULL;
}

/* The backend decides whether its device accepts a launch of another family's kernel. */
static tn_status query_backend(tn_env *env, const tn_target *target, const tn_candidate *candidate) {
  const tn_backend *backend = target->backend;
  if (backend == NULL || candidate->kernel->rank < target->n_own) return TN_OK;
  return backend->takes(env, target->self, candidate->kernel->kernel, candidate->match);
}

static const tn_recorded_choice *find_recorded_choice(const tn_graph *graph, const tn_target *target,
                                                      const tn_candidate *c) {
  if (target->replay == NULL) return NULL;
  const tn_recorded_choice *choice =
      tn_recorded_find(target->replay, target->program, tn_recorded_key(graph, c->nodes, c->n_nodes));
  return choice != NULL && tn_text_equal(choice->kernel, c->kernel->entry->item->name) ? choice : NULL;
}

/* ---- the answer ---- */

/* The kernel's own answer: variants, or the reason why it declines. */
static tn_status ask_kernel(tn_env *env, tn_arena *arena, const tn_target *target, tn_candidate *candidate,
                            variant_list *c) {
  void *self = kernel_self(target, candidate->kernel);
  c->host = (tn_query_host){{*env, sizeof(tn_query), candidate->match, &target->properties, self},
                            query_add_variant};
  tn_error_clear(env);
  if (tn_words_contain(&target->without, candidate->kernel->entry->item->name))
    return store_decline_reason(env, arena, candidate, "[backend] without leaves it out");
  tn_status status = query_backend(env, target, candidate);
  if (status == TN_OK) status = candidate->kernel->kernel->query(&c->host.pub);
  if (c->status != TN_OK) return fail_query(env, candidate, c->status);
  if (status == TN_EUNSUPPORTED) return store_decline_reason(env, arena, candidate, tn_error_text(env));
  if (status != TN_OK) return fail_query(env, candidate, status);
  return c->n > 0 ? TN_OK : store_decline_reason(env, arena, candidate, "it offered no variant");
}

static tn_status repeat_answer(tn_arena *arena, const tn_answer *answer, tn_candidate *candidate,
                               variant_list *c) {
  for (int32_t i = 0; i < answer->n_variants; i++) TN_TRY(add_choice(c, &answer->variants[i]));
  if (answer->reason == NULL) return TN_OK;
  candidate->reason = tn_arena_strdup(arena, answer->reason);
  return candidate->reason == NULL ? TN_ENOMEM : TN_OK;
}

/* The remembered answer, or else that of the kernel. The answer for a loop depends on the kernels of its
 * body. */
static tn_status find_answer(tn_env *env, tn_arena *arena, const tn_target *target, tn_candidate *candidate,
                             variant_list *c) {
  const tn_kernel *kernel = candidate->kernel->kernel;
  if (target->answers == NULL || tn_kernel_is_loop(kernel))
    return ask_kernel(env, arena, target, candidate, c);
  const tn_answer *known = tn_answers_find(target->answers, kernel, candidate->key);
  if (known != NULL) return repeat_answer(arena, known, candidate, c);
  TN_TRY(ask_kernel(env, arena, target, candidate, c));
  const tn_answer answer = {kernel, candidate->key, c->variants, candidate->reason != NULL ? 0 : c->n,
                            candidate->reason};
  tn_answers_add(target->answers, candidate->match, &answer);
  return TN_OK;
}

/* Leaves out the variants whose `prepare` has declined this match. */
static tn_status drop_declined_variants(tn_arena *arena, const tn_target *target, tn_candidate *candidate,
                                        variant_list *c) {
  int32_t n = 0;
  const char *reason = NULL, *last = NULL;
  for (int32_t i = 0; i < c->n; i++) {
    reason =
        tn_answers_declined(target->answers, candidate->kernel->kernel, candidate->key, c->variants[i].id);
    if (reason == NULL) c->variants[n++] = c->variants[i];
    last = reason != NULL ? reason : last;
  }
  c->n = n;
  if (n > 0) return TN_OK;
  candidate->reason = tn_arena_printf(arena, "when it was prepared: %s", last);
  return candidate->reason == NULL ? TN_ENOMEM : TN_OK;
}

/* For a deterministic run: leaves out the variants that may give other bits in another run. */
static tn_status drop_varying_variants(tn_arena *arena, tn_candidate *candidate, variant_list *c) {
  int32_t n = 0;
  const char *last = c->n > 0 ? c->variants[c->n - 1].name : "";
  for (int32_t i = 0; i < c->n; i++)
    if (c->variants[i].deterministic) c->variants[n++] = c->variants[i];
  c->n = n;
  if (n > 0) return TN_OK;
  candidate->reason = tn_arena_printf(
      arena, "variant '%s' may give other bits in another run, and [run] deterministic is set", last);
  return candidate->reason == NULL ? TN_ENOMEM : TN_OK;
}

/* Leaves out the variants with which the device has failed, unless no others are left. */
static void drop_faulted_variants(variant_list *c) {
  int32_t n = 0;
  for (int32_t i = 0; i < c->n; i++) n += !c->variants[i].faulted;
  if (n == 0 || n == c->n) return;
  n = 0;
  for (int32_t i = 0; i < c->n; i++)
    if (!c->variants[i].faulted) c->variants[n++] = c->variants[i];
  c->n = n;
}

/* The index of the recorded variant, which *replayed reports, or else of the cheapest one; of equal costs the
 * first. */
static int32_t find_best_variant(const variant_list *c, const tn_recorded_choice *recorded, bool *replayed) {
  int32_t best = 0;
  *replayed = false;
  for (int32_t i = 0; i < c->n; i++) {
    *replayed = recorded != NULL && recorded->variant == c->variants[i].id;
    if (*replayed && recorded->cost_s > 0) c->variants[i].cost_s = recorded->cost_s;
    if (*replayed) return i;
    if (c->variants[i].cost_s < c->variants[best].cost_s) best = i;
  }
  return best;
}

static tn_status measure_rivals(tn_env *env, tn_arena *arena, const tn_graph *graph, tn_tuner *tuner,
                                variant_list *c, int32_t *best) {
  tn_tuning tuning;
  if (!tn_variants_have_rivals(c->candidate->match, c->variants, c->n)) return TN_OK;
  TN_TRY(tn_describe_tuning(arena, graph, c->candidate, &tuning));
  return tn_measure_variants(tuner, env, &tuning, c->variants, &c->n, best);
}

/* Pass layout decides between the variants later, but must not replace a replayed one. */
static tn_status choose_variant(tn_env *env, tn_arena *arena, const tn_graph *graph, const tn_target *target,
                                tn_candidate *candidate, variant_list *c) {
  const tn_recorded_choice *recorded = find_recorded_choice(graph, target, candidate);
  int32_t best = find_best_variant(c, recorded, &candidate->replayed);
  if (target->tuner != NULL && !candidate->replayed)
    TN_TRY(measure_rivals(env, arena, graph, target->tuner, c, &best));
  candidate->choice = c->variants[best];
  candidate->variants = candidate->replayed ? &c->variants[best] : c->variants;
  candidate->n_variants = candidate->replayed ? 1 : c->n;
  return TN_OK;
}

static tn_status mark_faulted_variants(tn_arena *arena, const tn_graph *graph, const tn_target *target,
                                       variant_list *c) {
  tn_tuning tuning;
  if (target->tuner == NULL || !target->tuner->knows_faults(target->tuner)) return TN_OK;
  if (find_recorded_choice(graph, target, c->candidate) != NULL) return TN_OK;
  TN_TRY(tn_describe_tuning(arena, graph, c->candidate, &tuning));
  tn_mark_faulted_variants(target->tuner, &tuning, c->variants, c->n);
  return TN_OK;
}

/* The variants in `offered` that may be chosen. */
static tn_status list_usable_variants(tn_arena *arena, const tn_target *target, tn_candidate *candidate,
                                      const variant_list *offered, variant_list *c) {
  *c = *offered;
  c->variants = tn_arena_alloc(arena, (size_t)c->n * sizeof *c->variants);
  if (c->variants == NULL) return TN_ENOMEM;
  memcpy(c->variants, offered->variants, (size_t)c->n * sizeof *c->variants);
  TN_TRY(drop_declined_variants(arena, target, candidate, c));
  if (candidate->reason == NULL && target->deterministic) TN_TRY(drop_varying_variants(arena, candidate, c));
  drop_faulted_variants(c);
  return TN_OK;
}

/* Chooses once more where a variant has declined while it was measured. */
static tn_status choose_among_offered(tn_env *env, tn_arena *arena, const tn_graph *graph,
                                      const tn_target *target, tn_candidate *candidate,
                                      variant_list *offered) {
  variant_list c;
  size_t declines;
  TN_TRY(mark_faulted_variants(arena, graph, target, offered));
  do {
    declines = tn_answers_declines(target);
    TN_TRY(list_usable_variants(arena, target, candidate, offered, &c));
    if (candidate->reason != NULL) return TN_OK;
    TN_TRY(choose_variant(env, arena, graph, target, candidate, &c));
  } while (tn_answers_declines(target) > declines);
  return TN_OK;
}

tn_status tn_candidate_query(tn_env *env, tn_arena *arena, const tn_graph *graph, const tn_target *target,
                             tn_candidate *candidate) {
  tn_match *match = NULL;
  candidate->reason = NULL;
  TN_TRY(tn_check_stop(env));
  TN_TRY(tn_describe_match(arena, graph, target, candidate, &match));
  candidate->match = match;
  candidate->cost = tn_match_cost(graph, candidate, match);
  if (target->answers != NULL) candidate->key = tn_match_key_of(graph, candidate, match);
  variant_list c = {.arena = arena,
                    .candidate = candidate,
                    .default_cost_s = tn_match_seconds(graph, candidate, match, &target->properties)};
  TN_TRY(find_answer(env, arena, target, candidate, &c));
  return candidate->reason == NULL ? choose_among_offered(env, arena, graph, target, candidate, &c) : TN_OK;
}

/* Of the variants; the one that measurements have chosen may have a larger one. 0: one has none. */
static double least_estimate_s(const tn_candidate *c) {
  double least_s = c->choice.estimate_s;
  for (int32_t i = 0; i < c->n_variants; i++)
    if (c->variants[i].estimate_s < least_s) least_s = c->variants[i].estimate_s;
  return least_s;
}

double tn_candidate_cost_beside(const tn_candidate *c, const tn_candidate *other) {
  bool mixed = c->choice.measured != other->choice.measured;
  bool estimated = mixed && least_estimate_s(c) > 0 && least_estimate_s(other) > 0;
  return estimated ? least_estimate_s(c) : c->choice.cost_s;
}

tn_group tn_candidate_group(const tn_candidate *c) {
  return (tn_group){.entry = c->kernel->entry,
                    .kernel = c->kernel->kernel,
                    .family = c->kernel->family,
                    .nodes = c->nodes,
                    .shared = c->shared,
                    .n_nodes = c->n_nodes,
                    .n_in = c->n_in,
                    .n_out = c->n_out,
                    .in = c->in,
                    .out = c->out,
                    .match = c->match,
                    .key = c->key,
                    .choice = c->choice,
                    .variants = c->variants,
                    .n_variants = c->n_variants,
                    .cost = c->cost,
                    .role = tn_kernel_is_collective(c->kernel->kernel) ? TN_STREAM_COMM : TN_STREAM_COMPUTE};
}

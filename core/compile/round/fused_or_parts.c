/* core/compile/round/fused_or_parts.c: whether a candidate of several nodes costs less than its parts.
 *
 * The parts are the groups that would cover the candidate's nodes without it: smaller patterns, then regions,
 * then single nodes. A kernel that gives no cost is taken to be worth its launch, and so is one whose parts
 * would need a worse family. Estimates are compared with estimates, and measurements with measurements. Where
 * the device replays captures, and estimates are close, the candidate and its parts are measured for this
 * alone: the times of replayed launches may be added. */
#include "core/compile/kernels/describe_match.h"
#include "core/compile/round/cover_round.h"
#include "core/compile/match/region.h"

/* Estimates are rough, and leave out what fusion saves beside the kernels: memory between launches, and
 * reorders. Parts must be estimated this much cheaper. */
static const double parts_margin = 1.25;
static const double replay_margin = 1.05;

/* Nothing is measured where estimates differ by more than this factor, or where the fused launch is estimated
 * to take less than so many empty ones: launches decide there, and a fusion has fewer. */
static const double close_estimates = 3, least_launches = 2;

typedef struct fused_part {
  tn_candidate candidate;
  double share; /* of its cost */
} fused_part;

/* Groups, and their costs together. */
typedef struct cost_sum {
  fused_part *parts;
  int32_t n;
  double cost_s, estimate_s;
  bool measured, estimated; /* all of them are */
  bool replayed;            /* one of them is the choice of the replayed compilation */
  bool known;               /* every node has a kernel of the family, or of a better one */
  bool faulted;             /* the device has failed with one of them */
} cost_sum;

static void add_part_cost(cost_sum *sum, const tn_candidate *part, double share) {
  const tn_choice *choice = &part->choice;
  sum->parts[sum->n++] = (fused_part){*part, share};
  sum->cost_s += share * choice->cost_s;
  sum->estimate_s += share * choice->estimate_s;
  sum->measured = sum->measured && choice->measured;
  sum->estimated = sum->estimated && choice->estimate_s > 0;
  sum->faulted |= choice->faulted;
}

static void add_part(tn_round *r, const tn_candidate *fused, const tn_candidate *part, cost_sum *sum) {
  add_part_cost(sum, part, 1);
  sum->known = sum->known && part->kernel->rank <= fused->kernel->rank;
  sum->replayed |= part->replayed;
  for (int32_t i = 0; i < part->n_nodes; i++)
    if (tn_candidate_takes(part, i)) r->unmatched[part->nodes[i]] = true;
}

/* The best candidate of one node. */
static tn_status find_single_part(tn_round *r, uint32_t node, tn_candidate *part) {
  TN_TRY(tn_round_region_kernel(r, node));
  *part = r->region_single[node];
  return tn_round_best_match(r, node, 1, part);
}

/* ---- the parts ---- */

static tn_status add_pattern_parts(tn_round *r, const tn_candidate *fused, cost_sum *sum) {
  for (int32_t size = fused->n_nodes - 1; size > 1; size--)
    for (int32_t i = 0; i < fused->n_nodes; i++) {
      tn_candidate part = {0};
      if (r->unmatched[fused->nodes[i]]) continue;
      TN_TRY(tn_round_best_match(r, fused->nodes[i], size, &part));
      if (part.kernel != NULL) add_part(r, fused, &part, sum);
    }
  return TN_OK;
}

/* A region that its kernel declines is left to the single nodes. */
static tn_status add_region_part(tn_round *r, const tn_candidate *fused, uint32_t seed, cost_sum *sum) {
  tn_matcher matcher = tn_round_matcher(r);
  tn_region_nodes region;
  tn_candidate part;
  if (r->region_kernel[seed] == NULL) return TN_OK;
  tn_region_grow(&matcher, r->region_kernel, seed, &region);
  if (region.n == 1) return TN_OK;
  TN_TRY(tn_region_candidate(&matcher, r->region_kernel[seed], region.node, region.n, &part));
  TN_TRY(tn_candidate_query(r->env, &r->arena, r->graph, &r->catalog->target, &part));
  if (part.reason == NULL) add_part(r, fused, &part, sum);
  return TN_OK;
}

static tn_status add_region_parts(tn_round *r, const tn_candidate *fused, cost_sum *sum) {
  for (int32_t i = 0; i < fused->n_nodes; i++)
    if (!r->unmatched[fused->nodes[i]] &&
        tn_node_kind_of(&r->graph->nodes.v[fused->nodes[i]]) == TN_NODE_WORK)
      TN_TRY(tn_round_region_kernel(r, fused->nodes[i]));
  for (int32_t i = fused->n_nodes; i-- > 0;)
    if (!r->unmatched[fused->nodes[i]]) TN_TRY(add_region_part(r, fused, fused->nodes[i], sum));
  return TN_OK;
}

static tn_status add_single_parts(tn_round *r, const tn_candidate *fused, cost_sum *sum) {
  for (int32_t i = 0; i < fused->n_nodes; i++) {
    uint32_t node = fused->nodes[i];
    tn_candidate part;
    if (r->unmatched[node] || tn_node_kind_of(&r->graph->nodes.v[node]) != TN_NODE_WORK) continue;
    TN_TRY(find_single_part(r, node, &part));
    if (part.kernel != NULL)
      add_part(r, fused, &part, sum);
    else
      sum->known = false;
  }
  return TN_OK;
}

/* ---- recomputed nodes ---- */

static bool is_read_by_taken(const tn_round *r, const tn_candidate *fused, const tn_gnode *node) {
  for (int32_t i = 0; i < fused->n_nodes; i++) {
    const tn_gnode *user = &r->graph->nodes.v[fused->nodes[i]];
    for (int32_t k = 0; k < user->n_in && tn_candidate_takes(fused, i); k++)
      if (user->in[k] >= node->first_out && user->in[k] < node->first_out + (tn_val)node->n_out) return true;
  }
  return false;
}

/* A node that the candidate only recomputes is spared if its other users recompute it, too, so each of them
 * has a share of its cost. */
static tn_status add_shared_parts(tn_round *r, const tn_candidate *fused, cost_sum *sum) {
  for (int32_t i = 0; i < fused->n_nodes; i++) {
    const tn_gnode *node = &r->graph->nodes.v[fused->nodes[i]];
    tn_candidate part;
    if (tn_candidate_takes(fused, i) || tn_node_kind_of(node) != TN_NODE_WORK) continue;
    if (!is_read_by_taken(r, fused, node)) continue;
    int32_t users = r->uses.start[node->first_out + (tn_val)node->n_out] - r->uses.start[node->first_out];
    r->unmatched[fused->nodes[i]] = false;
    TN_TRY(find_single_part(r, fused->nodes[i], &part));
    r->unmatched[fused->nodes[i]] = true;
    if (part.kernel != NULL) add_part_cost(sum, &part, 1.0 / users);
    sum->known = sum->known && part.kernel != NULL;
  }
  return TN_OK;
}

/* ---- the costs of all parts ---- */

/* The matcher sees the candidate's own nodes only. */
static tn_status add_all_parts(tn_round *r, const tn_candidate *fused, cost_sum *sum) {
  bool *taken = r->taken;
  r->taken = r->unmatched;
  for (int32_t i = 0; i < fused->n_nodes; i++) r->unmatched[fused->nodes[i]] = !tn_candidate_takes(fused, i);
  tn_status status = add_pattern_parts(r, fused, sum);
  if (status == TN_OK) status = add_region_parts(r, fused, sum);
  if (status == TN_OK) status = add_single_parts(r, fused, sum);
  if (status == TN_OK) status = add_shared_parts(r, fused, sum);
  for (int32_t i = 0; i < fused->n_nodes; i++) r->unmatched[fused->nodes[i]] = true;
  r->taken = taken;
  return status;
}

/* The search for parts is no attempt to cover, so its rejections are dropped. */
static tn_status sum_parts(tn_round *r, const tn_candidate *fused, cost_sum *sum) {
  const tn_round_rejection **kept =
      tn_arena_alloc(&r->arena, (size_t)fused->n_nodes * sizeof(const tn_round_rejection *));
  sum->parts = tn_arena_alloc(&r->arena, (size_t)fused->n_nodes * sizeof *sum->parts);
  if (kept == NULL || sum->parts == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < fused->n_nodes; i++) kept[i] = r->rejections[fused->nodes[i]];
  tn_status status = add_all_parts(r, fused, sum);
  for (int32_t i = 0; i < fused->n_nodes; i++) r->rejections[fused->nodes[i]] = kept[i];
  return status;
}

/* ---- measured times ---- */

static bool are_times_wanted(const tn_round *r, const tn_candidate *fused, const cost_sum *parts) {
  double fused_s = fused->choice.estimate_s, parts_s = parts->estimate_s;
  const tn_target *target = &r->catalog->target;
  bool can_be_timed = target->tuner != NULL && target->tuner->time_replay != NULL;
  return can_be_timed && parts->known && parts->estimated &&
         fused_s >= least_launches * target->properties.launch_s && parts_s <= close_estimates * fused_s &&
         fused_s <= close_estimates * parts_s;
}

/* Pass `layout` decides between layouts later, so the fastest variant counts: the chosen one, or one that has
 * other layouts and is estimated to take no longer. */
static bool may_be_fastest(const tn_candidate *c, const tn_choice *variant) {
  return variant->id == c->choice.id || (!variant->measured && variant->cost_s <= c->choice.cost_s);
}

/* *seconds is 0: no time is known. */
static tn_status time_candidate(tn_round *r, const tn_candidate *c, double *seconds) {
  tn_tuner *tuner = r->catalog->target.tuner;
  tn_tuning tuning;
  *seconds = 0;
  TN_TRY(tn_describe_tuning(&r->arena, r->graph, c, &tuning));
  for (int32_t i = 0; i < c->n_variants; i++) {
    double one_s = 0;
    if (!may_be_fastest(c, &c->variants[i])) continue;
    TN_TRY(tuner->time_replay(tuner, r->env, &tuning, &c->variants[i], &one_s));
    if (one_s > 0 && (*seconds == 0 || one_s < *seconds)) *seconds = one_s;
  }
  return TN_OK;
}

static bool wins_by_time(double fused_s, double parts_s) { return fused_s <= parts_s * replay_margin; }

/* *fused_s is 0: a time is unknown. Ends where the parts so far take long enough. */
static tn_status time_parts(tn_round *r, const tn_candidate *fused, const cost_sum *parts, double *fused_s,
                            double *parts_s) {
  *parts_s = 0;
  TN_TRY(time_candidate(r, fused, fused_s));
  for (int32_t i = 0; i < parts->n; i++) {
    double one_s;
    if (wins_by_time(*fused_s, *parts_s)) return TN_OK;
    TN_TRY(time_candidate(r, &parts->parts[i].candidate, &one_s));
    *parts_s += parts->parts[i].share * one_s;
    if (one_s <= 0) *fused_s = 0;
  }
  return TN_OK;
}

/* ---- the comparison ---- */

static tn_status reject_fused(tn_round *r, const tn_candidate *fused, const char *reason) {
  if (reason == NULL) return TN_ENOMEM;
  return tn_round_reject(r, fused->nodes, fused->n_nodes, fused->kernel, reason, false);
}

static tn_status compare_costs(tn_round *r, const tn_candidate *fused, const cost_sum *parts, bool *prefers) {
  bool measured = parts->measured && fused->choice.measured;
  double fused_s = measured ? fused->choice.cost_s : fused->choice.estimate_s;
  double parts_s = measured ? parts->cost_s : parts->estimate_s;
  bool comparable = parts->known && (measured || (parts->estimated && fused->choice.estimate_s > 0));
  *prefers = !comparable || fused_s <= parts_s * (measured ? 1 : parts_margin);
  if (*prefers) return TN_OK;
  return reject_fused(
      r, fused, tn_arena_printf(&r->arena, "costs %.3g ms, its parts %.3g ms", fused_s * 1e3, parts_s * 1e3));
}

static tn_status compare_with_parts(tn_round *r, const tn_candidate *fused, const cost_sum *parts,
                                    bool *prefers) {
  double fused_s = 0, parts_s = 0;
  *prefers = false;
  if (parts->replayed) return reject_fused(r, fused, "its parts are those of the replayed compilation");
  if (are_times_wanted(r, fused, parts)) TN_TRY(time_parts(r, fused, parts, &fused_s, &parts_s));
  if (fused_s <= 0) return compare_costs(r, fused, parts, prefers);
  *prefers = wins_by_time(fused_s, parts_s);
  if (*prefers) return TN_OK;
  return reject_fused(r, fused,
                      tn_arena_printf(&r->arena, "takes %.3g ms, its parts %.3g ms, as measured",
                                      fused_s * 1e3, parts_s * 1e3));
}

tn_status tn_round_prefers_fused(tn_round *r, const tn_candidate *fused, bool *prefers) {
  cost_sum parts = {.measured = true, .estimated = true, .known = true};
  *prefers = true;
  bool timed = fused->choice.measured || fused->choice.estimate_s > 0;
  if (fused->replayed || (!timed && !fused->choice.faulted)) return TN_OK;
  TN_TRY(sum_parts(r, fused, &parts));
  if (parts.known && fused->choice.faulted != parts.faulted) {
    *prefers = parts.faulted;
    return *prefers ? TN_OK : reject_fused(r, fused, "the device has failed while it was measured");
  }
  return compare_with_parts(r, fused, &parts, prefers);
}

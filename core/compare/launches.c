/* core/compare/launches.c: judges each launch of the tested backend. */
#include "core/compare/launches.h"

#include <stdio.h>

#include "core/compare/group_graph.h"
#include "core/compare/launch_file.h"

/* The entry of a launch, made when it is seen first; -1: out of memory. */
static int32_t launches_find(tn_compared_launches *all, const tn_watched_launch *l) {
  for (size_t i = 0; i < all->list.n; i++)
    if (all->list.v[i].program == l->program && all->list.v[i].index == l->index) return (int32_t)i;
  const tn_compared_launch one = {.program = l->program, .index = l->index, .at_step = -1};
  return tn_vec_push(all->judge->env, &all->list, one) == TN_OK ? (int32_t)all->list.n - 1 : -1;
}

static bool launches_is_worse(const tn_compared_launch *a, const tn_compared_launch *b) {
  if (tn_compared_departs(a) != tn_compared_departs(b)) return tn_compared_departs(a);
  return a->judged.share > b->judged.share;
}

/* A later launch with the same operands counts where its results have other bits. */
static tn_status launches_judge(const tn_compared_launches *all, const tn_watched_launch *l,
                                const tn_graph *graph, tn_compared_launch *one) {
  int32_t n_in = l->step->n_in, n_out = l->step->n_out;
  tn_judgement late;
  TN_TRY(tn_judge_results(all->judge, graph, l->in, n_in, l->out, n_out, &one->judged));
  one->repetition = 1;
  if (l->differs == 0 || tn_compared_departs(one)) return TN_OK;
  TN_TRY(tn_judge_results(all->judge, graph, l->in, n_in, l->late, n_out, &late));
  one->unsteady = l->step->group->choice.deterministic;
  if (!one->unsteady && late.verdict < TN_JUDGED_DEPARTS) return TN_OK;
  one->repetition = l->differs;
  one->judged = late;
  return TN_OK;
}

/* The comparison goes on where the file cannot be written. */
static void launches_write_file(tn_compared_launches *all, const tn_watched_launch *l,
                                const tn_graph *graph) {
  tn_env *env = all->judge->env;
  if (all->file == NULL) return;
  all->written = tn_launch_file_write(env, all->file, graph, l, all->launches) == TN_OK;
  if (all->written) return;
  tn_logf(env, TN_LOG_WARN, "the launch that departs was not written: %s", tn_error_text(env));
  tn_error_clear(env);
}

static tn_status launches_keep(tn_compared_launches *all, const tn_watched_launch *l, const tn_graph *graph,
                               const tn_compared_launch *one) {
  int32_t i = launches_find(all, l);
  if (i < 0) return TN_ENOMEM;
  tn_compared_launch *kept = &all->list.v[i];
  if (kept->at_step < 0 || launches_is_worse(one, kept)) *kept = *one;
  if (all->departed || !tn_compared_departs(one)) return TN_OK;
  all->departed = true;
  all->first = *one;
  launches_write_file(all, l, graph);
  return TN_OK;
}

static tn_status launches_compare(tn_compared_launches *all, const tn_watched_launch *l) {
  tn_env *env = all->judge->env;
  tn_compared_launch one = {.program = l->program, .index = l->index, .at_step = all->at_step};
  tn_graph *graph;
  tn_status status = tn_group_graph_make(l->program->cover->graph, l->step->group, &graph);
  if (status == TN_OK) status = launches_judge(all, l, graph, &one);
  if (status == TN_EUNSUPPORTED) {
    snprintf(one.skipped, sizeof one.skipped, "%s", tn_error_text(env));
    tn_error_clear(env);
    status = TN_OK;
  }
  if (status == TN_OK) status = launches_keep(all, l, graph, &one);
  tn_graph_destroy(graph);
  return status;
}

tn_status tn_compared_launches_see(void *context, tn_env *env, const tn_watched_launch *launch) {
  tn_compared_launches *all = context;
  tn_status status = launches_compare(all, launch);
  if (status != TN_OK) tn_error_move(env, all->judge->env);
  return status;
}

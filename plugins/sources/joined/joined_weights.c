/* plugins/sources/joined/joined_weights.c: how often the samples of each part are drawn. */
#include "plugins/sources/joined/joined.h"

tn_status joined_weight_of(tn_env *env, const joined_part *part, int64_t index, double *weight) {
  *weight = 1;
  return part->is_weighted ? part->source->weight_of(env, part->self, index, weight) : TN_OK;
}

/* The sum of the weights that a part gives its samples. */
static tn_status weights_sum(joined *j, const joined_part *part, double *sum) {
  *sum = 0;
  for (int64_t i = 0; i < part->count; i++) {
    double weight;
    TN_TRY(joined_weight_of(&j->env, part, i, &weight));
    *sum += weight;
  }
  if (*sum > 0) return TN_OK;
  return tn_fail(&j->env, TN_EINVAL, "sources", "sources: all samples of '%s' have weight 0", part->name);
}

tn_status joined_set_weights(joined *j, const tn_floats *weights) {
  j->is_weighted = weights->n > 0;
  for (int32_t i = 0; i < j->n_parts; i++) j->is_weighted = j->is_weighted || j->parts[i].is_weighted;
  if (weights->n > 0 && weights->n != j->n_parts)
    return tn_fail(&j->env, TN_EINVAL, "weights",
                   "weights: %lld numbers for %d sources, expected one for each", (long long)weights->n,
                   (int)j->n_parts);
  for (int32_t i = 0; i < j->n_parts && j->is_weighted; i++) {
    joined_part *p = &j->parts[i];
    double sum;
    TN_TRY(weights_sum(j, p, &sum));
    p->weight = (weights->n > 0 ? weights->v[i] : (double)p->count) / sum;
  }
  return TN_OK;
}

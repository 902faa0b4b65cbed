#include "core/infer/prediction/sampler.h"

#include <math.h>
#include <stdlib.h>

#include "core/step/values/finite_rows.h"

tn_status tn_sampler_open(const void *handle, int64_t n, tn_sampler *s) {
  s->n = n;
  s->tokens = tn_alloc(handle, tn_size_mul((size_t)n, sizeof *s->tokens));
  s->mass = tn_alloc(handle, tn_size_mul((size_t)n, sizeof *s->mass));
  return s->tokens != NULL && s->mass != NULL ? TN_OK : TN_ENOMEM;
}

void tn_sampler_close(const void *handle, tn_sampler *s) {
  tn_release(handle, s->tokens);
  tn_release(handle, s->mass);
  s->tokens = NULL;
  s->mass = NULL;
}

/* Whether token a comes before token b. */
static bool sampler_before(const float *scores, int32_t a, int32_t b) {
  return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
}

static int sampler_compare(const void *a, const void *b, void *scores) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return sampler_before(scores, x, y) ? -1 : sampler_before(scores, y, x);
}

/* Restores the heap below `at`: no token comes behind its parent, so that the last of all is at the root. */
static void sampler_sift(int32_t *heap, int64_t n, int64_t at, const float *scores) {
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && sampler_before(scores, heap[child], heap[child + 1])) child++;
    if (!sampler_before(scores, heap[at], heap[child])) return;
    int32_t token = heap[at];
    heap[at] = heap[child];
    heap[child] = token;
  }
}

/* The k first tokens, in any order: a heap of k, whose root the others replace. */
static void sampler_keep_best(tn_sampler *s, const float *scores, int64_t n, int64_t k) {
  for (int64_t i = k / 2; i-- > 0;) sampler_sift(s->tokens, k, i, scores);
  for (int64_t i = k; i < n; i++) {
    if (!sampler_before(scores, s->tokens[i], s->tokens[0])) continue;
    s->tokens[0] = s->tokens[i];
    sampler_sift(s->tokens, k, 0, scores);
  }
}

/* The smallest number of first tokens whose mass is at least top_p of `sum`. */
static int64_t sampler_nucleus(const tn_sampler *s, int64_t n, double sum) {
  double mass = 0;
  for (int64_t i = 0; i < n; i++) {
    mass += s->mass[i];
    if (mass >= s->top_p * sum) return i + 1;
  }
  return n;
}

static double sampler_weigh(tn_sampler *s, const float *scores, int64_t n, double largest) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    double score = (double)scores[s->tokens[i]];
    s->mass[i] = exp((score - largest) / s->temperature);
    sum += s->mass[i];
  }
  return sum;
}

static int32_t sampler_pick(tn_sampler *s, int64_t n) {
  double sum = 0, at = tn_rng_uniform(&s->rng);
  for (int64_t i = 0; i < n; i++) sum += s->mass[i];
  at *= sum;
  for (int64_t i = 0; i + 1 < n; i++) {
    at -= s->mass[i];
    if (at < 0) return s->tokens[i];
  }
  return s->tokens[n - 1];
}

/* The tokens that can be drawn; those with -infinity have no mass. Returns their number. */
static int64_t sampler_list(tn_sampler *s, const float *scores) {
  int64_t n = 0;
  for (int32_t i = 0; i < (int32_t)s->n; i++)
    if (isfinite(scores[i])) s->tokens[n++] = i;
  return n;
}

static int32_t sampler_best(const tn_sampler *s, const float *scores, int64_t n) {
  int32_t best = s->tokens[0];
  for (int64_t i = 1; i < n; i++)
    if (sampler_before(scores, s->tokens[i], best)) best = s->tokens[i];
  return best;
}

bool tn_sampler_draw(tn_sampler *s, const float *scores, int32_t *token) {
  if (!tn_scores_are_numbers(scores, s->n)) return false;
  int64_t n = sampler_list(s, scores);
  *token = sampler_best(s, scores, n);
  if (s->temperature == 0) return true;
  double largest = (double)scores[*token];
  if (s->top_k > 0 && s->top_k < n) {
    sampler_keep_best(s, scores, n, s->top_k);
    n = s->top_k;
  }
  if (s->top_p < 1)
    qsort_r(s->tokens, (size_t)n, sizeof *s->tokens, sampler_compare, (void *)(uintptr_t)scores);
  double sum = sampler_weigh(s, scores, n, largest);
  if (s->top_p < 1) n = sampler_nucleus(s, n, sum);
  *token = sampler_pick(s, n);
  return true;
}

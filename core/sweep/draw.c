/* core/sweep/draw.c: draws the configurations of a grid, or random ones (Bergstra and Bengio, "Random search
 * for hyper-parameter optimization", JMLR 2012). Configuration i depends on the seed of the sweep, on its
 * keys and on i alone, so a sweep with more runs begins with the same ones. */
#include "core/sweep/draw.h"

#include <stdio.h>
#include <string.h>

#include "core/data/shuffle.h"
#include "tenon/random.h"

/* ---- the keys ---- */

static const char SEED[] = "run.seed";

/* A key that no section can have would be found by each run alone. */
static tn_status draw_check_section(tn_run *run, const tn_sweep_values *v) {
  const char *names[32] = {"backend", "observer", "communicator"};
  size_t n = 3;
  char section[64];
  for (int32_t i = 0; tn_settings_tables[i] != NULL && n < 32; i++) names[n++] = tn_settings_tables[i]->name;
  snprintf(section, sizeof section, "%.*s", (int)strcspn(v->key, ". "), v->key);
  for (size_t i = 0; i < n; i++)
    if (tn_text_equal(section, names[i])) return TN_OK;
  const char *nearest = tn_text_nearest(section, names, n);
  return tn_failf(&run->env, TN_EINVAL, "%s: %s: there is no section [%s]%s%s%s", v->where, v->key, section,
                  nearest ? ", did you mean [" : ", expected SECTION.KEY, such as optimizer.lr",
                  nearest ? nearest : "", nearest ? "]?" : "");
}

static tn_status draw_check_key(tn_run *run, const tn_sweep_values *v) {
  static const char *const taken[] = {"run.name", "run.output", "run.pause_after", "data.fold"};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    if (tn_text_equal(v->key, taken[i]))
      return tn_failf(&run->env, TN_EINVAL, "%s: a sweep sets %s itself, expected another key%s", v->where,
                      v->key, i == 3 ? "; [sweep] folds = N runs all folds" : "");
  return draw_check_section(run, v);
}

/* Values of a key that was read before are replaced: those of --set are read last. */
static tn_status draw_add(tn_run *run, tn_sweep_draw *d, const char *where, const char *key,
                          const char *text) {
  tn_sweep_values values;
  TN_TRY(tn_sweep_values_read(&run->arena, where, key, text, &values));
  TN_TRY(draw_check_key(run, &values));
  if (tn_text_equal(key, SEED)) {
    if (values.list.n == 0)
      return tn_failf(&run->env, TN_EINVAL,
                      "%s: %s = %s: every configuration runs with each seed, expected a list", where, key,
                      text);
    d->seeds = values.list;
    return TN_OK;
  }
  int32_t at = 0;
  while (at < d->n_options && !tn_text_equal(d->options[at].key, key)) at++;
  if (at == d->n_options) {
    d->options = tn_arena_grow(&run->arena, d->options, (size_t)d->n_options, sizeof *d->options);
    if (d->options == NULL) return TN_ENOMEM;
    d->n_options++;
  }
  d->options[at] = values;
  return TN_OK;
}

static tn_status draw_read_section(tn_run *run, tn_sweep_draw *d) {
  const tn_section *section = tn_ini_section(&run->ini, "sweep");
  for (int32_t i = 0; section != NULL && i < section->n_keys; i++) {
    const tn_key *key = &section->keys[i];
    if (key->apart) TN_TRY(draw_add(run, d, tn_key_where(&run->ini, section, key), key->name, key->value));
  }
  return TN_OK;
}

static tn_status draw_read_set(tn_run *run, const char *assignment, tn_sweep_draw *d) {
  const char *equals = strchr(assignment, '=');
  if (equals == NULL || memchr(assignment, '.', (size_t)(equals - assignment)) == NULL)
    return tn_failf(&run->env, TN_EINVAL, "--set %s, expected section.key=VALUE,VALUE...", assignment);
  char *name = tn_arena_printf(&run->arena, "%.*s", (int)(equals - assignment), assignment);
  if (name == NULL) return TN_ENOMEM;
  const char *key = tn_text_trim(name), *where = tn_arena_printf(&run->arena, "--set %s", key);
  return where != NULL ? draw_add(run, d, where, key, equals + 1) : TN_ENOMEM;
}

static tn_status draw_read_keys(tn_run *run, const char *const *set, int32_t n_set, tn_sweep_draw *d) {
  TN_TRY(draw_read_section(run, d));
  for (int32_t i = 0; i < n_set; i++) TN_TRY(draw_read_set(run, set[i], d));
  if (d->n_options > 0 || d->seeds.n > 0 || d->folds > 0) return TN_OK;
  return tn_failf(
      &run->env, TN_EINVAL,
      "%s: no key has several values, expected --set optimizer.lr=1e-4,3e-4, or a section [sweep] with "
      "lines such as optimizer.lr = 1e-4, 3e-4",
      run->ini.path);
}

/* ---- the configurations ---- */

static const tn_sweep_values *draw_find_range(const tn_sweep_draw *d) {
  for (int32_t i = 0; i < d->n_options; i++)
    if (d->options[i].list.n == 0) return &d->options[i];
  return NULL;
}

static tn_status draw_choose_method(tn_run *run, tn_sweep_draw *d) {
  const tn_sweep_values *range = draw_find_range(d);
  d->method = run->settings.sweep.method;
  if (d->method == TN_SWEEP_AUTO) d->method = range != NULL ? TN_SWEEP_RANDOM : TN_SWEEP_GRID;
  if (d->method != TN_SWEEP_GRID || range == NULL) return TN_OK;
  return tn_failf(
      &run->env, TN_EINVAL,
      "%s: %s is a range, and [sweep] method = grid takes lists; expected a list, or method = random",
      range->where, range->key);
}

/* The combinations of the lists; INT64_MAX where a range has endless ones. */
static int64_t draw_combinations(const tn_sweep_draw *d) {
  int64_t n = 1;
  for (int32_t i = 0; i < d->n_options; i++)
    if (d->options[i].list.n == 0 || __builtin_mul_overflow(n, (int64_t)d->options[i].list.n, &n))
      return INT64_MAX;
  return n;
}

/* How many configurations, and how many runs each has. */
static tn_status draw_count(tn_run *run, tn_sweep_draw *d) {
  int64_t all = draw_combinations(d), wanted = run->settings.sweep.runs, runs;
  d->configurations = d->method == TN_SWEEP_GRID || all < wanted ? all : wanted;
  d->repeats = (d->seeds.n > 0 ? d->seeds.n : 1) * (d->folds > 0 ? d->folds : 1);
  bool large = __builtin_mul_overflow(d->configurations, d->repeats, &runs);
  if (!large && runs <= TN_SWEEP_MOST_RUNS) return TN_OK;
  return tn_failf(
      &run->env, TN_EINVAL,
      "%s: the sweep has %s%lld runs, expected at most %d: shorter lists, or [sweep] method = random with "
      "runs = N",
      run->ini.path, large ? "more than " : "", large ? (long long)TN_SWEEP_MOST_RUNS : (long long)runs,
      TN_SWEEP_MOST_RUNS);
}

/* Combination number i; the last key varies fastest. */
static void draw_combine(const tn_sweep_draw *d, int64_t i, const char **values) {
  for (int32_t k = d->n_options - 1; k >= 0; k--) {
    values[k] = tn_sweep_values_at(&d->options[k], i % d->options[k].list.n);
    i /= d->options[k].list.n;
  }
}

static tn_status draw_random(tn_run *run, const tn_sweep_draw *d, uint64_t key, int64_t i,
                             const char **values) {
  for (int32_t k = 0; k < d->n_options; k++) {
    const tn_sweep_values *v = &d->options[k];
    tn_rng rng = tn_rng_at(tn_hash_mix(key, tn_hash_text(TN_HASH_START, v->key)), (uint64_t)i);
    values[k] = v->list.n > 0 ? tn_sweep_values_at(v, tn_rng_below(&rng, v->list.n))
                              : tn_sweep_values_draw(&run->arena, v, tn_rng_uniform(&rng));
    if (values[k] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

/* Where there are lists alone, no combination is drawn twice. */
static tn_status draw_configurations(tn_run *run, tn_sweep_draw *d) {
  int64_t all = draw_combinations(d);
  uint64_t key = tn_hash_mix((uint64_t)run->settings.sweep.seed, 0);
  size_t n = tn_size_mul((size_t)d->configurations, (size_t)d->n_options + 1);
  d->values = tn_arena_alloc(&run->arena, tn_size_mul(n, sizeof *d->values));
  if (d->values == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i < d->configurations; i++) {
    const char **values = &d->values[i * d->n_options];
    if (all == INT64_MAX)
      TN_TRY(draw_random(run, d, key, i, values));
    else
      draw_combine(d, d->method == TN_SWEEP_GRID ? i : tn_permute(key, all, i), values);
  }
  return TN_OK;
}

tn_status tn_sweep_draw_runs(tn_run *run, const char *const *set, int32_t n_set, tn_sweep_draw *d) {
  *d = (tn_sweep_draw){.folds = run->settings.sweep.folds};
  if (d->folds == 1)
    return tn_failf(&run->env, TN_EINVAL, "%s: [sweep] folds = 1, expected 0, or 2 or more parts",
                    tn_settings_where(&run->ini, "sweep", "folds"));
  TN_TRY(draw_read_keys(run, set, n_set, d));
  TN_TRY(draw_choose_method(run, d));
  TN_TRY(draw_count(run, d));
  return draw_configurations(run, d);
}

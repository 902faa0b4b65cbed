/* core/step/programs/program_kinds.c: the programs of later phases and shorter lengths, each of which stands
 * for one of the first phase and the longest length. */
#include "core/step/programs/program_kinds.h"

static const char *const program_names[TN_PROGRAMS] = {
    [TN_PROGRAM_INIT] = "init",       [TN_PROGRAM_STEP] = "step",      [TN_PROGRAM_EVAL] = "eval",
    [TN_PROGRAM_PREDICT] = "predict", [TN_PROGRAM_WEIGH] = "weigh",    [TN_PROGRAM_MICRO] = "micro",
    [TN_PROGRAM_AVERAGE] = "average", [TN_PROGRAM_MEAN] = "mean",      [TN_PROGRAM_REFRESH] = "refresh",
    [TN_PROGRAM_WATCH] = "watch",     [TN_PROGRAM_PRUNE] = "prune",    [TN_PROGRAM_PREFILL] = "prefill",
    [TN_PROGRAM_DECODE] = "decode",   [TN_PROGRAM_SAMPLES] = "samples"};

static const int32_t phase_programs[TN_PHASE_PROGRAMS] = {TN_PROGRAM_STEP, TN_PROGRAM_MICRO,
                                                          TN_PROGRAM_AVERAGE, TN_PROGRAM_WATCH};

static const int32_t length_programs[TN_LENGTH_PROGRAMS] = {TN_PROGRAM_STEP, TN_PROGRAM_EVAL,
                                                            TN_PROGRAM_MICRO};

int32_t tn_phase_program(int32_t which, int32_t phase) {
  int32_t k = 0;
  while (phase_programs[k] != which) k++;
  return phase == 0 ? which : TN_PROGRAM_LATER + TN_PHASE_PROGRAMS * (phase - 1) + k;
}

int32_t tn_input_program(const tn_settings *settings) {
  return tn_phase_program(TN_PROGRAM_STEP, settings->n_turns > 0 ? 0 : settings->n_phases - 1);
}

int32_t tn_length_program(const tn_settings *settings, int32_t which, int32_t k) {
  int32_t i = 0;
  if (k >= settings->n_lengths - 1) return which;
  while (length_programs[i] != which) i++;
  return TN_PROGRAM_SHORTER + TN_LENGTH_PROGRAMS * k + i;
}

int32_t tn_program_kind(int32_t which) {
  if (which >= TN_PROGRAM_SHORTER) return length_programs[(which - TN_PROGRAM_SHORTER) % TN_LENGTH_PROGRAMS];
  return which < TN_PROGRAM_LATER ? which : phase_programs[(which - TN_PROGRAM_LATER) % TN_PHASE_PROGRAMS];
}

int32_t tn_program_phase(int32_t which) {
  if (which < TN_PROGRAM_LATER || which >= TN_PROGRAM_SHORTER) return 0;
  return 1 + (which - TN_PROGRAM_LATER) / TN_PHASE_PROGRAMS;
}

int32_t tn_program_shorter(int32_t which) {
  return which < TN_PROGRAM_SHORTER ? -1 : (which - TN_PROGRAM_SHORTER) / TN_LENGTH_PROGRAMS;
}

int64_t tn_program_length(const tn_run *run, const tn_program_request *request, int32_t which) {
  if (which == TN_PROGRAM_PREDICT && request->length > 0) return request->length;
  int32_t shorter = tn_program_shorter(which);
  return shorter < 0 ? tn_settings_longest(&run->settings) : run->settings.lengths[shorter];
}

int64_t tn_program_epoch(const tn_run *run, int32_t which) {
  return run->settings.phases[tn_program_phase(which)];
}

int32_t tn_program_leader(const tn_run *run) {
  return tn_phase_program(TN_PROGRAM_STEP, run->settings.n_phases - 1);
}

const char *tn_program_turn(const tn_run *run, int32_t which) {
  int32_t kind = tn_program_kind(which);
  if (run->settings.n_turns == 0 || (!tn_program_updates(which) && kind != TN_PROGRAM_MICRO)) return NULL;
  return run->settings.turns[tn_program_phase(which)].name;
}

const char *tn_program_kind_name(int32_t which) { return program_names[tn_program_kind(which)]; }

const char *tn_program_name(const tn_run *run, tn_program_set *set, int32_t which) {
  const char *name = tn_program_kind_name(which), *turn = tn_program_turn(run, which);
  if (turn != NULL) return tn_arena_printf(&set->arena, "%s.%s", name, turn);
  if (which < TN_PROGRAM_LATER) return name;
  int32_t shorter = tn_program_shorter(which);
  if (shorter >= 0)
    return tn_arena_printf(&set->arena, "%s.n%lld", name, (long long)run->settings.lengths[shorter]);
  return tn_arena_printf(&set->arena, "%s.%lld", name, (long long)tn_program_epoch(run, which));
}

bool tn_program_is_incremental(int32_t which) {
  return which == TN_PROGRAM_PREFILL || which == TN_PROGRAM_DECODE;
}

bool tn_program_is_inference(int32_t which) {
  return which == TN_PROGRAM_PREDICT || which == TN_PROGRAM_SAMPLES || tn_program_is_incremental(which);
}

bool tn_program_updates(int32_t which) {
  which = tn_program_kind(which);
  return which == TN_PROGRAM_STEP || which == TN_PROGRAM_WATCH;
}

bool tn_program_is_training(int32_t which) {
  int32_t kind = tn_program_kind(which);
  return tn_program_updates(which) || kind == TN_PROGRAM_WEIGH || kind == TN_PROGRAM_MICRO;
}

int32_t tn_program_shown(const tn_program_request *request) {
  return request->batch[TN_PROGRAM_STEP] > 0 ? TN_PROGRAM_STEP : TN_PROGRAM_PREDICT;
}

int64_t tn_program_batch(const tn_run *run, const tn_program_request *request, int32_t which) {
  int32_t kind = tn_program_kind(which);
  if (tn_program_phase(which) >= run->settings.n_phases) return 0;
  int32_t shorter = tn_program_shorter(which);
  if (shorter >= 0 && (!request->all_lengths || shorter >= run->settings.n_lengths - 1 ||
                       run->ini.mistakes.n > 0 /* the program of the longest length has noted them */))
    return 0;
  if (shorter >= 0 && kind == TN_PROGRAM_EVAL && run->settings.sizes) return 0; /* it has the largest */
  if (kind == TN_PROGRAM_WATCH)
    return request->watched && run->settings.run.watch > 0 ? request->batch[TN_PROGRAM_STEP] : 0;
  if (kind == TN_PROGRAM_SAMPLES)
    return request->watched && request->batch[TN_PROGRAM_EVAL] > 0 ? run->settings.run.samples : 0;
  if (kind != TN_PROGRAM_WEIGH && kind != TN_PROGRAM_MICRO) return request->batch[kind];
  return run->settings.optimizer.accumulate > 1 ? request->batch[TN_PROGRAM_STEP] : 0;
}

enum { WITH_LENGTHS = 1, WITH_SIZES = 2, WITH_BOTH = WITH_LENGTHS | WITH_SIZES };

/* The key of the run that wants programs of one length, or of one size; NULL where no key does. A batch has
 * a length of its own. The size is that of an epoch: all ranks know it, and all micro-batches have it. */
static const char *program_kinds_misfit(const tn_run *run) {
  const tn_settings *s = &run->settings;
  const struct {
    const char *key;
    int misfit;
    bool set;
  } rows[] = {{"[optimizer] accumulate", WITH_LENGTHS, s->optimizer.accumulate > 1},
              {"[group.NAME] freeze with a number", WITH_BOTH, s->n_phases > s->n_turns && s->n_phases > 1},
              {"[run] steps_per_launch", WITH_BOTH, s->steps_per_launch > 1},
              {"several devices", WITH_LENGTHS, tn_run_ranks(run) > 1},
              {"[run] overfit", WITH_SIZES, s->run.overfit > 0},
              {"[run] watch", WITH_BOTH, s->run.watch > 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].set && (rows[i].misfit & (s->sizes ? WITH_SIZES : WITH_LENGTHS)) != 0) return rows[i].key;
  return NULL;
}

tn_status tn_programs_check_lengths(tn_run *run, const tn_program_request *request) {
  const tn_settings *s = &run->settings;
  if (s->n_lengths < 2 || !request->all_lengths) return TN_OK;
  const char *with = program_kinds_misfit(run),
             *where = tn_settings_where(&run->ini, "model", tn_settings_lengths_key(s));
  if (with == NULL) return TN_OK;
  if (s->sizes)
    return tn_failf(&run->env, TN_EINVAL,
                    "%s: [model] sizes: %d sizes with %s, which takes samples of one size; leave it out, or "
                    "give the largest size alone",
                    where, s->n_lengths, with);
  return tn_failf(
      &run->env, TN_EINVAL,
      "%s: [model] lengths: %d lengths with %s, which takes batches of one length; leave it out, or "
      "give the longest length alone",
      where, s->n_lengths, with);
}

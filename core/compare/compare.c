/* core/compare/compare.c: tn_run_compare_with: two backends in lockstep. */
#include "core/compare/report.h"
#include "core/compare/side.h"

enum { DEFAULT_STEPS = 12, DEFAULT_LAUNCHES = 12 };

typedef struct comparison {
  tn_compare_options options;
  tn_run *run; /* that is tested; its messages are those of the call */
  tn_compare_side reference, tested;
  tn_judge judge;
  tn_compared_launches launches;
  tn_compared_loss *losses;
  int64_t host_bytes;
  int32_t taken; /* steps */
  bool ended;    /* a loss is not finite */
} comparison;

/* Moves a failure of the reference's run to the tested one, whose message the caller reads. */
static tn_status compare_of_reference(comparison *c, tn_status status) {
  if (status == TN_OK) return TN_OK;
  tn_error_move(&c->run->env, &c->reference.run->env);
  return status;
}

/* The memory of the host, which is told before the first step. */
static void compare_log_memory(comparison *c) {
  const tn_program_set *set = &c->tested.training.set;
  for (int32_t i = 0; i < set->n; i++) {
    int64_t bytes = tn_launch_watch_bytes(set->list[i], c->options.launches);
    if (bytes > c->host_bytes) c->host_bytes = bytes;
  }
  tn_logf(&c->run->env, TN_LOG_INFO,
          "the values of one launch at a time are held on the host: at most %.1f MiB, and as much for the "
          "trusted backend",
          (double)c->host_bytes / 1048576.0);
}

static tn_status compare_open(comparison *c, tn_run *run, tn_run *reference) {
  TN_TRY(compare_of_reference(c, tn_compare_side_open(&c->reference, reference)));
  TN_TRY(tn_compare_side_open(&c->tested, run));
  TN_TRY(compare_of_reference(c, tn_compare_side_start(&c->reference)));
  TN_TRY(tn_compare_side_start(&c->tested));
  TN_TRY(tn_compare_side_copy_state(&c->tested, &c->reference));
  c->judge = (tn_judge){&run->env, run->registry, c->reference.training.device};
  c->launches =
      (tn_compared_launches){.judge = &c->judge, .file = c->options.file, .launches = c->options.launches};
  compare_log_memory(c);
  c->losses = tn_alloc(&run->env, tn_size_mul((size_t)c->options.steps, sizeof *c->losses));
  return c->losses != NULL ? TN_OK : TN_ENOMEM;
}

/* A step whose every launch is compared. */
static tn_status compare_watched_step(comparison *c, double *loss) {
  const tn_launch_watcher watcher = {&c->launches, tn_compared_launches_see};
  tn_launch_watch *watch;
  TN_TRY(tn_launch_watch_create(c->tested.training.executor, c->options.launches, &watcher, &watch));
  tn_status status = tn_compare_side_step(&c->tested, loss, &c->ended);
  tn_launch_watch_destroy(watch);
  return status;
}

static tn_status compare_step(comparison *c, int32_t step) {
  tn_compared_loss *loss = &c->losses[step];
  bool watched = step == 0 || step == c->options.steps - 1;
  TN_TRY(tn_check_stop(&c->run->env));
  c->launches.at_step = step + 1;
  TN_TRY(compare_of_reference(c, tn_compare_side_step(&c->reference, &loss->reference, &c->ended)));
  return watched ? compare_watched_step(c, &loss->tested)
                 : tn_compare_side_step(&c->tested, &loss->tested, &c->ended);
}

static tn_status compare_take_result(comparison *c, char **json) {
  const tn_compared compared = {.reference = tn_device_name(c->reference.training.device),
                                .tested = tn_device_name(c->tested.training.device),
                                .losses = c->losses,
                                .steps = c->taken,
                                .launches = &c->launches,
                                .host_bytes = c->host_bytes};
  return tn_json_take(c->run, tn_compared_report(&compared), json);
}

static tn_status compare_all(comparison *c, tn_run *run, tn_run *reference, char **json) {
  TN_TRY(compare_open(c, run, reference));
  for (; c->taken < c->options.steps && !c->ended; c->taken++) TN_TRY(compare_step(c, c->taken));
  return compare_take_result(c, json);
}

static void compare_close(comparison *c) {
  tn_run *run = c->run;
  tn_vec_free(&run->env, &c->launches.list);
  tn_release(&run->env, c->losses);
  tn_compare_side_close(&c->tested);
  tn_compare_side_close(&c->reference);
  tn_release(&run->env, c);
}

tn_status tn_run_compare_with(tn_run *run, tn_run *reference, const tn_compare_options *given, char **json) {
  tn_compare_options options;
  TN_ENTER(run);
  TN_NEED(run, json, "json");
  *json = NULL;
  TN_NEED(run, reference, "reference");
  TN_TRY(TN_READ_STRUCT(run, tn_compare_options, steps, given, &options));
  if (run == reference) return tn_failf(run, TN_EINVAL, "a run cannot be compared with itself; open two");
  if (options.steps < 1) options.steps = DEFAULT_STEPS;
  if (options.launches < 1) options.launches = DEFAULT_LAUNCHES;
  comparison *c = tn_alloc(&run->env, sizeof *c);
  if (c == NULL) return TN_ENOMEM;
  c->options = options;
  c->run = run;
  tn_status status = compare_all(c, run, reference, json);
  compare_close(c);
  return status;
}

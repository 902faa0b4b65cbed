/* An observer: ends the run when the loss is small enough.
 * `[run] observers = stop_below` and `[observer.stop_below] loss = 0.1`. */
#include <tenon/plugin/observer.h>

struct stop_options {
  double loss;
  int32_t steps;
};
static const tn_option options[] = {
    TN_OPT(struct stop_options, loss, TN_OPT_FLOAT, NULL, NULL, "the run ends below this loss"),
    TN_OPT(struct stop_options, steps, TN_OPT_FLAG, "no", NULL,
           "look at each step, not at the ends of epochs alone"),
    TN_OPT_END};

static tn_status open_stop(tn_env *env, const void *given, const tn_run_info *run, void **self) {
  struct stop_options *o = tn_new(env, sizeof *o);
  (void)run;
  if (!o) return TN_ENOMEM;
  *o = *(const struct stop_options *)given;
  *self = o;
  return TN_OK;
}

/* The loss of a step, or that of the validation after an epoch; without a validation, that of training. */
static tn_status look(tn_env *env, void *self, const tn_event *e) {
  const struct stop_options *o = self;
  const tn_metric *loss = e->n_valid > 0 ? e->valid : e->train;
  if (e->kind != (o->steps ? TN_EVENT_STEP : TN_EVENT_EPOCH_END)) return TN_OK;
  if ((e->n_valid == 0 && e->n_train == 0) || !(loss->value < o->loss)) return TN_OK;
  return tn_fail(env, TN_ESTOPPED, NULL, "the loss is %.4g, below %g", loss->value, o->loss);
}

static void close_stop(tn_env *env, void *self) { tn_delete(env, self); }

static const tn_observer stop_below = {.item = TN_ITEM(tn_observer, TN_OBSERVER, "stop_below",
                                                       "ends the run when the loss is small enough",
                                                       struct stop_options, options),
                                       .open = open_stop,
                                       .event = look,
                                       .close = close_stop};

TN_PLUGIN(stop_below, "1.0", "MIT", &stop_below.item)

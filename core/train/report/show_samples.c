/* core/train/report/show_samples.c: [run] samples in the course of a run. */
#include "core/train/loop/training.h"

tn_status tn_training_open_samples(tn_training *t) {
  tn_run *run = t->run;
  if (run->settings.run.samples == 0) return TN_OK;
  if (t->valid == NULL)
    return tn_failf(
        &run->env, TN_EINVAL,
        "%s: [run] samples = %lld: the run has no validation data, whose first samples are shown; "
        "expected them in [data.valid], or by [data] fold",
        tn_settings_where(&run->ini, "run", "samples"), (long long)run->settings.run.samples);
  return tn_samples_open(run, tn_feeder_loader(t->valid), &t->set, t->executor, t->slots, &t->samples);
}

tn_status tn_training_show_samples(tn_training *t) {
  tn_event event = tn_training_event(t, TN_EVENT_SAMPLES);
  if (t->samples == NULL) return TN_OK;
  TN_TRY(tn_feeder_stop(t->valid)); /* of a shortened validation its loader may write into the slots */
  TN_TRY(tn_samples_run(t->samples, &event.media, &event.n_media));
  tn_flight_wait before = tn_flight_begin_wait(t->device->flight, TN_FLIGHT_HOST, "its observers");
  tn_observers_post(t->observers, &event);
  tn_flight_end_wait(t->device->flight, &before);
  return TN_OK;
}

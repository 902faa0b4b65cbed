/* core/train/report/events.c: events for the observers, and the reasons for the end of a run. */
#include <math.h>

#include "core/base/system/system.h"
#include "core/train/loop/training.h"

const char tn_end_finished[] = "finished", tn_end_stopped[] = "stopped", tn_end_out_of_time[] = "max_time",
           tn_end_early[] = "patience", tn_end_observer[] = "observer", tn_end_nonfinite[] = "non-finite",
           tn_end_failed[] = "failed", tn_end_paused[] = "paused", tn_end_target[] = "target";

tn_event tn_training_event(const tn_training *t, int32_t kind) {
  return (tn_event){.struct_size = sizeof(tn_event),
                    .kind = kind,
                    .epoch = t->progress.epoch,
                    .step = t->progress.step,
                    .step_in_epoch = t->progress.batch,
                    .steps_in_epoch = t->steps_per_epoch,
                    .seconds = tn_clock_s() - t->started_s,
                    .samples_per_s = t->samples_per_s,
                    .lr = t->lr,
                    .text = "",
                    .skipped = -1,
                    .sparsity = -1};
}

const char *tn_training_nonfinite_text(double value) {
  return isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

void tn_training_post(tn_training *t, int32_t kind, const char *text) {
  tn_event event = tn_training_event(t, kind);
  event.text = text;
  tn_flight *flight = t->device != NULL ? t->device->flight : NULL;
  tn_flight_wait before = tn_flight_begin_wait(flight, TN_FLIGHT_HOST, "its observers");
  tn_observers_post(t->observers, &event);
  tn_flight_end_wait(flight, &before);
}

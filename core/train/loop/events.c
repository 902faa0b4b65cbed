/* core/train/loop/events.c: events for the observers, and the reasons for which a run ends. */
#include "core/base/thread.h"
#include "core/train/loop/training.h"

const char tn_why_finished[] = "finished", tn_why_stopped[] = "stopped", tn_why_out_of_time[] = "max_time",
           tn_why_nonfinite[] = "non-finite";

tn_event tn_fit_event(const tn_fit *t, int32_t kind) {
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
                    .skipped = -1};
}

void tn_fit_post(tn_fit *t, int32_t kind, const char *text) {
  tn_event event = tn_fit_event(t, kind);
  event.text = text;
  tn_watch_post(t->watch, &event);
}

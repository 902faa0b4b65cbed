/* core/train/loop/begin_epoch.c: starts the loader at the next update of an epoch. */
#include "core/train/loop/training.h"

tn_status tn_training_start_data(tn_training *t) {
  const tn_progress *p = &t->progress;
  TN_TRY(tn_training_take_size(t));
  tn_training_count_epoch(t);
  if (t->sizes.schedule == NULL) return tn_feeder_start(t->train, p->epoch, p->batch);
  tn_update_walk all = tn_update_sizes_walk(&t->sizes, p->epoch, INT64_MAX, INT64_MAX);
  t->walk = tn_update_sizes_walk(&t->sizes, p->epoch, p->batch, INT64_MAX);
  const tn_epoch_updates updates = {t->walk.batches, all.batches, all.last};
  return tn_feeder_start_updates(t->train, p->epoch, &updates);
}

tn_status tn_training_begin_epoch(tn_training *t) {
  bool ended = t->progress.batch >= t->steps_per_epoch;
  if (t->progress.step > 0 && !ended) return TN_OK;
  if (ended && t->progress.step > 0) {
    t->progress.epoch++;
    t->progress.batch = 0;
  }
  TN_TRY(tn_feeder_stop(t->train));
  return tn_training_start_data(t);
}

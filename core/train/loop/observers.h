/* core/train/loop/observers.h: observers on a thread of their own. */
#ifndef TN_CORE_TRAIN_LOOP_OBSERVERS_H
#define TN_CORE_TRAIN_LOOP_OBSERVERS_H

#include "core/train/run.h"
#include "tenon/plugin/observer.h"

typedef struct tn_watch tn_watch;
tn_status tn_watch_start(tn_run *run, const tn_run_info *info, tn_watch **watch);
/* Copies the event and takes no lock. A step is dropped when the queue is full; other events wait. */
void tn_watch_post(tn_watch *watch, const tn_event *event);
/* Waits until the observers have heard what was posted so far. */
void tn_watch_flush(tn_watch *watch);
/* Hands over what is queued, closes the observers. */
void tn_watch_stop(tn_watch *watch);

#endif

/* core/train/observers/observers.h: the observers of a run, on a thread of their own. */
#pragma once

#include "core/run/run.h"
#include "tenon/plugin/observer.h"

typedef struct tn_observers tn_observers;
tn_status tn_observers_start(tn_run *run, const tn_run_info *info, tn_observers **observers);
/* Copies the event without taking a lock. Events wait for space while the queue is full. Those of steps do so
 * for at most 1 s and 1 % of `event->seconds` in all; after that they are dropped while it is full. */
void tn_observers_post(tn_observers *observers, const tn_event *event);
/* Waits until the observers have received all events that were posted so far. */
void tn_observers_flush(tn_observers *observers);
/* Why an observer asks for the end of the run, "observer 'NAME': ..."; NULL: none does. */
const char *tn_observers_stop_reason(const tn_observers *observers);
/* Delivers the queued events, and closes the observers. */
void tn_observers_stop(tn_observers *observers);

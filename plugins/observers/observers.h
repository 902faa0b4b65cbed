/* plugins/observers/observers.h: the observers, for the descriptor. */
#ifndef TN_PLUGINS_OBSERVERS_H
#define TN_PLUGINS_OBSERVERS_H

#include "tenon/plugin/observer.h"

extern const tn_observer observer_progress, observer_jsonl, observer_csv;

#endif

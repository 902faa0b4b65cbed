/* plugins/observers/plugin.c: the built-in observers. */
#include "plugins/observers/observers.h"

TN_PLUGIN(observers, "0.1.0", "MIT", &observer_progress.item, &observer_jsonl.item, &observer_csv.item,
          &observer_tensorboard.item)

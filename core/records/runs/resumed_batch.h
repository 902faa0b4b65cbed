/* core/records/runs/resumed_batch.h: the batch of a resumed run whose configuration says auto. */
#pragma once

#include "core/run/run.h"

/* Takes the number that the run folder's configuration has in place of `auto`. Before the two are compared.
 */
tn_status tn_take_resumed_batch(tn_run *run, const char *folder);

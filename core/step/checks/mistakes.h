/* core/step/checks/mistakes.h: the mistakes of a configuration that keeps a run from being opened, or its
 * device. */
#pragma once

#include "core/run/run.h"

/* TN_EINVAL: notes it and tells it with the other mistakes of the configuration: those noted before, of the
 * model, which is built for these alone, between model and other sections, and of sections that nothing has
 * read. Other statuses are returned. */
tn_status tn_run_tell_mistakes(tn_run *run, tn_status status);

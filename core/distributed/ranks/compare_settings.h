/* core/distributed/ranks/compare_settings.h: the configurations of the processes of a run. */
#pragma once

#include "core/distributed/ranks/ranks.h"
#include "core/run/run.h"

/* Called once in each process, before tn_ranks_run. TN_EINVAL in a process whose configuration differs from
 * that of process 0, with the first key that does. */
tn_status tn_ranks_compare_settings(tn_rank_set *ranks, tn_run *run);

/* The comparison itself: of the text of this process, which tn_ini_print has written, with that of process 0,
 * which may be anything. */
tn_status tn_settings_judge(tn_run *run, const char *own_text, const char *their_text);

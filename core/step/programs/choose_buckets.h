/* core/step/programs/choose_buckets.h: the buckets of gradients of [distributed] bucket = auto. */
#pragma once

#include "core/step/programs/programs.h"

/* Sets run->cuts where the run has several ranks and a training step, and no cuts yet: those of the recorded
 * choices, or else those that let the last collective end earliest. For that the step is compiled once with a
 * bucket for each gradient, which tells when each is ready, by the costs of its kernels. */
tn_status tn_run_choose_buckets(tn_run *run, const tn_target *target, const tn_program_request *request);

/* backends/sim/work_name.c: work as text, for messages. */
#include <stdio.h>

#include "backends/sim/sim.h"

static const char *const direction_name[] = {"copy to device", "copy to host", "copy on device"};

const char *tn_sim_work_kind(const tn_sim_work *work) {
  switch (work->kind) {
  case TN_SIM_COPY: return direction_name[work->copy.direction];
  case TN_SIM_ZERO: return "zeroing";
  case TN_SIM_LAUNCH: return work->launch.l->name;
  case TN_SIM_TASK: return work->task.task.name;
  case TN_SIM_REPLAY: return "captured work";
  default: return "event";
  }
}

void tn_sim_work_name(const tn_sim_work *work, char *text, size_t size) {
  bool sized = work->kind == TN_SIM_COPY || work->kind == TN_SIM_ZERO;
  if (sized)
    snprintf(text, size, "%s of %llu bytes", tn_sim_work_kind(work), (unsigned long long)work->copy.bytes);
  else
    snprintf(text, size, "%s", tn_sim_work_kind(work));
}

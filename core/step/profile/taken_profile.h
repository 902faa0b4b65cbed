/* core/step/profile/taken_profile.h: a profile, as the files of this folder see it. */
#pragma once

#include "core/step/profile/step_profile.h"

struct tn_step_profile {
  tn_profiled what;
  tn_timeline *timeline;
  bool running;
  double resumed_s, wall_s; /* of all pieces that have ended */
};

/* The launches ("ops") of tn_program_report, for each program in the set's list. The caller's reference. */
tn_status tn_profile_programs(const tn_step_profile *profile, json_t **programs);

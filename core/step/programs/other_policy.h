/* core/step/programs/other_policy.h: the same programs under the precision policy for which the device has
 * more kernels. */
#pragma once

#include <jansson.h>

#include "core/step/programs/programs.h"

/* The policy that the device's backend names for an op of the training step; NULL: none, or there is no such
 * policy. */
const tn_precision *tn_other_policy(tn_run *run, const tn_device *device, const tn_program_set *set);

/* Adds other_policy: {policy, scales_loss, launches, cost_ms, peak_bytes, seconds} to the report of `set`,
 * where there is such a policy and the programs can be compiled under it. `request` is that of `set`. */
tn_status tn_other_policy_report(tn_run *run, const tn_device *device, const tn_program_request *request,
                                 const tn_program_set *set, int32_t slots, json_t *json);

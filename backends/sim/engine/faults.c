/* backends/sim/engine/faults.c: injected faults: operations that fail, and operations that are skipped, as if
 * the host had not called them. Both options are lists of KIND:N or KIND:N@DEVICE: the N-th operation of a
 * kind on that device, or on each device. */
#include <stdlib.h>
#include <string.h>

#include "backends/sim/sim.h"

static const struct kind {
  const char *name;
  int32_t which;
} failing[] = {{"allocation", TN_SIM_FAIL_ALLOCATION},
               {"launch", TN_SIM_FAIL_LAUNCH},
               {"kernel", TN_SIM_FAIL_KERNEL},
               {"copy", TN_SIM_FAIL_COPY},
               {"device", TN_SIM_FAIL_DEVICE},
               {"stall", TN_SIM_FAIL_STALL},
               {"hang", TN_SIM_FAIL_HANG},
               {"capture", TN_SIM_FAIL_CAPTURE},
               {NULL, 0}},
  dropping[] = {{"await", TN_SIM_DROP_AWAIT},
                {"wait", TN_SIM_DROP_WAIT},
                {"rest", TN_SIM_DROP_REST},
                {"record", TN_SIM_DROP_RECORD},
                {"copy", TN_SIM_DROP_COPY},
                {"zero", TN_SIM_DROP_ZERO},
                {NULL, 0}};

static const struct kind *faults_find_kind(const struct kind *kinds, const char *name, size_t length) {
  for (; kinds->name != NULL; kinds++)
    if (strlen(kinds->name) == length && memcmp(kinds->name, name, length) == 0) return kinds;
  return NULL;
}

/* "7@1" after the colon; false: invalid. */
static bool faults_read_number(const char *at, const char *end, tn_sim_faults *faults, int32_t which) {
  char *rest = NULL;
  long long n = strtoll(at, &rest, 10), device = -1;
  if (rest + 1 < end && *rest == '@') {
    device = strtoll(rest + 1, &rest, 10);
    if (device < 0 || device > INT32_MAX) return false;
  }
  faults->at[which] = n;
  faults->on[which] = (int32_t)device;
  return n >= 1 && rest == end;
}

/* "kernel:7, copy:2@1" */
static tn_status faults_read_list(tn_env *env, const char *option, const char *list, const struct kind *kinds,
                                  const char *names, tn_sim_faults *faults) {
  static const char blank[] = " \t,";
  for (const char *at = list + strspn(list, blank); *at != '\0'; at += strspn(at, blank)) {
    size_t length = strcspn(at, blank), name = strcspn(at, ":");
    const struct kind *kind = name < length ? faults_find_kind(kinds, at, name) : NULL;
    if (kind == NULL || !faults_read_number(at + name + 1, at + length, faults, kind->which))
      return tn_fail(env, TN_EINVAL, option,
                     "'%.*s' is not KIND:N or KIND:N@DEVICE with a KIND of %s and an N from 1 on",
                     (int)length, at, names);
    at += length;
  }
  return TN_OK;
}

/* "1:3" */
static tn_status faults_read_slow(tn_env *env, const char *text, tn_sim_faults *faults) {
  char *colon = NULL, *end = NULL;
  faults->slow = -1;
  if (*text == '\0') return TN_OK;
  long long device = strtoll(text, &colon, 10);
  double factor = *colon == ':' ? strtod(colon + 1, &end) : 0;
  if (colon == text || end == NULL || end == colon + 1 || *end != '\0' || device < 0 || device > INT32_MAX ||
      !(factor >= 1 && factor <= 1e6))
    return tn_fail(env, TN_EINVAL, "slow", "'%s' is not DEVICE:FACTOR with a FACTOR from 1 on", text);
  faults->slow = (int32_t)device;
  faults->factor = factor;
  return TN_OK;
}

tn_status tn_sim_faults_read(tn_env *env, const tn_sim_options *options, tn_sim_faults *faults) {
  tn_status status =
      faults_read_list(env, "fail", options->fail, failing,
                       "allocation, launch, kernel, copy, device, stall, hang, capture", faults);
  if (status == TN_OK) status = faults_read_slow(env, options->slow, faults);
  if (status != TN_OK) return status;
  return faults_read_list(env, "drop", options->drop, dropping, "await, wait, rest, record, copy, zero",
                          faults);
}

bool tn_sim_fault(tn_sim_device *device, int32_t which) {
  const tn_sim_faults *faults = &device->backend->faults;
  int64_t at = faults->at[which];
  if (faults->on[which] >= 0 && faults->on[which] != device->index) return false;
  return at > 0 && atomic_fetch_add(&device->seen[which], 1) + 1 == at;
}

/* core/exec/device/rehearsed_device.c: a device that a file describes, rehearsed by a backend that simulates
 * devices: programs are compiled for the described device, and its kernels and collectives take their
 * predicted times on streams and events of a simulated one. Nothing is computed. */
#include "core/exec/device/device.h"

/* A backend with this option rehearses; with the other one, copies over a link too. */
static const char option_name[] = "rehearse", link_name[] = "link";

/* The callbacks of the caller's request. */
typedef struct rehearsal {
  const tn_device_request *request;
  double link_bytes_per_s; /* of the described device */
} rehearsal;

/* Whether the item has the option, and the configuration does not say it. */
static bool rehearsal_decides(const tn_options *options, const char *name) {
  for (int64_t i = 0; tn_options_at(options->item, i) != NULL; i++)
    if (tn_text_equal(tn_options_at(options->item, i)->name, name)) return !options->given[i];
  return false;
}

static tn_status rehearsal_configure(tn_env *env, void *context, tn_options *options) {
  const rehearsal *r = context;
  if (r->request->configure != NULL) TN_TRY(r->request->configure(env, r->request->context, options));
  if (r->link_bytes_per_s > 0 && rehearsal_decides(options, link_name))
    TN_TRY(tn_options_set_float(env, options, link_name, r->link_bytes_per_s));
  return rehearsal_decides(options, option_name) ? tn_options_set_int(env, options, option_name, 1) : TN_OK;
}

static int32_t rehearsal_choose(void *context, int32_t count) {
  const tn_device_request *request = ((const rehearsal *)context)->request;
  return request->choose != NULL ? request->choose(request->context, count) : request->index;
}

static tn_status rehearsal_find_backend(tn_env *env, tn_registry *registry, const char **name) {
  const tn_entry *entries = NULL;
  int32_t n = 0;
  TN_TRY(tn_registry_list(registry, env, TN_BACKEND, &entries, &n));
  for (int32_t i = 0; i < n; i++) {
    *name = entries[i].item->name;
    if (tn_options_find(entries[i].item, option_name) != NULL) return TN_OK;
  }
  return tn_failf(env, TN_EUNAVAILABLE, "no backend that is installed has the option '%s'", option_name);
}

static tn_status rehearsal_open(tn_env *env, tn_registry *registry, const tn_device_request *request,
                                double link_bytes_per_s, tn_device **device) {
  const char *name = NULL;
  rehearsal r = {request, link_bytes_per_s};
  tn_device_request simulated = *request;
  TN_TRY(rehearsal_find_backend(env, registry, &name));
  simulated.names = &name;
  simulated.n_names = 1;
  simulated.configure = rehearsal_configure;
  simulated.choose = rehearsal_choose;
  simulated.context = &r;
  simulated.fallback = TN_FALLBACK_NONE;
  simulated.uncaptured = true;
  simulated.closed = false;
  return tn_device_create(env, registry, &simulated, device);
}

/* The target of the described device, with the memory of answers of the other. */
static void rehearsal_adopt(tn_device *device, tn_device *described) {
  struct tn_answers *answers = device->target.answers;
  device->rehearsed = described;
  device->target = described->target;
  device->target.answers = answers;
}

tn_status tn_device_rehearse(tn_env *env, tn_registry *registry, const tn_device_request *request,
                             const char *path, tn_device **out) {
  tn_device *described = NULL;
  tn_device_request closed = *request;
  closed.closed = true;
  closed.fallback = TN_FALLBACK_NONE;
  *out = NULL;
  TN_TRY(tn_device_from_file(env, registry, &closed, path, &described));
  tn_status status =
      rehearsal_open(env, registry, request, described->target.properties.link_bytes_per_s, out);
  if (status != TN_OK) {
    tn_device_destroy(described);
    return tn_wrap(env, status, "%s: its rehearsal", path);
  }
  rehearsal_adopt(*out, described);
  return TN_OK;
}

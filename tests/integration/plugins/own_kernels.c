/* Appended to acme_backend.c without its `accepts` and its TN_PLUGIN (backend_test.c): a device that accepts
 * no kernels, with kernels of its own. They are bodies that its streams run. */
#include <tenon/attributes.h>

static tn_status own_query(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v, .name = "own", .deterministic = 1, .capturable = 1};
  return tn_add_variant(q, &v), TN_OK;
}
static tn_status decline(tn_query *q) { return tn_fail(q, TN_EUNSUPPORTED, NULL, "for tests"); }

static tn_status prepare_full(tn_prepare *p, void **prepared) {
  const tn_full_attributes *a = p->match->nodes[0].node->attributes;
  float *value = *prepared = tn_new(p, sizeof *value);
  if (!value) return TN_ENOMEM;
  return *value = (float)a->value, TN_OK;
}
static void release_full(tn_env *env, void *prepared) { tn_delete(env, prepared); }
static tn_status run_full(tn_launch *l) {
  int64_t n = 1;
  for (int32_t i = 0; i < l->out[0].type.rank; i++) n *= l->out[0].type.dims[i];
  for (int64_t i = 0; i < n; i++) ((float *)l->out[0].data)[i] = *(const float *)l->prepared;
  return TN_OK;
}
static tn_status launch_full(tn_launch *l) {
  return push(l->stream, &l->env, &(struct work){.what = LAUNCH, .body = run_full, .l = l});
}

static tn_status run_failure(tn_launch *l) { return tn_fail(l, TN_EDEVICE, NULL, "broken on purpose"); }
static tn_status launch_failure(tn_launch *l) {
  return push(l->stream, &l->env, &(struct work){.what = LAUNCH, .body = run_failure, .l = l});
}

static const tn_kernel acme_full = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "acme_full", "for tests"),
                                    .family = "acme",
                                    .pattern = "y = full()",
                                    .query = own_query,
                                    .prepare = prepare_full,
                                    .release = release_full,
                                    .launch = launch_full};
static const tn_kernel acme_reorder = {.item =
                                           TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "acme_reorder", "for tests"),
                                       .family = "acme",
                                       .pattern = "y = reorder(x)",
                                       .query = decline,
                                       .launch = launch_copy};
static const tn_kernel acme_failure = {.item =
                                           TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "acme_failure", "for tests"),
                                       .family = "acme",
                                       .pattern = "y = device_failure(x)",
                                       .query = decline,
                                       .launch = launch_failure};

TN_PLUGIN(own, "1.0", "MIT", &acme.item, &acme_copy.item, &acme_full.item, &acme_reorder.item,
          &acme_failure.item)

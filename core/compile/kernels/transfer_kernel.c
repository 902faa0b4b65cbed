/* core/compile/kernels/transfer_kernel.c: the kernels of copies between the device and the host. */
#include "core/compile/kernels/transfer_kernel.h"

static tn_status transfer_launch(tn_launch *l) {
  return tn_fail(l, TN_EINTERNAL, NULL, "%s: the executor copies offloaded values itself", l->name);
}

static tn_status transfer_query(tn_query *q) {
  return tn_fail(q, TN_EINTERNAL, NULL, "no kernel is chosen for copies of offloaded values");
}

#define TRANSFER(name, help)                                                                                 \
  {                                                                                                          \
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, name, help), .family = "", .pattern = "y = copy(x)",         \
    .query = transfer_query, .launch = transfer_launch                                                       \
  }
const tn_kernel tn_transfer_kernels[TN_TRANSFER_KERNELS] = {
    TRANSFER("offload", "copies a value from the device to the host"),
    TRANSFER("fetch", "copies an offloaded value from the host to the device")};

#define ENTRY(i)                                                                                             \
  { .item = &tn_transfer_kernels[i].item, .plugin = "tenon", .version = "0", .file = "" }
const tn_entry tn_transfer_entries[TN_TRANSFER_KERNELS] = {ENTRY(0), ENTRY(1)};

/* The start of a copy; and the rate of a link that is unknown, by order of magnitude. */
static const double transfer_latency_s = 1e-5, unknown_link_bytes_per_s = 1e10;

double tn_transfer_s(const tn_device_properties *device, int64_t bytes) {
  double rate = device->link_bytes_per_s > 0 ? device->link_bytes_per_s : unknown_link_bytes_per_s;
  return transfer_latency_s + (double)bytes / rate;
}

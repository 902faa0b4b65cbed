/* core/compile/kernels/collective_kernel.c: the variant and the cost of a collective. */
#include "core/compile/kernels/collective_kernel.h"

#include "tenon/plugin/communicator.h"

/* The variant has the name of the communicator, which executes it. A rough cost: a few microseconds to start,
 * then a link of 10 GB/s, over which a ring sends every byte twice (Patarasuk and Yuan, JPDC 69, 2009). */
static tn_status collective_query(tn_query *q) {
  static const int32_t in_place[1][2] = {{0, 0}};
  const tn_communicator *communicator = q->backend;
  double bytes = (double)tn_type_bytes(q->match->in[0]);
  tn_variant v = {.struct_size = sizeof v,
                  .name = communicator != NULL ? communicator->item.name : "",
                  .n_inplace = 1,
                  .inplace = in_place,
                  .cost_s = 1e-5 + 2 * bytes / 1e10,
                  .deterministic = 1,
                  .capturable = communicator != NULL && communicator->capturable};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status collective_launch(tn_launch *l) {
  return tn_fail(l, TN_ECOMM, NULL, "%s: the program has no communicator", l->name);
}

const tn_kernel tn_kernel_all_reduce = {
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "all_reduce", "collectives, by the run's communicator"),
    .family = "",
    .pattern = "y = all_reduce(x)",
    .query = collective_query,
    .launch = collective_launch};

const tn_entry tn_entry_all_reduce = {
    .item = &tn_kernel_all_reduce.item, .plugin = "tenon", .version = "0", .file = ""};

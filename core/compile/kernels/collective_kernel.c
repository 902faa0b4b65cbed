/* core/compile/kernels/collective_kernel.c: the variants and the costs of collectives. */
#include "core/compile/kernels/collective_kernel.h"

#include "core/compile/kernels/target.h"
#include "tenon/plugin/communicator.h"

/* The variant has the name of the communicator, which executes it. */
static tn_status collective_offer(tn_query *q, int32_t kind, int32_t n_inplace) {
  static const int32_t in_place[1][2] = {{0, 0}};
  const tn_target *target = q->backend; /* the host's own kernels get the target (query.c) */
  const tn_communicator *communicator = target->communicator;
  double in = (double)tn_type_bytes(q->match->in[0]), out = (double)tn_type_bytes(q->match->out[0]);
  tn_variant v = {.struct_size = sizeof v,
                  .name = communicator != NULL ? communicator->item.name : "",
                  .n_inplace = n_inplace,
                  .inplace = n_inplace > 0 ? in_place : NULL,
                  .cost_s = tn_collective_s(&target->interconnect, kind, in > out ? in : out),
                  .deterministic = 1,
                  .capturable = communicator != NULL && communicator->capturable};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status all_reduce_query(tn_query *q) { return collective_offer(q, TN_ALL_REDUCE, 1); }
static tn_status reduce_scatter_query(tn_query *q) { return collective_offer(q, TN_REDUCE_SCATTER, 0); }
static tn_status all_gather_query(tn_query *q) { return collective_offer(q, TN_ALL_GATHER, 0); }

static tn_status collective_launch(tn_launch *l) {
  return tn_fail(l, TN_ECOMM, NULL, "%s: the program has no communicator", l->name);
}

#define COLLECTIVE(op, asked)                                                                                \
  {                                                                                                          \
    .item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, #op, "collectives, by the run's communicator"),              \
    .family = "", .pattern = "y = " #op "(x)", .query = asked, .launch = collective_launch                   \
  }
const tn_kernel tn_collective_kernels[TN_COLLECTIVE_KERNELS] = {
    COLLECTIVE(all_reduce, all_reduce_query), COLLECTIVE(reduce_scatter, reduce_scatter_query),
    COLLECTIVE(all_gather, all_gather_query)};

#define ENTRY(i)                                                                                             \
  { .item = &tn_collective_kernels[i].item, .plugin = "tenon", .version = "0", .file = "" }
const tn_entry tn_collective_entries[TN_COLLECTIVE_KERNELS] = {ENTRY(0), ENTRY(1), ENTRY(2)};

int32_t tn_kernel_collective(const tn_kernel *kernel) {
  static const int32_t kinds[TN_COLLECTIVE_KERNELS] = {TN_ALL_REDUCE, TN_REDUCE_SCATTER, TN_ALL_GATHER};
  for (int32_t i = 0; i < TN_COLLECTIVE_KERNELS; i++)
    if (kernel == &tn_collective_kernels[i]) return kinds[i];
  return -1;
}

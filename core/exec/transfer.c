/* core/exec/transfer.c: copies of offloaded values between the device and the host, as steps of a program. */
#include "core/compile/kernels/transfer_kernel.h"
#include "core/compile/layout/layout.h"
#include "core/exec/bound_program.h"

/* All but the addresses. */
typedef struct prepared_transfer {
  const tn_backend *backend;
  int32_t direction;
  uint64_t bytes;
} prepared_transfer;

tn_status tn_transfer_prepare(tn_executor *e, const tn_step *step, void **prepared) {
  static const int32_t directions[TN_TRANSFER_KERNELS] = {TN_COPY_TO_HOST, TN_COPY_TO_DEVICE};
  prepared_transfer *made = *prepared = tn_alloc(e->env, sizeof *made);
  if (made == NULL) return tn_failf(&e->device->env, TN_ENOMEM, "out of memory for a copy");
  made->backend = e->device->backend;
  made->direction = directions[tn_kernel_transfer(step->group->kernel)];
  made->bytes = (uint64_t)tn_layout_bytes(&step->in[0].type, &step->in[0].layout);
  return TN_OK;
}

tn_status tn_transfer_launch(tn_launch *l) {
  const prepared_transfer *p = l->prepared;
  return p->backend->copy(&l->env, l->stream, p->direction, l->out[0].data, l->in[0].data, p->bytes);
}

/* backends/sim/copy.c: enqueues copies and zeroing. */
#include <string.h>

#include "backends/sim/callbacks.h"
#include "backends/sim/sim.h"

static const char *const side[2] = {"of the host", "of the device"};

static tn_status copy_check_side(tn_env *env, const char *what, const void *address, bool far) {
  if (tn_sim_is_far(address) == far) return TN_OK;
  return tn_fail(env, TN_EDEVICE, NULL, "sim: %s must be an address %s, but %p is one %s", what, side[far],
                 address, side[!far]);
}

/* ---- host memory of copies ---- */

static bool copy_is_done(const tn_sim_transfer *t) {
  return t->stream == NULL || atomic_load(&t->stream->ring.head) >= t->position;
}

static bool copy_overlaps(const tn_sim_transfer *t, const void *host, uint64_t bytes) {
  return (const char *)host < (const char *)t->host + t->bytes &&
         (const char *)t->host < (const char *)host + bytes;
}

/* Fills the target of a copy to the host with 0xFF, so that a host that reads before the copy is done gets
 * wrong values. The target stays unchanged while an earlier copy uses it, which the order of a stream allows.
 */
static void copy_spoil(const tn_sim_device *d, void *to, uint64_t bytes) {
  for (int32_t i = 0; i < TN_SIM_TRANSFERS; i++)
    if (!copy_is_done(&d->transfers[i]) && copy_overlaps(&d->transfers[i], to, bytes)) return;
  memset(to, 0xFF, (size_t)bytes);
}

/* A copy that is not done will write to the memory. */
static bool copy_is_written(const tn_sim_device *d, const void *from, uint64_t bytes) {
  for (int32_t i = 0; i < TN_SIM_TRANSFERS; i++)
    if (d->transfers[i].writes && copy_overlaps(&d->transfers[i], from, bytes) &&
        !copy_is_done(&d->transfers[i]))
      return true;
  return false;
}

/* A free entry of d->transfers. If all are taken, the function waits for the oldest transfer. */
static tn_sim_transfer *copy_find_entry(tn_sim_device *d) {
  for (int32_t i = 0; i < TN_SIM_TRANSFERS; i++)
    if (copy_is_done(&d->transfers[i])) return &d->transfers[i];
  tn_sim_transfer *t = &d->transfers[d->replaced++ % TN_SIM_TRANSFERS];
  tn_sim_reach(t->stream, t->position);
  return t;
}

/* ---- callbacks ---- */

static tn_status copy_check_sides(tn_env *env, int32_t direction, const void *to, const void *from) {
  TN_TRY(copy_check_side(env, "the end of a copy", to, direction != TN_COPY_TO_HOST));
  return copy_check_side(env, "the beginning of a copy", from, direction != TN_COPY_TO_DEVICE);
}

tn_status tn_sim_copy(tn_env *env, void *stream, int32_t direction, void *to, const void *from,
                      uint64_t bytes) {
  tn_sim_stream *s = stream;
  tn_sim_device *d = s->device;
  TN_TRY(copy_check_sides(env, direction, to, from));
  bool check = d->backend->options.check && d->capturing == NULL && bytes > 0;
  if (check && direction == TN_COPY_TO_HOST) copy_spoil(d, to, bytes);
  if (bytes == 0 || tn_sim_fault(d, TN_SIM_DROP_COPY)) return tn_sim_stream_status(env, s);
  tn_sim_work work = {.kind = TN_SIM_COPY};
  work.copy.direction = direction;
  work.copy.to = to;
  work.copy.from = from;
  work.copy.bytes = bytes;
  work.copy.follows = check && direction == TN_COPY_TO_DEVICE && copy_is_written(d, from, bytes);
  if (check && direction == TN_COPY_TO_DEVICE && !work.copy.follows) work.copy.sum = tn_sim_sum(from, bytes);
  uint64_t position = 0;
  tn_status status = tn_sim_push(env, s, &work, &position);
  if (status == TN_OK && check && direction != TN_COPY_ON_DEVICE)
    *copy_find_entry(d) = (tn_sim_transfer){direction == TN_COPY_TO_HOST ? to : from, bytes, s, position,
                                            direction == TN_COPY_TO_HOST};
  return status;
}

tn_status tn_sim_fill_zero(tn_env *env, void *stream, void *address, uint64_t bytes) {
  tn_sim_stream *s = stream;
  TN_TRY(copy_check_side(env, "memory to fill", address, true));
  if (bytes == 0 || tn_sim_fault(s->device, TN_SIM_DROP_ZERO)) return tn_sim_stream_status(env, s);
  tn_sim_work work = {.kind = TN_SIM_ZERO};
  work.copy.to = address;
  work.copy.bytes = bytes;
  return tn_sim_push(env, s, &work, NULL);
}

/* backends/sim/engine/replay.c: the lanes of a capture during a replay. */
#include "backends/sim/capture.h"

static void replay_start_lane(tn_sim_capture *c, tn_sim_queue *lane, int32_t index, tn_sim_stream *stream) {
  bool origin = index == c->origin->index;
  lane->stream = stream;
  lane->capture = c;
  lane->clock = origin ? &stream->clock : &c->clocks[index];
  lane->clock_index = origin ? stream->ring.clock_index : 1 + TN_SIM_STREAMS + index;
  lane->pending = false;
  if (!origin) c->clocks[index] = stream->clock;
  uint64_t n = atomic_load(&lane->tail);
  for (uint64_t i = 0; i < n; i++) lane->items[i].begun = false;
  atomic_store(&lane->head, 0);
}

void tn_sim_capture_start(tn_sim_capture *c, tn_sim_stream *stream, const tn_sim_work *replay) {
  for (int32_t i = 0; i < TN_SIM_STREAMS; i++) replay_start_lane(c, &c->lanes[i], i, stream);
  for (int32_t i = 0; i < c->n_marks; i++) c->marks[i].done = false;
  c->number = replay->number;
}

bool tn_sim_capture_done(const tn_sim_capture *c) {
  for (int32_t i = 0; i < TN_SIM_STREAMS; i++)
    if (atomic_load(&c->lanes[i].head) < atomic_load(&c->lanes[i].tail)) return false;
  return true;
}

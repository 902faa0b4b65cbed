/* backends/sim/capture.h: captured work, which one call replays. */
#pragma once

#include "backends/sim/sim.h"

/* An event record inside a capture. */
typedef struct tn_sim_mark {
  bool done;          /* in the current replay */
  tn_sim_clock clock; /* of the lane that recorded it */
} tn_sim_mark;

struct tn_sim_capture {
  tn_sim_device *device;
  tn_sim_stream *origin;
  uint64_t id;
  /* The captured work of each stream. In a replay the origin's lane has the clock of the replaying stream;
   * the other lanes have clocks of their own. */
  tn_sim_queue lanes[TN_SIM_STREAMS];
  tn_sim_clock clocks[TN_SIM_STREAMS];
  tn_sim_mark *marks;
  int32_t n_marks, marks_capacity;
  bool running;    /* the engine's: a replay runs */
  uint64_t number; /* tn_sim_work.number of that replay */
};

/* Adds work, an event record or an await to the device's current capture. */
tn_status tn_sim_capture_add(tn_env *env, tn_sim_stream *stream, const tn_sim_work *work);
tn_status tn_sim_capture_record(tn_env *env, tn_sim_event *event, tn_sim_stream *stream);
tn_status tn_sim_capture_await(tn_env *env, const tn_sim_event *event, tn_sim_stream *stream);

/* On the engine: resets the lanes for a replay on a stream. */
void tn_sim_capture_start(tn_sim_capture *capture, tn_sim_stream *stream, const tn_sim_work *replay);
bool tn_sim_capture_done(const tn_sim_capture *capture);

/* backends/sim/capture.h: work that is recorded once and run again with one call. */
#ifndef TN_BACKENDS_SIM_CAPTURE_H
#define TN_BACKENDS_SIM_CAPTURE_H

#include "backends/sim/sim.h"

/* An event recorded inside. */
typedef struct tn_sim_mark {
  bool done;          /* in the replay under way */
  tn_sim_clock clock; /* of the lane that recorded it */
} tn_sim_mark;

struct tn_sim_capture {
  tn_sim_device *device;
  tn_sim_stream *origin;
  uint64_t id;
  /* Per stream what was recorded on it. In a replay the origin's lane runs as the stream that replays, the
   * others as streams of their own. */
  tn_sim_queue lanes[TN_SIM_STREAMS];
  tn_sim_clock clocks[TN_SIM_STREAMS];
  tn_sim_mark *marks;
  int32_t n_marks, marks_capacity;
  bool running;    /* the engine's: a replay is under way, */
  uint64_t number; /* which the host enqueued so */
};

/* Adds work to the capture under way. Events know the marks that they became. */
tn_status tn_sim_capture_add(tn_sim_stream *stream, tn_env *env, const tn_sim_work *work);
tn_status tn_sim_capture_record(tn_sim_event *event, tn_env *env, tn_sim_stream *stream);
tn_status tn_sim_capture_await(const tn_sim_event *event, tn_env *env, tn_sim_stream *stream);

/* On the engine: makes the lanes ready for a replay on a stream. */
void tn_sim_capture_start(tn_sim_capture *capture, tn_sim_stream *stream, const tn_sim_work *replay);
bool tn_sim_capture_done(const tn_sim_capture *capture);

#endif

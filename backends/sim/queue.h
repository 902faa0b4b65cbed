/* backends/sim/queue.h: work in order: work, its queues, and the streams and events that order queues. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "backends/sim/engine/task.h"
#include "backends/sim/native.h"
#include "backends/sim/race/clocks.h"
#include "tenon/plugin/backend.h"

typedef struct tn_sim_stream tn_sim_stream;
typedef struct tn_sim_event tn_sim_event;
typedef struct tn_sim_capture tn_sim_capture;

/* The first failure of a stream. `text` is written once, before `code`. */
typedef struct tn_sim_failure {
  atomic_bool taken;
  _Atomic(tn_status) code;
  char text[1024];
} tn_sim_failure;

enum {
  TN_SIM_COPY,
  TN_SIM_ZERO,
  TN_SIM_LAUNCH,
  TN_SIM_TASK,
  TN_SIM_RECORD,
  TN_SIM_AWAIT,
  TN_SIM_MARK,  /* a record inside captured work */
  TN_SIM_JOIN,  /* an await inside captured work */
  TN_SIM_REPLAY /* a whole capture */
};

typedef struct tn_sim_work {
  int32_t kind;
  bool begun;        /* a task or replay that has run before and was pending */
  uint64_t number;   /* in the order of enqueuing */
  tn_sim_clock host; /* the host's clock at that time */
  union {
    struct {
      int32_t direction;
      void *to;
      const void *from;
      uint64_t bytes;
      uint64_t sum; /* checksum of the host's bytes at enqueuing, where copies are checked */
      bool follows; /* another copy, which was not done then, writes these bytes */
    } copy;         /* zero: to, bytes */
    struct {
      tn_status (*body)(tn_launch *l);
      tn_launch *l;
    } launch;
    struct {
      tn_sim_event *event;
      uint64_t ticket;
      tn_sim_stream *from; /* await: stream and position of the record */
      uint64_t position;
    } event;
    int32_t mark; /* mark, join: number in the capture */
    tn_sim_capture *capture;
    struct {
      tn_sim_task task;
      _Alignas(16) unsigned char arg[TN_SIM_ARG_BYTES], now[TN_SIM_ARG_BYTES];
    } task;
  };
} tn_sim_work;

/* Work in order: the ring of a stream, or the lane of a stream in a capture. */
typedef struct tn_sim_queue {
  tn_sim_work *items;
  uint64_t capacity;
  _Atomic(uint64_t) head, tail; /* done; enqueued. Only the engine writes head, only the host tail */
  tn_sim_stream *stream;        /* records the failure */
  tn_sim_capture *capture;      /* NULL: a ring */
  tn_sim_clock *clock;
  int32_t clock_index; /* its index in clocks */
  bool pending;        /* its head is a task that is not done */
  double now_s;        /* of a rehearsal: when the work so far has ended (rehearsal.c) */
  uint64_t polled;     /* the engine's round in which the head ran last */
} tn_sim_queue;

struct tn_sim_stream {
  tn_sim_device *device;
  int32_t index, role;
  bool open;
  tn_sim_queue ring;
  tn_sim_clock clock;       /* the engine's */
  _Atomic(uint64_t) wanted; /* lazy order: the host waits until `head` is at this position */
  tn_sim_failure failure;
  tn_sim_native native;
};

enum { TN_SIM_TICKETS = 4 }; /* records of an event whose clocks are kept */

struct tn_sim_event {
  tn_sim_device *device;
  uint64_t recorded; /* the host's: number of records; stream and position of the last one */
  tn_sim_stream *from;
  uint64_t position;
  uint64_t captured; /* id of the capture that has the last record, as its `mark`; 0: it is not captured */
  int32_t mark;
  _Atomic(uint64_t) done; /* the engine's: the last ticket reached */
  tn_sim_clock clocks[TN_SIM_TICKETS];
  double reached_s;                        /* when the last ticket was reached */
  double times_s[TN_SIM_TICKETS];          /* of a rehearsal: the same of each */
  _Atomic(const tn_sim_failure *) failure; /* of the recording stream, if it had failed before */
};

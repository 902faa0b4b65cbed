/* core/exec/flight_recorder.h: the flight recorder of a rank: its last collectives, and its host's present
 * wait. One thread writes, that of the rank; any thread reads meanwhile. Writing allocates nothing and takes
 * no lock. All functions that write accept NULL, of a device that is alone.
 *
 * Numbers. A collective gets its number when the host enqueues it, alone or in a replay of a capture that
 * contains it. All ranks enqueue the same collectives in the same order, so a number means the same one on
 * all of them. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/env.h"

enum { TN_FLIGHT_ENTRIES = 4096, TN_FLIGHT_NAME = 48, TN_FLIGHT_PROGRAM = 16 };

/* A collective of a program, as the words that its entries hold. */
enum { TN_FLIGHT_CALL_WORDS = 10 };
typedef struct tn_flight_call {
  uint64_t words[TN_FLIGHT_CALL_WORDS];
} tn_flight_call;

/* An entry, for a reader. Times are those of tn_clock_s. */
typedef struct tn_flight_entry {
  uint64_t number;                 /* from 1 */
  int64_t step;                    /* of the training; 0: before the first */
  char program[TN_FLIGHT_PROGRAM]; /* longer texts are cut */
  char name[TN_FLIGHT_NAME];
  int32_t kind, dtype; /* TN_ALL_REDUCE ... (plugin/communicator.h), TN_F32 ... */
  int64_t count;
  double begun_s, ended_s; /* enqueued; known to have ended, or 0 */
} tn_flight_entry;

/* Waits of a host. */
enum {
  TN_FLIGHT_NOTHING = 0,
  TN_FLIGHT_COLLECTIVE = 1, /* the end of a collective: for other ranks */
  TN_FLIGHT_DEVICE = 2,     /* its device, which may wait for other ranks */
  TN_FLIGHT_EXCHANGE = 3,   /* other ranks, in an exchange between the hosts */
  TN_FLIGHT_HOST = 4,       /* files, the source of the data, and the like */
  TN_FLIGHT_WAITS
};

typedef struct tn_flight_wait {
  int32_t kind;
  const char *what; /* static */
  double since_s;   /* of TN_FLIGHT_NOTHING: the end of the last wait; 0: none has ended */
} tn_flight_wait;

typedef struct tn_flight tn_flight;

struct tn_flight {
  _Atomic(uint64_t) *entries; /* a ring; each has the words of flight_recorder.c */
  _Atomic(uint64_t) begun, ended, exchanges;
  _Atomic(int64_t) step;
  _Atomic(int32_t) wait_kind;
  _Atomic(const char *) wait_what;
  _Atomic(double) wait_since_s;
  _Atomic(bool) stopped;
  _Atomic(double) stopped_s; /* when, after it was stopped */
  _Atomic(uint64_t) known;   /* number of the exchange at which no program is new any more; 0: none ran */
  _Atomic(bool) saves;       /* it writes a checkpoint; its waits meanwhile are parts of that */
  _Atomic(int64_t) looks,
      inside;       /* at the device, by another thread; of them those that found it in a collective */
  double awaited_s; /* time that the host has waited for other ranks; the rank's thread alone */
};

tn_status tn_flight_init(const void *handle, tn_flight *flight);
void tn_flight_free(const void *handle, tn_flight *flight);

/* ---- the rank's thread ---- */

/* `program` and `name` are copied. */
tn_flight_call tn_flight_call_of(const char *program, const char *name, int32_t kind, int32_t dtype,
                                 int64_t count);
/* The host enqueues a collective. */
void tn_flight_begin(tn_flight *flight, const tn_flight_call *call);
/* The same for the n collectives of a replay. */
void tn_flight_begin_all(tn_flight *flight, const tn_flight_call *const *calls, int32_t n);
/* The last one was refused, and has not begun. */
void tn_flight_retract(tn_flight *flight);
uint64_t tn_flight_begun(const tn_flight *flight);
/* The first n collectives are known to have ended. */
void tn_flight_end(tn_flight *flight, uint64_t n);
void tn_flight_step(tn_flight *flight, int64_t step);
/* The host comes to the next exchange with the hosts of other ranks. */
void tn_flight_exchange(tn_flight *flight);

/* A program runs for the first time, or with more steps at once than before. */
void tn_flight_new_program(tn_flight *flight);
/* The host writes a checkpoint from now on, or no longer; also recorded after tn_flight_stop. */
void tn_flight_save(tn_flight *flight, bool saves);

/* The host begins to wait; returns the wait before, which tn_flight_end_wait restores. A wait that fails is
 * not ended: the recorder is stopped instead, so that it tells where the rank was. */
tn_flight_wait tn_flight_begin_wait(tn_flight *flight, int32_t kind, const char *what);
void tn_flight_end_wait(tn_flight *flight, const tn_flight_wait *before);
/* One of the two, by the status of the wait. */
tn_status tn_flight_conclude(tn_flight *flight, const tn_flight_wait *before, tn_status status);

/* ---- any thread ---- */

/* Nothing is recorded any more. */
void tn_flight_stop(tn_flight *flight);
tn_flight_wait tn_flight_waits(const tn_flight *flight);
/* Whether steps have begun, and the last TN_FLIGHT_NEW exchanges had no new program. Each step has an
 * exchange, and a host is fewer steps ahead of its device, so that the device has run all programs by then.
 */
enum { TN_FLIGHT_NEW = 8 };
bool tn_flight_is_settled(const tn_flight *flight);
/* Reads the entry of a number; false: it is not in the ring, or just being written. */
bool tn_flight_read(const tn_flight *flight, uint64_t number, tn_flight_entry *entry);
/* The first number that the ring may hold. */
uint64_t tn_flight_first(const tn_flight *flight);

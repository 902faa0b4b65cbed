/* core/distributed/wire/wire.h: what the processes of a run send each other, as bytes. Numbers are
 * little-endian. Every size is bounded, so bytes from outside can neither take memory nor be misread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/distributed/place/place.h"
#include "core/distributed/wire/proof.h"

/* A frame is a head and `bytes` bytes; sealed_frame.h has the tags of both. */
enum { TN_FRAME_HEAD = 24, TN_FRAME_MOST = 1 << 20 };

/* Kinds of frames. */
enum {
  TN_FRAME_REFUSED = 1, /* process 0 does not take this one: the reason as a text */
  TN_FRAME_WELCOME,     /* all have come: the members, from process 0 */
  TN_FRAME_PART,        /* a process's part of exchange `number`, or a piece of it */
  TN_FRAME_RESULT,      /* what process 0 gives to all in exchange `number`, or a piece of it */
  TN_FRAME_DECISION,    /* an i32 */
  TN_FRAME_FAILURE,     /* tn_wire_failure */
  TN_FRAME_STOP,        /* the run shall stop */
  TN_FRAME_BEAT,        /* a sign of life; `number`: frames that the exchanges of the sender have moved */
  TN_FRAME_LEAVE,       /* the process ends in order */
  TN_FRAME_ALL_LEFT,    /* from process 0: all processes have sent TN_FRAME_LEAVE */
  TN_FRAME_REPORT, /* after a failure: the summaries of a process, to process 0; its finding, to all others */
  TN_FRAME_KINDS
};

typedef struct tn_frame_head {
  uint32_t kind;
  uint64_t number;
  uint32_t bytes;
} tn_frame_head;

void tn_frame_head_write(const tn_frame_head *head, unsigned char to[TN_FRAME_HEAD]);
/* False: these bytes are no head of a frame with at most TN_FRAME_MOST bytes. */
bool tn_frame_head_read(const unsigned char from[TN_FRAME_HEAD], tn_frame_head *head);

/* The first bytes that a process sends to process 0. Process 0 answers with its own, and a proof behind them
 * (proof.h). */
enum {
  TN_PROTOCOL = 2, /* of 1, the token was sent */
  TN_GREETING_BYTES = 8 + TN_NONCE_BYTES,
  TN_ANSWER_BYTES = TN_GREETING_BYTES + TN_PROOF_BYTES
};

typedef struct tn_greeting {
  uint32_t protocol; /* of another one nothing else is known */
  unsigned char nonce[TN_NONCE_BYTES];
} tn_greeting;

void tn_greeting_write(const tn_greeting *greeting, unsigned char to[TN_GREETING_BYTES]);
/* False: these bytes are no greeting of any version. */
bool tn_greeting_read(const unsigned char from[TN_GREETING_BYTES], tn_greeting *greeting);

/* A process. It sends this to process 0 when that has proved that it belongs to the job, with a proof
 * behind it. */
enum { TN_HELLO_BYTES = 128, TN_HOST_BYTES = 64, TN_ADDRESS_BYTES = 64 };

typedef struct tn_hello {
  int32_t process, processes, ranks; /* ranks: of this process */
  int64_t pid;
  char host[TN_HOST_BYTES];
  char version[32]; /* of Tenon */
} tn_hello;

void tn_hello_write(const tn_hello *hello, unsigned char to[TN_HELLO_BYTES]);
/* False: these bytes are no hello, or one with numbers out of their range. */
bool tn_hello_read(const unsigned char from[TN_HELLO_BYTES], tn_hello *hello);

/* A process of the run, as TN_FRAME_WELCOME lists all of them. */
enum { TN_MEMBER_BYTES = 16 + TN_HOST_BYTES + TN_ADDRESS_BYTES };

typedef struct tn_member {
  int32_t first_rank, ranks;
  int64_t pid;
  char host[TN_HOST_BYTES], address[TN_ADDRESS_BYTES];
} tn_member;

void tn_member_write(const tn_member *member, unsigned char to[TN_MEMBER_BYTES]);
/* False: numbers out of their range. */
bool tn_member_read(const unsigned char from[TN_MEMBER_BYTES], tn_member *member);

/* A failure of a rank. */
enum { TN_FAILURE_TEXT = 2048, TN_FAILURE_BYTES = 8 + TN_FAILURE_TEXT };

typedef struct tn_wire_failure {
  int32_t rank, status;
  char text[TN_FAILURE_TEXT];
} tn_wire_failure;

/* A text that is too long ends with "...", behind a whole character. */
void tn_failure_set_text(tn_wire_failure *failure, const char *text);
/* Returns the bytes written. */
uint32_t tn_failure_write(const tn_wire_failure *failure, unsigned char to[TN_FAILURE_BYTES]);
bool tn_failure_read(const unsigned char *from, uint32_t bytes, tn_wire_failure *failure);

/* Where a rank was when the run failed (core/exec/flight_recorder.h). */
enum {
  TN_SUMMARY_CALLS = 64,
  TN_SUMMARY_WAITS = 5, /* kinds of waits, TN_FLIGHT_NOTHING ... */
  TN_SUMMARY_WHAT = 64,
  TN_SUMMARY_NAME = 48,
  TN_SUMMARY_PROGRAM = 16,
  TN_CALL_BYTES = 32 + TN_SUMMARY_NAME + TN_SUMMARY_PROGRAM,
  TN_SUMMARY_BYTES = 72 + TN_SUMMARY_WHAT + TN_SUMMARY_NAME + TN_SUMMARY_CALLS * TN_CALL_BYTES
};

/* The place of a rank's device. */
enum { TN_DEVICE_UNKNOWN = 0, TN_DEVICE_OUTSIDE = 1, TN_DEVICE_INSIDE = 2 };

/* A collective that the rank has begun. */
typedef struct tn_summary_call {
  uint64_t number;
  int64_t step, count;
  int32_t kind, dtype;
  char name[TN_SUMMARY_NAME], program[TN_SUMMARY_PROGRAM];
} tn_summary_call;

typedef struct tn_rank_summary {
  int32_t rank, wait; /* wait: TN_FLIGHT_... */
  uint64_t begun, ended, exchanges;
  int64_t step, waited_ms;
  char what[TN_SUMMARY_WHAT]; /* of the wait; "" */
  int32_t device;             /* TN_DEVICE_... */
  uint64_t inside;            /* number of the collective that the device is in; 0: unknown */
  char inside_name[TN_SUMMARY_NAME];
  int32_t n_calls; /* those that did not end, the oldest first, and the last ones: in the order of numbers */
  tn_summary_call calls[TN_SUMMARY_CALLS];
} tn_rank_summary;

void tn_summary_write(const tn_rank_summary *summary, unsigned char to[TN_SUMMARY_BYTES]);
/* False: numbers out of their range. */
bool tn_summary_read(const unsigned char from[TN_SUMMARY_BYTES], tn_rank_summary *summary);

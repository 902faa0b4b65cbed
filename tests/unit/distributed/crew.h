/* tests/unit/distributed/crew.h: forked processes that form a run on this host. The test's own
 * process starts no thread, so that fork is safe; it judges the others by their exit codes. */
#pragma once

/* cmocka.h needs these before itself */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sys/types.h>

#include "core/distributed/link/link.h"
#include "tests/support/await.h"
#include "tests/support/test_clock.h"

enum { CREW_MOST = 16, CREW_NOTES = 64 };
/* A limit that is longer than any test takes. */
enum { CREW_LIMIT_S = 600 };

/* The processes of a test. */
typedef struct crew {
  int32_t n;
  int32_t ranks[CREW_MOST]; /* of each process */
  double timeout_s;         /* longer than any test takes, unless a test sets it */
  int32_t port; /* the first of TN_JOIN_PORTS that no other test has, as TN_JOIN_PORTS - 1 in front of it */
  int lock;     /* of the ports */
  char token[64];
  pid_t pids[CREW_MOST];
  /* numbers that all processes see, 0 at first: what a test needs to wait for, and what it measures */
  _Atomic(int64_t) *notes;
  atomic_int *taken; /* of each process: process 0 has taken it */
} crew;

/* One of them, in its own process. */
typedef struct member {
  crew *crew;
  tn_env env;
  tn_error_record record;
  _Atomic(int64_t) blocks; /* of memory in use */
  tn_process_place place;
  tn_join_request request;
  tn_link *link;
  /* what the listener of the link was told; under the lock */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  tn_wire_failure failure;
  int32_t failures, stops;
} member;

/* A crew of n processes with a rank each, a token of its own, and ports of its own. */
crew crew_new(int32_t n);
/* Starts a process. It runs `body`, and fails if memory or descriptors leak. */
void crew_start(crew *c, int32_t process, void (*body)(member *m));
void crew_start_all(crew *c, void (*body)(member *m));
/* The process ends with success; or by a signal. */
void crew_expect_end(crew *c, int32_t process);
void crew_expect_killed(crew *c, int32_t process, int signal);
void crew_end(crew *c);
/* Moves the clock, which is held, step by step until the process has ended with success. */
void crew_pass_until_end(crew *c, int32_t process, double step_s);
/* Returns when the process is stopped. */
void crew_stop(crew *c, int32_t process);
/* All of these: starts all, and expects success. */
void crew_run(crew *c, void (*body)(member *m));

/* ---- in a process of a crew ---- */

/* Opens the link, which succeeds; listens to it. */
void member_open(member *m);
/* ... or fails with a message that has a part. */
void member_open_fails(member *m, tn_status want, const char *part);
void member_listen(member *m);
void member_close(member *m, int in_order);
/* Returns when the listener was told of `n` failures in all. */
void member_await_failures(member *m, int32_t n);
void member_await_stop(member *m);

/* ---- anywhere ---- */

/* Ends the process with a message and failure. */
void crew_expect_(int holds, const char *what, const char *file, int line);
#define EXPECT(condition) crew_expect_((condition) != 0, #condition, __FILE__, __LINE__)
void crew_expect_text_(const char *text, const char *part, const char *file, int line);
#define EXPECT_TEXT(text, part) crew_expect_text_((text), (part), __FILE__, __LINE__)

/* A socket that listens on a port of the loopback device, or -1. */
int crew_listen_on(int32_t port);
/* A connection to the first port of the crew that has a listener. */
int crew_connect(const crew *c);
void crew_send(int socket, const void *bytes, size_t n);
void crew_receive(int socket, void *bytes, size_t n);
/* The other end has closed the connection without a word. */
void crew_expect_closed(int socket);

/* The first steps of the two sides, with any token. The key is that of the connection; false: the other end
 * has no right proof. */
bool crew_greet(int socket, const char *token, unsigned char key[TN_KEY_BYTES]);
bool crew_answer(int socket, const char *token, unsigned char key[TN_KEY_BYTES]);
/* A whole frame with at most TN_JOIN_BODY bytes; false: the other end has closed, or has not sent it. */
bool crew_frame(int socket, tn_seal *in, tn_frame_head *head,
                unsigned char body[TN_JOIN_BODY + TN_TAG_BYTES]);
/* A hello of a member with its proof, under another number. */
enum { CREW_HELLO = TN_HELLO_BYTES + TN_PROOF_BYTES };
void crew_hello(const member *m, const unsigned char key[TN_KEY_BYTES], int32_t process,
                unsigned char bytes[CREW_HELLO]);

void crew_note(crew *c, int i, int64_t value);
/* Returns when the note is at least `value`. */
void crew_await_note(crew *c, int i, int64_t value);
/* Returns when process 0 has taken the process. */
void crew_await_taken(crew *c, int32_t process);
/* Process 0 waits for others. Returns when it has looked for them twice. */
void crew_await_looks(const crew *c);
int crew_descriptors(void);

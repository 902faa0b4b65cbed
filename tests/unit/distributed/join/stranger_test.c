/* Processes that do not belong to a job: they listen on its ports, come as another user or with another
 * version, or stand between two processes and change what these send. */
#include "tests/unit/distributed/crew.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/system/system.h"
#include "core/distributed/wire/socket.h"

/* ---- proofs ---- */

static void a_proof_is_of_one_token_connection_role_and_text(void **state) {
  (void)state;
  unsigned char a[TN_NONCE_BYTES] = "a", b[TN_NONCE_BYTES] = "b", key[TN_KEY_BYTES], other[TN_KEY_BYTES],
                proof[TN_PROOF_BYTES];
  tn_proof_key("token", a, b, key);
  tn_proof_make(key, TN_JOIN_CALLER, "text", 4, proof);
  assert_true(tn_proof_check(key, TN_JOIN_CALLER, "text", 4, proof));
  assert_false(tn_proof_check(key, TN_JOIN_CALLER, "texT", 4, proof));
  assert_false(tn_proof_check(key, TN_JOIN_LISTENER, "text", 4, proof));
  tn_proof_key("Token", a, b, other);
  assert_false(tn_proof_check(other, TN_JOIN_CALLER, "text", 4, proof));
  tn_proof_key("token", b, a, other);
  assert_false(tn_proof_check(other, TN_JOIN_CALLER, "text", 4, proof));
  for (int bit = 0; bit < 8 * TN_PROOF_BYTES; bit++) {
    proof[bit / 8] ^= (unsigned char)(1 << bit % 8);
    assert_false(tn_proof_check(key, TN_JOIN_CALLER, "text", 4, proof));
    proof[bit / 8] ^= (unsigned char)(1 << bit % 8);
  }
}

/* Keyed BLAKE2b, as Python's hashlib.blake2b computes it. */
static void a_proof_has_the_bytes_of_blake2b(void **state) {
  (void)state;
  static const unsigned char want[] = {0xd2, 0x74, 0xc7, 0x8f, 0xc4, 0xc1, 0x48, 0x9e, 0x1c, 0xec, 0x1b,
                                       0xd4, 0x41, 0xc5, 0x71, 0x17, 0xac, 0x77, 0x80, 0x81, 0x33, 0x86,
                                       0xb6, 0x48, 0x00, 0x5f, 0x9a, 0x90, 0xf2, 0x47, 0x83, 0x65};
  unsigned char a[TN_NONCE_BYTES] = "a", b[TN_NONCE_BYTES] = "b", key[TN_KEY_BYTES], proof[TN_PROOF_BYTES];
  tn_proof_key("token", a, b, key);
  tn_proof_make(key, TN_JOIN_CALLER, "text", 4, proof);
  assert_memory_equal(proof, want, sizeof want);
}

static void a_seal_is_of_one_direction_and_place(void **state) {
  (void)state;
  unsigned char key[TN_KEY_BYTES] = "key", first[TN_TAG_BYTES], second[TN_TAG_BYTES];
  tn_seals here = tn_seals_new(key, true), there = tn_seals_new(key, false);
  tn_seal_make(&here.out, "one", 3, first);
  tn_seal_make(&here.out, "two", 3, second);
  assert_false(tn_seal_check(&there.in, "two", 3, second)); /* left out */
  assert_false(tn_seal_check(&there.in, "onE", 3, first));
  assert_false(tn_seal_check(&here.in, "one", 3, first)); /* sent back */
  assert_true(tn_seal_check(&there.in, "one", 3, first));
  assert_false(tn_seal_check(&there.in, "one", 3, first)); /* again */
  assert_true(tn_seal_check(&there.in, "two", 3, second));
  tn_seal_make(&there.out, "", 0, first);
  assert_true(tn_seal_check(&here.in, "", 0, first));
}

/* ---- listeners on the ports of a job ---- */

enum { TAKEN = 5 }; /* ports */

/* Answers with a greeting and a proof without the token, or sends the own greeting back. */
static void answer_wrongly(int s, const unsigned char greeting[TN_GREETING_BYTES], int how) {
  unsigned char answer[TN_ANSWER_BYTES] = {0};
  tn_greeting own = {.protocol = TN_PROTOCOL + (how == 1)};
  if (how == 0) memcpy(answer, greeting, TN_GREETING_BYTES);
  if (how > 0) tn_greeting_write(&own, answer);
  if (how < 4) tn_socket_send(s, answer, how == 3 ? sizeof answer - 1 : sizeof answer, tn_clock_s());
}

/* Everything that comes is a greeting with a nonce of its own: the token is not in it, and nothing follows.
 */
static void take_greetings(member *m) {
  unsigned char bytes[1024], before[TN_GREETING_BYTES] = {0};
  int listens[TAKEN], held[256], n_held = 0;
  for (int i = 0; i < TAKEN; i++) EXPECT((listens[i] = crew_listen_on(m->crew->port + i)) >= 0);
  crew_note(m->crew, 0, 1);
  while (atomic_load(&m->crew->notes[1]) < 2) {
    struct pollfd polls[TAKEN];
    for (int i = 0; i < TAKEN; i++) polls[i] = (struct pollfd){.fd = listens[i], .events = POLLIN};
    poll(polls, TAKEN, 20);
    for (int i = 0; i < TAKEN && n_held < 256; i++) {
      if (polls[i].revents == 0) continue;
      int s = held[n_held++] = accept(listens[i], NULL, NULL);
      if (!tn_socket_receive(s, bytes, TN_GREETING_BYTES, tn_clock_s() + CREW_LIMIT_S)) continue;
      EXPECT(memcmp(bytes, before, sizeof before) != 0);
      memcpy(before, bytes, sizeof before);
      answer_wrongly(s, bytes, i);
      EXPECT(recv(s, bytes, sizeof bytes, MSG_DONTWAIT) <= 0);
      atomic_fetch_add(&m->crew->notes[2], 1);
    }
  }
  for (int i = 0; i < n_held; i++) {
    EXPECT(recv(held[i], bytes, sizeof bytes, MSG_DONTWAIT) <= 0);
    close(held[i]);
  }
  for (int i = 0; i < TAKEN; i++) close(listens[i]);
}

static void join_beside_listeners(member *m) {
  if (m->place.process == 2) {
    take_greetings(m);
    return;
  }
  m->place.processes = m->place.locals = 2;
  crew_await_note(m->crew, 0, 1);
  if (m->place.process == 0) crew_await_note(m->crew, 2, TAKEN); /* the listeners come first */
  member_open(m);
  atomic_fetch_add(&m->crew->notes[1], 1);
  member_close(m, 1);
}

/* The processes join although the time for the answer of a listener never ends. */
static void listeners_on_the_ports_learn_nothing(void **state) {
  (void)state;
  crew c = crew_new(3);
  test_clock_hold();
  crew_start_all(&c, join_beside_listeners);
  for (int32_t i = 0; i < 3; i++) crew_expect_end(&c, i);
  assert_true(c.notes[2] >= TAKEN);
  crew_end(&c);
  test_clock_run();
}

/* A process 0 of another version, or of another job, alone. The time of process 1 ends when it has judged the
 * answer, and has closed the connection for that. */
static void meet_another_process_0(member *m) {
  if (m->place.process == 1) {
    crew_await_note(m->crew, 0, 1);
    member_open_fails(m, TN_ECOMM,
                      m->crew->notes[1] == 1
                          ? "one of them has another version of the protocol: install the same Tenon"
                          : "one of them does not prove that it knows the token of this job");
    crew_note(m->crew, 0, 2);
    return;
  }
  unsigned char bytes[TN_GREETING_BYTES];
  int listens = crew_listen_on(m->crew->port);
  EXPECT(listens >= 0);
  crew_note(m->crew, 0, 1);
  while (atomic_load(&m->crew->notes[0]) < 2) {
    struct pollfd p = {.fd = listens, .events = POLLIN};
    if (poll(&p, 1, 20) <= 0) continue;
    int s = accept(listens, NULL, NULL);
    if (tn_socket_receive(s, bytes, sizeof bytes, tn_clock_s() + CREW_LIMIT_S))
      answer_wrongly(s, bytes, (int)m->crew->notes[1]);
    crew_expect_closed(s);
    test_clock_pass(1);
  }
  close(listens);
}

static void another_process_0_is_named(void **state) {
  (void)state;
  for (int how = 1; how <= 2; how++) {
    crew c = crew_new(2);
    c.timeout_s = 0.5;
    crew_note(&c, 1, how);
    test_clock_hold();
    crew_run(&c, meet_another_process_0);
    test_clock_run();
  }
}

/* Version 1 sent 512 bytes with the token. */
static void come_with_version_1(member *m) {
  if (m->place.process == 0) {
    member_open_fails(m, TN_ECOMM, "of 2 processes, 1 did not come to process 0");
    EXPECT_TEXT(
        tn_error_text(&m->env),
        "; a process at 127.0.0.1 came with version 1 of the protocol, expected 2: install the same Tenon");
    return;
  }
  unsigned char hello[512] = {'T', 'H', 'L', 'O', 1}, bytes[TN_ANSWER_BYTES];
  tn_greeting theirs;
  int s = crew_connect(m->crew);
  crew_send(s, hello, sizeof hello);
  crew_receive(s, bytes, sizeof bytes);
  EXPECT(tn_greeting_read(bytes, &theirs) && theirs.protocol == TN_PROTOCOL);
  for (int i = TN_GREETING_BYTES; i < TN_ANSWER_BYTES; i++) EXPECT(bytes[i] == 0); /* no proof */
  crew_expect_closed(s);
  test_clock_pass(1.5); /* the time of process 0 */
}

static void an_old_version_is_named(void **state) {
  (void)state;
  crew c = crew_new(2);
  c.timeout_s = 1;
  test_clock_hold();
  crew_run(&c, come_with_version_1);
  test_clock_run();
}

/* ---- other users ---- */

enum { OTHER_USER = 65534 };

/* Listens on all ports but the last as another user, and is sent nothing. */
static void listen_as_another_user(member *m) {
  int listens[TN_JOIN_PORTS - 1];
  char byte;
  EXPECT(setresuid(OTHER_USER, OTHER_USER, OTHER_USER) == 0);
  for (int i = 0; i < TN_JOIN_PORTS - 1; i++) EXPECT((listens[i] = crew_listen_on(m->crew->port + i)) >= 0);
  crew_note(m->crew, 0, 1);
  crew_await_note(m->crew, 1, 2);
  for (int i = 0; i < TN_JOIN_PORTS - 1; i++) {
    int s = accept(listens[i], NULL, NULL);
    EXPECT(s >= 0 && recv(s, &byte, 1, 0) <= 0);
    close(s);
    close(listens[i]);
  }
}

static void join_beside_another_user(member *m) {
  if (m->place.process == 2) {
    listen_as_another_user(m);
    return;
  }
  m->place.processes = m->place.locals = 2;
  crew_await_note(m->crew, 0, 1);
  member_open(m);
  atomic_fetch_add(&m->crew->notes[1], 1);
  member_close(m, 1);
}

/* It knows the token and gets no answer. */
static void come_as_another_user(member *m) {
  if (m->place.process == 0) {
    member_open_fails(m, TN_ECOMM, "of 2 processes, 1 did not come to process 0");
    EXPECT_TEXT(tn_error_text(&m->env), "; a process of user 65534 came, expected the user of process 0, 0");
    return;
  }
  unsigned char bytes[TN_GREETING_BYTES];
  tn_greeting own = {.protocol = TN_PROTOCOL};
  EXPECT(setresuid(OTHER_USER, OTHER_USER, OTHER_USER) == 0);
  int s = crew_connect(m->crew);
  tn_greeting_write(&own, bytes);
  crew_send(s, bytes, sizeof bytes);
  crew_expect_closed(s);
  crew_note(m->crew, 0, 1);
  m->request.timeout_s = 0.5;
  member_open_fails(m, TN_ECOMM, "one of them listens and belongs to another user");
}

static void another_user_is_not_served(void **state) {
  (void)state;
  if (geteuid() != 0) {
    print_message("skipped: only root can become another user\n");
    skip();
  }
  crew c = crew_new(3);
  crew_run(&c, join_beside_another_user);
  c = crew_new(2);
  c.timeout_s = 1.5;
  test_clock_hold();
  crew_start_all(&c, come_as_another_user);
  crew_await_note(&c, 0, 1);
  for (int32_t i = 1; i >= 0; i--) crew_pass_until_end(&c, i, 0.2);
  crew_end(&c);
  test_clock_run();
}

/* ---- in the middle ---- */

/* Changes of the first TN_FRAME_RESULT that process 0 sends, or of the answer or the hello. */
enum {
  PASS,
  CHANGE_ANSWER,
  CHANGE_HELLO,
  CHANGE_KIND,
  CHANGE_LENGTH,
  CHANGE_TAG,
  CHANGE_BODY,
  REPEAT,
  LEAVE_OUT,
  PUT_IN,
  SEND_BACK,
  WAYS
};

enum { BODY = 1000 };

/* Passes bytes on until one side closes. */
static bool pass_some(int from, int to) {
  unsigned char bytes[65536];
  ssize_t n = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n > 0) return tn_socket_send(to, bytes, (size_t)n, tn_clock_s() + CREW_LIMIT_S);
  return n < 0;
}

/* A whole frame; false: the side has closed. */
static bool take_frame(int from, unsigned char *frame, tn_frame_head *head) {
  return tn_socket_receive(from, frame, TN_SEALED_HEAD, tn_clock_s() + CREW_LIMIT_S) &&
         tn_frame_head_read(frame, head) &&
         tn_socket_receive(from, frame + TN_SEALED_HEAD, tn_sealed_body(head->bytes),
                           tn_clock_s() + CREW_LIMIT_S);
}

static void give(int to, const unsigned char *frame, const tn_frame_head *head) {
  tn_socket_send(to, frame, TN_SEALED_HEAD + tn_sealed_body(head->bytes), tn_clock_s() + CREW_LIMIT_S);
}

/* A frame of process 1 goes back to it; the others go to process 0. */
static void send_back(int caller, int listener) {
  static unsigned char frame[TN_SEALED_HEAD + TN_FRAME_MOST + TN_TAG_BYTES];
  tn_frame_head head;
  if (!take_frame(caller, frame, &head)) return;
  give(caller, frame, &head);
  give(listener, frame, &head);
}

static void tamper(int64_t way, int to, unsigned char *frame, const tn_frame_head *head) {
  static const unsigned char forged[TN_SEALED_HEAD] = {'T', 'R', 'N', 'K', TN_FRAME_ALL_LEFT};
  if (way == CHANGE_KIND) frame[4] = TN_FRAME_BEAT;
  if (way == CHANGE_LENGTH) frame[16]++;
  if (way == CHANGE_TAG) frame[TN_SEALED_HEAD - 1] ^= 1;
  if (way == CHANGE_BODY) frame[TN_SEALED_HEAD + BODY / 2] ^= 1;
  if (way == PUT_IN) tn_socket_send(to, forged, sizeof forged, tn_clock_s() + CREW_LIMIT_S);
  if (way != LEAVE_OUT) give(to, frame, head);
  if (way == REPEAT) give(to, frame, head);
}

static void pass_frames(member *m, int caller, int listener) {
  static unsigned char frame[TN_SEALED_HEAD + TN_FRAME_MOST + TN_TAG_BYTES];
  int64_t way = m->crew->notes[1];
  bool open = true, done = way == CHANGE_ANSWER || way == CHANGE_HELLO || way == PASS;
  while (open) {
    struct pollfd polls[] = {{.fd = caller, .events = POLLIN}, {.fd = listener, .events = POLLIN}};
    tn_frame_head head;
    poll(polls, 2, -1);
    if (polls[0].revents != 0) open = pass_some(caller, listener);
    if (polls[1].revents == 0) continue;
    open = open && take_frame(listener, frame, &head);
    if (!open) break;
    if (done || head.kind != TN_FRAME_RESULT) {
      give(caller, frame, &head);
      continue;
    }
    if (way == SEND_BACK) send_back(caller, listener);
    if (way == SEND_BACK)
      give(caller, frame, &head);
    else
      tamper(way, caller, frame, &head);
    done = true;
  }
}

/* -1: process 0 has ended. */
static int connect_behind(const crew *c) {
  const char *reason;
  tn_socket_host *host = tn_socket_host_find("127.0.0.1", &reason);
  int s = -1;
  AWAIT((s = tn_socket_connect(host, c->port + 1, tn_clock_s() + CREW_LIMIT_S, NULL, &reason)) >= 0 ||
        atomic_load(&c->notes[2]) != 0);
  tn_socket_host_free(host);
  return s;
}

/* Passes so many bytes on, of which one may be changed. */
static bool pass_record(int from, int to, size_t n, bool changes) {
  unsigned char bytes[CREW_HELLO];
  if (!tn_socket_receive(from, bytes, n, tn_clock_s() + CREW_LIMIT_S)) return false;
  if (changes) bytes[20] ^= 1;
  return tn_socket_send(to, bytes, n, tn_clock_s() + CREW_LIMIT_S);
}

/* Stands on the first port; process 0 takes the next one, which is out of the range of process 1. */
static void stand_between(member *m, int listens) {
  int64_t way = m->crew->notes[1];
  int caller = accept(listens, NULL, NULL), listener = connect_behind(m->crew);
  EXPECT(caller >= 0);
  tn_socket_prepare(caller);
  if (listener >= 0 && pass_record(caller, listener, TN_GREETING_BYTES, false) &&
      pass_record(listener, caller, TN_ANSWER_BYTES, way == CHANGE_ANSWER) &&
      pass_record(caller, listener, CREW_HELLO, way == CHANGE_HELLO))
    pass_frames(m, caller, listener);
  close(caller);
  if (listener >= 0) close(listener);
}

/* Where they cannot join, the time of the two ends after the first connection. */
static void be_in_the_middle(member *m) {
  int64_t way = m->crew->notes[1];
  int listens = crew_listen_on(m->crew->port);
  EXPECT(listens >= 0);
  crew_note(m->crew, 0, 1);
  while (atomic_load(&m->crew->notes[2]) == 0) {
    struct pollfd p = {.fd = listens, .events = POLLIN};
    if (poll(&p, 1, 20) <= 0) continue;
    stand_between(m, listens);
    if (way == CHANGE_ANSWER || way == CHANGE_HELLO) test_clock_pass(1.5);
  }
  close(listens);
}

static void exchange(member *m) {
  unsigned char data[BODY], all[2] = {0};
  bool hub = m->place.process == 0;
  memset(data, hub ? 7 : 0, sizeof data);
  tn_status status = tn_link_broadcast(m->link, "numbers", data, sizeof data);
  if (status == TN_OK) status = tn_link_all_gather(m->link, "letters", hub ? "a" : "b", 1, all);
  bool right = status == TN_OK && data[BODY / 2] == 7 && memcmp(all, "ab", 2) == 0;
  if (m->crew->notes[1] == PASS) {
    EXPECT(right);
    return;
  }
  if (hub && right) return;
  EXPECT(status == TN_ECOMM);
  member_await_failures(m, 1);
  if (!hub) EXPECT_TEXT(m->failure.text, "its process sent bytes that are no frames of its own");
}

static void talk_through_the_middle(member *m) {
  int64_t way = m->crew->notes[1];
  if (m->place.process == 2) {
    be_in_the_middle(m);
    return;
  }
  m->place.processes = m->place.locals = 2;
  if (way == CHANGE_ANSWER || way == CHANGE_HELLO) m->request.timeout_s = 1;
  crew_await_note(m->crew, 0, 1);
  if (m->place.process == 1) m->place.port -= TN_JOIN_PORTS - 1;
  if (way == CHANGE_ANSWER || way == CHANGE_HELLO) {
    member_open_fails(m, TN_ECOMM,
                      m->place.process == 0  ? "of 2 processes, 1 did not come"
                      : way == CHANGE_ANSWER ? "one of them does not prove that it knows the token"
                                             : "one of them listens and does not answer");
  } else {
    member_open(m);
    exchange(m);
    member_close(m, way == PASS);
  }
  crew_note(m->crew, 2, 1);
}

static void nothing_is_changed_in_the_middle(void **state) {
  (void)state;
  for (int way = PASS; way < WAYS; way++) {
    print_message("way %d\n", way);
    crew c = crew_new(3);
    crew_note(&c, 1, way);
    if (way == CHANGE_ANSWER || way == CHANGE_HELLO) test_clock_hold();
    crew_run(&c, talk_through_the_middle);
    test_clock_run();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_proof_is_of_one_token_connection_role_and_text),
      cmocka_unit_test(a_proof_has_the_bytes_of_blake2b),
      cmocka_unit_test(a_seal_is_of_one_direction_and_place),
      cmocka_unit_test(listeners_on_the_ports_learn_nothing),
      cmocka_unit_test(another_process_0_is_named),
      cmocka_unit_test(an_old_version_is_named),
      cmocka_unit_test(another_user_is_not_served),
      cmocka_unit_test(nothing_is_changed_in_the_middle),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

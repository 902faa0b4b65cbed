/* How ranks find each other: missing ones, strangers, addresses and ports. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/tcp/socket.h"
#include "tests/unit/backends/tcp/rig.h"

/* ---- the system ---- */

static atomic_int no_descriptors, cut_bytes; /* cut_bytes: sends of so many bytes are cut in the middle */

int accept4(int listener, struct sockaddr *address, socklen_t *bytes, int flags) {
  errno = EMFILE;
  return atomic_load(&no_descriptors) ? -1 : (int)syscall(SYS_accept4, listener, address, bytes, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  size_t cut = (size_t)atomic_load(&cut_bytes);
  const struct iovec *last = &message->msg_iov[message->msg_iovlen - 1];
  if (cut == 0 || last->iov_len != cut) return syscall(SYS_sendmsg, fd, message, flags);
  struct iovec pieces[2];
  struct msghdr part = {.msg_iov = pieces, .msg_iovlen = message->msg_iovlen};
  memcpy(pieces, message->msg_iov, message->msg_iovlen * sizeof *pieces);
  pieces[message->msg_iovlen - 1].iov_len = cut / 2;
  return syscall(SYS_sendmsg, fd, &part, flags);
}

/* ---- all come ---- */

static void sum_one(rig_rank *r) {
  float value = (float)r->place.rank + 1;
  float n = (float)r->place.ranks;
  tn_collective c = rig_sum(&value, &value, 1);
  WANT_OK(r, rig_call(r, &c));
  WANT(r, value == n * (n + 1) / 2, "the sum is %g", value);
}

static void says(int32_t rank, const char *part) {
  if (strstr(rig[rank].text, part) == NULL)
    fail_msg("rank %d: '%s' does not say '%s'", (int)rank, rig[rank].text, part);
}

/* ---- missing ranks ---- */

static void a_rank_that_does_not_open_is_named_by_all(void **state) {
  (void)state;
  rig_start(4, RIG_LATE_S);
  rig[2].delay_ms = -1;
  rig_threads(NULL);
  for (int32_t i = 0; i < 4; i++)
    if (i != 2) says(i, "of 4 ranks, rank 2 did not come within 3 s");
}

static int32_t has_failed(const tn_comm_place *place) { return atomic_load((const atomic_int *)place->run); }

/* As when the process of a rank is killed while the others open: the host knows it, and `open` ends. */
static void ranks_of_a_run_that_has_failed_do_not_wait(void **state) {
  (void)state;
  static const atomic_int failed = 1;
  rig_start(4, RIG_FOR_EVER_S);
  rig[2].delay_ms = -1;
  for (int32_t i = 0; i < 4; i++) {
    rig[i].place.has_failed = has_failed;
    rig[i].place.run = &failed;
  }
  rig_threads(NULL);
  for (int32_t i = 0; i < 4; i++)
    if (i != 2) says(i, "the run has failed before all 4 ranks were connected");
}

static void several_that_do_not_open_are_named(void **state) {
  (void)state;
  rig_start(8, RIG_LATE_S);
  for (int32_t i = 2; i < 8; i++) rig[i].delay_ms = -1;
  rig_threads(NULL);
  says(0, "of 8 ranks, rank 2, rank 3, rank 4 and 3 more did not come within 3 s");
  says(1, "of 8 ranks, rank 2, rank 3, rank 4 and 3 more did not come within 3 s");
}

static void rank_0_that_does_not_answer_is_named(void **state) {
  (void)state;
  rig_start(2, RIG_LATE_S);
  rig[0].delay_ms = -1;
  rig_threads(NULL);
  says(1, "rank 0 (127.0.0.1:");
  says(1, "did not answer rank 1 within 3 s: the connection is there, but no reply");
  close(rig[0].identity.listener);
  rig_threads(NULL);
  says(1, "did not answer rank 1 within 3 s: Connection refused");
}

static void ranks_that_come_late_are_waited_for(void **state) {
  (void)state;
  rig_start(4, RIG_FOR_EVER_S);
  rig[0].delay_ms = 60;
  rig[3].delay_ms = 120;
  rig_threads(sum_one);
}

static void a_lack_of_descriptors_is_named(void **state) {
  (void)state;
  rig_start(2, 0.5); /* below the time in which rank 0 waits for a descriptor */
  atomic_store(&no_descriptors, 1);
  rig_threads(NULL);
  atomic_store(&no_descriptors, 0);
  says(0,
       "of 2 ranks, rank 1 did not come within 0.5 s: rank 0 cannot accept connections: Too many open files; "
       "see `ulimit -n`");
  /* long before the time is over, since no descriptor comes back */
  rig_start(2, RIG_FOR_EVER_S);
  rig[1].place.timeout_s = 1;
  atomic_store(&no_descriptors, 1);
  rig_threads(NULL);
  atomic_store(&no_descriptors, 0);
  says(0, "rank 0 has no descriptor for its connections with 2 ranks: Too many open files; see `ulimit -n`");
}

/* A socket may take a part of the table of addresses. */
static void a_table_may_be_sent_in_parts(void **state) {
  (void)state;
  rig_start(5, RIG_FOR_EVER_S); /* no other record has the size of this table */
  atomic_store(&cut_bytes, 5 * (int)sizeof(tn_tcp_row));
  rig_threads(sum_one);
  atomic_store(&cut_bytes, 0);
}

/* ---- ranks that do not agree ---- */

static void ranks_that_do_not_agree_are_named(void **state) {
  (void)state;
  rig_start(3, RIG_LATE_S);
  rig[2].place.ranks = 4;
  rig_threads(NULL);
  says(0, "is one of 4 ranks, but rank 0 one of 3");
  says(2, "is one of 4 ranks, but rank 0 one of 3");
  rig_start(3, RIG_LATE_S);
  rig[1].options.direct = 99;
  rig_threads(NULL);
  says(0, "[communicator.tcp] direct is 99 on rank 1 (127.0.0.1:");
  says(0, "but 16384 on rank 0");
  rig_start(3, RIG_LATE_S);
  rig[2].place.rank = 1;
  rig_threads(NULL);
  says(2, "two processes are rank 1");
  says(0, "two processes are rank 1: rank 1 (127.0.0.1:");
}

static void places_and_identities_that_cannot_be_are_refused(void **state) {
  (void)state;
  rig_start(2, RIG_FOR_EVER_S);
  rig[1].place.rank = 2;
  assert_int_equal(rig_open(&rig[1]), TN_EINVAL);
  says(1, "rank 2 of 2");
  rig[1].place.rank = 1;
  rig[1].place.ranks = 257;
  assert_int_equal(rig_open(&rig[1]), TN_EUNSUPPORTED);
  says(1, "257 ranks, expected at most 256");
  assert_int_equal(tn_tcp_communicator.suits(&rig[1].env, NULL, &rig[1].place), TN_EUNSUPPORTED);
  rig[1].place.ranks = 256;
  OK(tn_tcp_communicator.suits(&rig[1].env, NULL, &rig[1].place));
  rig[1].place.ranks = 2;
  rig[1].identity.version = 7;
  assert_int_equal(rig_open(&rig[1]), TN_EINVAL);
  says(1, "not one of this communicator's version");
  rig[1].identity = rig[0].identity;
  rig[1].options.direct = 1 << 20;
  assert_int_equal(rig_open(&rig[1]), TN_EINVAL);
  says(1, "direct = 1048576 bytes, expected at most those of buffer, 524288");
  rig[1].options = rig_defaults;
  rig_threads(sum_one);
  assert_int_equal(rig_open(&rig[0]), TN_EINVAL);
  says(0, "a second time");
}

/* ---- strangers ---- */

static int stranger_connect(void) {
  struct sockaddr_storage to;
  socklen_t n = tn_tcp_address_to_socket(&rig[0].identity.address, &to);
  int fd = socket(to.ss_family, SOCK_STREAM, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&to, n) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

static void stranger_send(int fd, const void *bytes, size_t n) {
  if (fd >= 0 && send(fd, bytes, n, MSG_NOSIGNAL) < 0) return; /* closed already */
}

/* A greeting, and a hello that is right but for its proof. */
typedef struct stranger_words {
  tn_tcp_greeting greeting;
  tn_tcp_hello hello;
} stranger_words;

static stranger_words stranger_speak(void) {
  stranger_words w = {
      .greeting = {.version = TN_TCP_VERSION},
      .hello = {.version = TN_TCP_VERSION, .rank = 1, .ranks = 3, .address = rig[0].identity.address}};
  tn_tcp_mark(w.greeting.magic);
  tn_tcp_mark(w.hello.magic);
  return w;
}

/* Silence, halves of a greeting, a hello with a wrong proof, and noise, over and over. */
static void strangers_come(int times) {
  char noise[10000];
  int held[200];
  const stranger_words words = stranger_speak();
  for (size_t i = 0; i < sizeof noise; i++) noise[i] = (char)(i * 7919 >> 3);
  for (int i = 0; i < times; i++) {
    int fd = held[i % 200] =
        i < 200 || held[i % 200] < 0 ? stranger_connect() : (close(held[i % 200]), stranger_connect());
    if (i % 4 == 1) stranger_send(fd, &words, sizeof words.greeting / 2);
    if (i % 4 == 2) stranger_send(fd, &words, sizeof words);
    if (i % 4 == 3) stranger_send(fd, noise, sizeof noise);
    if (i == 20) atomic_store(&rig[0].stage, 1);
  }
  rig_await_stage(0, 9); /* to be killed */
}

static pid_t strangers_start(int times) {
  pid_t strangers = fork();
  if (strangers != 0) return strangers;
  strangers_come(times);
  _exit(0);
}

static void strangers_do_no_harm(void **state) {
  (void)state;
  rig_start(3, RIG_FOR_EVER_S);
  rig[1].delay_ms = 60;
  rig[2].delay_ms = 120;
  pid_t strangers = strangers_start(1000);
  rig_threads(sum_one);
  kill(strangers, SIGKILL);
  waitpid(strangers, NULL, 0);
}

/* The listener is there before rank 0 opens, with strangers in front of all ranks. */
static void strangers_that_are_there_first_do_no_harm(void **state) {
  (void)state;
  rig_start(3, RIG_FOR_EVER_S);
  rig[0].delay_ms = 100;
  rig[2].delay_ms = 50;
  pid_t strangers = strangers_start(300);
  rig_await_stage(0, 1);
  rig_threads(sum_one);
  kill(strangers, SIGKILL);
  waitpid(strangers, NULL, 0);
}

/* The most that comes before is an answer to the greeting. */
static bool stranger_is_closed(int fd, size_t answer) {
  tn_tcp_answer bytes;
  size_t came = 0;
  ssize_t got;
  while ((got = recv(fd, &bytes, sizeof bytes, 0)) > 0) came += (size_t)got;
  close(fd);
  return came == answer;
}

static void a_stranger_is_told_nothing_and_closed(void **state) {
  (void)state;
  rig_start(2, RIG_FOR_EVER_S);
  rig[1].opens_at = 1; /* when all strangers are closed */
  pid_t strangers = fork();
  if (strangers == 0) {
    const stranger_words words = stranger_speak();
    int wrong = stranger_connect(), half = stranger_connect(), silent = stranger_connect();
    stranger_send(wrong, &words, sizeof words);
    stranger_send(half, &words, sizeof words - 1);
    bool closed = stranger_is_closed(wrong, sizeof(tn_tcp_answer)) &&
                  stranger_is_closed(half, sizeof(tn_tcp_answer)) && stranger_is_closed(silent, 0);
    atomic_store(&rig[1].stage, 1);
    _exit(!closed);
  }
  rig_threads(sum_one);
  int status = -1;
  waitpid(strangers, &status, 0);
  assert_int_equal(status, 0);
}

static void a_rank_without_the_token_is_not_taken(void **state) {
  (void)state;
  rig_start(2, RIG_LATE_S);
  rig[1].place.job = "another token";
  rig_threads(NULL);
  says(0, "of 2 ranks, rank 1 did not come within 3 s");
  says(1, "did not answer rank 1 within 3 s: it does not prove that it belongs to this run");
  rig[1].place.job = rig_token;
  rig[1].place.prove = NULL;
  assert_int_equal(rig_open(&rig[1]), TN_EINVAL);
  says(1, "the place has no function `prove`");
}

/* ---- in the middle ---- */

/* Listens where rank 1 looks for rank 0, and passes all on. The byte at `place` of those that rank 0 sends on
 * a first connection, or of those that rank 1 sends, is changed. */
static void middle_relay(int listener, bool of_rank_0, size_t place) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  bool done = false;
  int ends[16][2], n = 0;
  size_t moved[16] = {0};
  for (;;) {
    struct pollfd polls[1 + 32] = {{.fd = listener, .events = POLLIN}};
    for (int i = 0; i < n; i++)
      for (int side = 0; side < 2; side++)
        polls[1 + 2 * i + side] = (struct pollfd){.fd = ends[i][side], .events = POLLIN};
    poll(polls, 1 + 2 * (nfds_t)n, -1);
    for (int i = 0; i < n; i++)
      for (int side = 0; side < 2; side++) {
        char bytes[4096];
        if (polls[1 + 2 * i + side].revents == 0) continue;
        ssize_t got = recv(ends[i][side], bytes, sizeof bytes, MSG_DONTWAIT);
        bool counts = i == 0 && (side == 1) == of_rank_0 && got > 0;
        if (counts && !done && moved[i] + (size_t)got > place) bytes[place - moved[i]] ^= 1, done = true;
        if (counts) moved[i] += (size_t)got;
        if (got > 0) stranger_send(ends[i][1 - side], bytes, (size_t)got);
        if (got > 0) continue;
        for (int s = 0; s < 2; s++) close(ends[i][s]), ends[i][s] = -1;
      }
    if (polls[0].revents == 0 || n == 16) continue;
    ends[n][0] = accept(listener, NULL, NULL);
    ends[n++][1] = stranger_connect();
  }
}

/* A changed byte costs the connection, and the rank comes again. */
static void bytes_that_are_changed_on_the_way_are_refused(void **state) {
  (void)state;
  enum { ANSWER = sizeof(tn_tcp_answer), REPLY = sizeof(tn_tcp_reply) };
  static const struct {
    bool of_rank_0;
    size_t place;
  } ways[] = {{true, 20},
              {true, ANSWER - 1},
              {true, ANSWER + 100},
              {true, ANSWER + REPLY - 1},
              {true, ANSWER + REPLY + sizeof(tn_tcp_row) + 4},
              {false, 20},
              {false, sizeof(tn_tcp_greeting) + 60}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    rig_start(2, RIG_FOR_EVER_S);
    int middle = -1;
    tn_tcp_address own = rig[0].identity.address;
    own.port = 0;
    OK(tn_tcp_listen(&rig[0].env, &own, 0, 0, &middle));
    pid_t relay = fork();
    if (relay == 0) middle_relay(middle, ways[i].of_rank_0, ways[i].place);
    close(middle);
    rig[1].identity.address = own;
    rig_threads(sum_one);
    kill(relay, SIGKILL);
    waitpid(relay, NULL, 0);
  }
}

/* ---- addresses and ports ---- */

static tn_status identify_with(const char *given, const char *address, const char *ports) {
  rig[0].place.address = given;
  rig[0].options.address = address;
  rig[0].options.ports = ports;
  rig[0].text[0] = '\0';
  return tn_tcp_communicator.identify(&rig[0].env, &rig[0].options, &rig[0].place, &rig[0].identity);
}

static void refuses(const char *given, const char *address, const char *ports, const char *part) {
  if (identify_with(given, address, ports) == TN_OK)
    fail_msg("address %s, option address = %s, ports = %s: accepted", given, address, ports);
  says(0, part);
}

static void addresses_and_ports_that_cannot_be_are_refused(void **state) {
  (void)state;
  rig_start(2, RIG_FOR_EVER_S);
  close(rig[0].identity.listener);
  refuses("host.example", "", "", "is 'host.example', expected digits of IPv4 or IPv6");
  refuses("198.51.100.1", "", "",
          "cannot listen at 198.51.100.1:0: Cannot assign requested address; expected an address");
  refuses("", "10.0.0.0/33", "", "address = 10.0.0.0/33, expected an address of this host, a network");
  refuses("", "ten/8", "", "address = ten/8, expected an address of this host, a network");
  refuses("", "198.51.100.0/24", "",
          "address = 198.51.100.0/24 fits no address of this host, which has lo 127.0.0.1");
  refuses("", "none7", "", "address = none7 fits no address of this host");
  refuses("", "", "many", "ports = many, expected ports from 1 to 65535, such as 40000-40100");
  refuses("", "", "0", "ports = 0, expected");
  refuses("", "", "5-3", "ports = 5-3, expected");
  refuses("", "", "1-65536", "ports = 1-65536, expected");
  refuses("", "", "4000-", "ports = 4000-, expected");
}

static void the_address_is_found_by_network_and_interface(void **state) {
  (void)state;
  static const char *const wanted[] = {"127.0.0.1", "127.0.0.0/8", "lo", "127.0.0.0/9"};
  rig_start(2, RIG_FOR_EVER_S);
  close(rig[0].identity.listener);
  for (int i = 0; i < 4; i++) {
    char text[TN_TCP_ADDRESS_TEXT];
    OK(identify_with("198.51.100.1", wanted[i], ""));
    assert_ptr_equal(strstr(tn_tcp_address_text(&rig[0].identity.address, text), "127.0.0.1:"), text);
    close(rig[0].identity.listener);
  }
}

static void ports_of_a_range_are_taken_until_there_is_none(void **state) {
  (void)state;
  char range[32];
  rig_start(2, RIG_FOR_EVER_S); /* its port is taken */
  int taken = rig[0].identity.address.port, listener = rig[0].identity.listener;
  snprintf(range, sizeof range, "%d", taken);
  refuses("", "", range, ": none of them is free at 127.0.0.1:");
  snprintf(range, sizeof range, "%d-%d", taken, taken + 50 < 65536 ? taken + 50 : 65535);
  OK(identify_with("", "", range));
  assert_in_range(rig[0].identity.address.port, taken + 1, taken + 50);
  close(listener);
  for (int32_t i = 0; i < 2; i++) rig[i].options.ports = range;
  rig[1].identity = rig[0].identity;
  rig_threads(sum_one);
}

static void ranks_of_ipv6(void **state) {
  (void)state;
  rig_start(3, RIG_FOR_EVER_S);
  close(rig[0].identity.listener);
  if (identify_with("::1", "", "") != TN_OK) {
    print_message("skipped: this host has no IPv6: %s\n", rig[0].text);
    skip();
  }
  for (int32_t i = 1; i < 3; i++) {
    rig[i].place.address = "::1";
    rig[i].identity = rig[0].identity;
  }
  rig_processes(sum_one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_rank_that_does_not_open_is_named_by_all),
      cmocka_unit_test(ranks_of_a_run_that_has_failed_do_not_wait),
      cmocka_unit_test(several_that_do_not_open_are_named),
      cmocka_unit_test(rank_0_that_does_not_answer_is_named),
      cmocka_unit_test(ranks_that_come_late_are_waited_for),
      cmocka_unit_test(a_lack_of_descriptors_is_named),
      cmocka_unit_test(a_table_may_be_sent_in_parts),
      cmocka_unit_test(ranks_that_do_not_agree_are_named),
      cmocka_unit_test(places_and_identities_that_cannot_be_are_refused),
      cmocka_unit_test(strangers_do_no_harm),
      cmocka_unit_test(strangers_that_are_there_first_do_no_harm),
      cmocka_unit_test(a_stranger_is_told_nothing_and_closed),
      cmocka_unit_test(a_rank_without_the_token_is_not_taken),
      cmocka_unit_test(bytes_that_are_changed_on_the_way_are_refused),
      cmocka_unit_test(addresses_and_ports_that_cannot_be_are_refused),
      cmocka_unit_test(the_address_is_found_by_network_and_interface),
      cmocka_unit_test(ports_of_a_range_are_taken_until_there_is_none),
      cmocka_unit_test(ranks_of_ipv6),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

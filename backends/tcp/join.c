/* backends/tcp/join.c: the ranks of a run find each other. Each rank listens. All but rank 0 connect to rank
 * 0 and greet it; when it has proved that it belongs to the run, they send a hello with their own proof, and
 * when all have come, rank 0 sends them the table of addresses. Then each rank connects to those of lower
 * number in the same way, so that each pair has its two connections (wire.h).
 *
 * Strangers. A connection without a valid hello is a guest: at most TN_TCP_GUESTS are kept, each for
 * TN_TCP_GUEST_S seconds, and the oldest makes room for a new one. A rank whose connection is closed so tries
 * again. Greetings and hellos have fixed sizes, and a guest with a wrong one is closed without a reply. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "backends/tcp/guest.h"
#include "backends/tcp/socket.h"
#include "backends/tcp/tcp.h"

enum { JOIN_ACCEPTS = 256 };
/* The pause before a connection is tried again, and the longest wait in poll. */
#define JOIN_RETRY_S   0.02
#define JOIN_POLL_MS   100
#define JOIN_FULL_S    1.0 /* after so long without a descriptor the rank gives up */
#define JOIN_VERDICT_S 1.0 /* so much longer the others wait, for the message of rank 0 */

/* States of a connection to another rank. */
enum {
  JOIN_AWAITED,    /* the other rank, of higher number, makes it */
  JOIN_LATER,      /* this rank makes it when it has the table */
  JOIN_DUE,        /* ... and at `due_s` */
  JOIN_CONNECTING, /* ... and waits for the system */
  JOIN_GREETED,    /* the greeting has been sent */
  JOIN_ASKED,      /* the answer was right, and the hello has been sent */
  JOIN_TABLE,      /* the reply has come, and the table follows */
  JOIN_REGISTERED, /* on rank 0: the hello has come, and the table is owed */
  JOIN_SENDING,    /* ... of which the socket has taken `done` bytes with the reply in front of it */
  JOIN_OPEN
};

typedef struct join_link {
  int32_t state;
  int fd, error; /* errno of the last trial; 0: closed by the other side */
  double due_s;
  size_t done; /* bytes of the answer, the reply or the table */
  tn_tcp_nonces nonces;
  tn_tcp_answer answer;
  tn_tcp_reply reply;
} join_link;

typedef struct join {
  tn_tcp *t;
  const tn_tcp_identity *id;
  const tn_comm_place *place;
  tn_tcp_prover prover; /* of both */
  int listener, error;  /* error: errno of the last connection that could not be accepted; 0: none */
  double full_s; /* since when there is no descriptor for a connection, and no guest has one; 0: there are
                    some */
  double begun_s, limit_s;
  tn_tcp_hello hello; /* that this rank sends; the lane is set for each */
  tn_tcp_row rows[TN_TCP_RANKS];
  uint64_t instances[TN_TCP_RANKS]; /* of the ranks that have sent a hello; 0: none */
  join_link links[TN_TCP_RANKS][TN_TCP_LANES];
  tn_tcp_guest guests[TN_TCP_GUESTS];
  struct pollfd polled[TN_TCP_RANKS * TN_TCP_LANES + TN_TCP_GUESTS + 1];
  int32_t owners[TN_TCP_RANKS * TN_TCP_LANES + TN_TCP_GUESTS + 1]; /* the link, guest or listener of each */
  int32_t n_polled;
} join;

/* ---- failure ---- */

static const char *join_rank_text(const join *j, int32_t rank, char text[TN_TCP_RANK_TEXT]) {
  char address[TN_TCP_ADDRESS_TEXT];
  const tn_tcp_address *a = rank == 0 ? &j->id->address : &j->rows[rank].address;
  snprintf(text, TN_TCP_RANK_TEXT, a->family != 0 ? "rank %d (%s)" : "rank %d", (int)rank,
           tn_tcp_address_text(a, address));
  return text;
}

/* Tells another rank of the failure, which it cannot know itself. */
static void join_refuse(const join *j, int fd, const tn_tcp_nonces *nonces) {
  const tn_tcp_reply reply = tn_tcp_reply_make(&j->prover, nonces, TN_TCP_REFUSED, j->t->failure.text, NULL);
  tn_tcp_send_record(fd, &reply, sizeof reply);
}

static void join_refuse_all(const join *j) {
  for (int32_t r = 0; r < j->t->ranks; r++) {
    const join_link *link = &j->links[r][TN_TCP_NOTES];
    if (link->state == JOIN_REGISTERED) join_refuse(j, link->fd, &link->nonces);
  }
}

static bool join_is_missing(const join *j, int32_t rank, bool registering) {
  if (rank == j->t->rank) return false;
  int32_t notes = j->links[rank][TN_TCP_NOTES].state, elements = j->links[rank][TN_TCP_ELEMENTS].state;
  return registering ? notes == JOIN_AWAITED : notes != JOIN_OPEN || elements != JOIN_OPEN;
}

/* "rank 2, rank 5 and 3 more" */
static void join_list_missing(const join *j, char *text, size_t size) {
  bool registering = false;
  int32_t n = 0;
  size_t at = 0;
  for (int32_t r = 0; r < j->t->ranks; r++)
    registering |= j->t->rank == 0 && j->links[r][TN_TCP_NOTES].state == JOIN_REGISTERED;
  text[0] = '\0';
  for (int32_t r = 0; r < j->t->ranks; r++) {
    char who[TN_TCP_RANK_TEXT];
    if (!join_is_missing(j, r, registering) || ++n > 3) continue;
    at += (size_t)snprintf(text + at, size - at, "%s%s", n > 1 ? ", " : "", join_rank_text(j, r, who));
  }
  if (n > 3) snprintf(text + at, size - at, " and %d more", (int)n - 3);
}

/* Why a connection that this rank makes is not there. */
static const char *join_reason(const join_link *link) {
  if (link->state == JOIN_CONNECTING)
    return "its host does not answer; see its firewall, and [communicator.tcp] ports";
  if (link->state >= JOIN_GREETED && link->state <= JOIN_TABLE)
    return "the connection is there, but no reply";
  if (link->error == EPROTO) return "it does not prove that it belongs to this run";
  return link->error != 0 ? strerror(link->error) : "it has closed the connection";
}

/* The first of the connections that this rank makes, and that is not there. */
static const join_link *join_find_unanswered(const join *j, int32_t *rank) {
  for (int32_t r = 0; r < j->t->rank; r++)
    for (int32_t lane = 0; lane < TN_TCP_LANES; lane++)
      if (j->links[r][lane].state != JOIN_OPEN) return *rank = r, &j->links[r][lane];
  return NULL;
}

static void join_fail_late(join *j) {
  char who[TN_TCP_RANK_TEXT], missing[4 * TN_TCP_RANK_TEXT];
  int32_t rank = 0;
  const join_link *link = join_find_unanswered(j, &rank);
  if (link != NULL) {
    tn_tcp_fail(j->t, "%s did not answer rank %d within %g s: %s", join_rank_text(j, rank, who),
                (int)j->t->rank, j->t->timeout_s, join_reason(link));
    return;
  }
  join_list_missing(j, missing, sizeof missing);
  if (j->error != 0)
    tn_tcp_fail(j->t,
                "of %d ranks, %s did not come within %g s: rank %d cannot accept connections: %s; see "
                "`ulimit -n`",
                (int)j->t->ranks, missing, j->t->timeout_s, (int)j->t->rank, strerror(j->error));
  else
    tn_tcp_fail(j->t, "of %d ranks, %s did not come within %g s", (int)j->t->ranks, missing, j->t->timeout_s);
}

/* ---- guests ---- */

/* Two processes that claim one rank, and ranks that differ in what all must agree on. */
static bool join_check_hello(join *j, const tn_tcp_hello *h) {
  char who[TN_TCP_ADDRESS_TEXT], other[TN_TCP_RANK_TEXT];
  tn_tcp_address_text(&h->address, who);
  if (h->ranks != j->t->ranks)
    tn_tcp_fail(j->t, "rank %d (%s) is one of %d ranks, but rank %d one of %d", (int)h->rank, who,
                (int)h->ranks, (int)j->t->rank, (int)j->t->ranks);
  else if (h->direct != j->hello.direct)
    tn_tcp_fail(j->t, "[communicator.tcp] direct is %llu on rank %d (%s), but %llu on rank %d",
                (unsigned long long)h->direct, (int)h->rank, who, (unsigned long long)j->hello.direct,
                (int)j->t->rank);
  else if (j->instances[h->rank] != 0 && j->instances[h->rank] != h->instance)
    tn_tcp_fail(j->t, "two processes are rank %d: %s, and one at %s", (int)h->rank,
                join_rank_text(j, h->rank, other), who);
  else
    return true;
  return false;
}

static bool join_accept(const join *j, const join_link *link) {
  const tn_tcp_reply reply = tn_tcp_reply_make(&j->prover, &link->nonces, TN_TCP_ACCEPTED, "", NULL);
  return tn_tcp_send_record(link->fd, &reply, sizeof reply);
}

/* The guest is a rank of this run; its socket becomes that of the link. */
static void join_admit(join *j, tn_tcp_guest *g) {
  const tn_tcp_hello *h = &g->hello;
  if (!join_check_hello(j, h)) return join_refuse(j, g->fd, &g->nonces);
  join_link *link = &j->links[h->rank][h->lane];
  if (link->fd >= 0)
    tn_tcp_close(link->fd); /* the rank has connected again: it has given up its first connection */
  link->fd = g->fd;
  link->nonces = g->nonces;
  g->fd = -1;
  j->instances[h->rank] = h->instance;
  j->rows[h->rank] = (tn_tcp_row){h->address, h->process};
  bool registers = j->t->rank == 0 && h->lane == TN_TCP_NOTES;
  link->state = registers ? JOIN_REGISTERED : JOIN_OPEN;
  if (registers || join_accept(j, link)) return;
  tn_tcp_close(link->fd);
  link->fd = -1;
  link->state = JOIN_AWAITED;
}

static void join_fail_random(join *j, int error) {
  tn_tcp_fail(j->t, "rank %d gets no random bytes of the system: %s", (int)j->t->rank, strerror(error));
}

static void join_read_guest(join *j, tn_tcp_guest *g) {
  int error = 0;
  int32_t state = tn_tcp_guest_read(g, &j->prover, &error);
  if (error != 0) join_fail_random(j, error);
  if (state == TN_TCP_GUEST_WAITS) return;
  if (state == TN_TCP_GUEST_PROVED && g->hello.rank > j->t->rank) join_admit(j, g);
  tn_tcp_guest_drop(g);
}

static bool join_is_full(int error) { return error == EMFILE || error == ENFILE; }

/* Guests are dropped, and another thread may close a file; else no descriptor comes back before the end. */
static void join_note_full(join *j, int error) {
  double now = tn_monotonic_s();
  bool guests = false;
  for (int32_t i = 0; i < TN_TCP_GUESTS; i++) guests = guests || j->guests[i].fd >= 0;
  j->error = error;
  if (j->full_s == 0 || guests) j->full_s = now;
  if (now - j->full_s >= JOIN_FULL_S)
    tn_tcp_fail(j->t, "rank %d has no descriptor for its connections with %d ranks: %s; see `ulimit -n`",
                (int)j->t->rank, (int)j->t->ranks, strerror(error));
}

/* Where the process has no more descriptors, it waits for guests to be dropped. */
static void join_take_guests(join *j) {
  for (int32_t i = 0; i < JOIN_ACCEPTS; i++) {
    int fd = tn_tcp_accept(j->listener);
    bool full = fd < 0 && join_is_full(errno);
    if (full) join_note_full(j, errno);
    if (full) nanosleep(&(struct timespec){0, 10000000}, NULL);
    if (fd < 0) return;
    j->error = 0;
    j->full_s = 0;
    tn_tcp_tune(fd);
    join_read_guest(j, tn_tcp_guest_new(j->guests, fd));
  }
}

/* ---- connections that this rank makes ---- */

static void join_try_later(join_link *link, int error) {
  if (link->fd >= 0) tn_tcp_close(link->fd);
  link->fd = -1;
  if (link->error != EPROTO) link->error = error; /* a wrong proof says more than later errors */
  link->state = JOIN_DUE;
  link->due_s = tn_monotonic_s() + JOIN_RETRY_S;
}

static void join_connect(join *j, int32_t rank, int32_t lane) {
  join_link *link = &j->links[rank][lane];
  link->fd = tn_tcp_connect(rank == 0 ? &j->id->address : &j->rows[rank].address);
  link->state = JOIN_CONNECTING;
  if (link->fd < 0 && join_is_full(errno)) join_note_full(j, errno);
  if (link->fd < 0) join_try_later(link, errno);
}

static void join_greet(join *j, join_link *link) {
  tn_tcp_greeting greeting = {.version = TN_TCP_VERSION};
  int error = tn_tcp_connect_error(link->fd);
  if (error != 0) return join_try_later(link, error);
  if (!tn_tcp_nonce_draw(greeting.nonce)) return join_fail_random(j, errno);
  tn_tcp_tune(link->fd);
  tn_tcp_mark(greeting.magic);
  memcpy(link->nonces.caller, greeting.nonce, TN_TCP_NONCE);
  link->done = 0;
  link->state = JOIN_GREETED;
  if (!tn_tcp_send_record(link->fd, &greeting, sizeof greeting)) join_try_later(link, errno);
}

static void join_ask(join *j, int32_t lane, join_link *link) {
  tn_tcp_hello hello = j->hello;
  hello.lane = lane;
  tn_tcp_hello_prove(&j->prover, &link->nonces, &hello);
  link->error = 0;
  link->done = 0;
  link->state = JOIN_ASKED;
  if (!tn_tcp_send_record(link->fd, &hello, sizeof hello)) join_try_later(link, errno);
}

/* Nothing of the run is sent before the answer has proved that the listener belongs to it. */
static void join_read_answer(join *j, int32_t lane, join_link *link) {
  struct iovec rest = {(char *)&link->answer + link->done, sizeof link->answer - link->done};
  ssize_t got = tn_tcp_receive(link->fd, &rest, 1);
  if (got < 0) return join_try_later(link, errno);
  link->done += (size_t)got;
  if (link->done < sizeof link->answer) return;
  memcpy(link->nonces.listener, link->answer.greeting.nonce, TN_TCP_NONCE);
  if (tn_tcp_answer_proved(&j->prover, &link->nonces, &link->answer))
    join_ask(j, lane, link);
  else
    join_try_later(link, EPROTO);
}

/* With the table, the other connections can be made. */
static void join_read_table(join *j, join_link *link) {
  size_t all = (size_t)j->t->ranks * sizeof *j->rows;
  struct iovec rest = {(char *)j->rows + link->done, all - link->done};
  ssize_t got = tn_tcp_receive(link->fd, &rest, 1);
  if (got < 0) return join_try_later(link, errno);
  link->done += (size_t)got;
  if (link->done < all) return;
  if (!tn_tcp_reply_proved(&j->prover, &link->nonces, &link->reply, j->rows))
    return join_try_later(link, EPROTO);
  for (int32_t r = 0; r < j->t->ranks; r++)
    if (!tn_tcp_row_valid(&j->rows[r]))
      return tn_tcp_fail(j->t, "rank 0 sent a table that is no table of addresses");
  link->state = JOIN_OPEN;
  for (int32_t r = 0; r < j->t->rank; r++)
    for (int32_t lane = 0; lane < TN_TCP_LANES; lane++)
      if (j->links[r][lane].state == JOIN_LATER) j->links[r][lane].state = JOIN_DUE;
}

static void join_read_reply(join *j, join_link *link) {
  struct iovec rest = {(char *)&link->reply + link->done, sizeof link->reply - link->done};
  ssize_t got = tn_tcp_receive(link->fd, &rest, 1);
  if (got < 0) return join_try_later(link, errno);
  link->done += (size_t)got;
  if (link->done < sizeof link->reply) return;
  /* of a table, the proof is checked when it is there */
  bool right = link->reply.kind == TN_TCP_TABLE ||
               tn_tcp_reply_proved(&j->prover, &link->nonces, &link->reply, j->rows);
  if (!tn_tcp_reply_valid(&link->reply) || !right) return join_try_later(link, EPROTO);
  link->done = 0;
  if (link->reply.kind == TN_TCP_REFUSED)
    tn_tcp_fail(j->t, "%s", link->reply.text);
  else if (link->reply.kind == TN_TCP_ACCEPTED)
    link->state = JOIN_OPEN;
  else if (link == &j->links[0][TN_TCP_NOTES])
    link->state = JOIN_TABLE;
  else
    join_try_later(link, EPROTO);
}

/* ---- rank 0 ---- */

static bool join_all_registered(const join *j) {
  for (int32_t r = 1; r < j->t->ranks; r++)
    if (j->links[r][TN_TCP_NOTES].state < JOIN_REGISTERED) return false;
  return true;
}

/* A rank that has registered sends nothing before it has the table. */
static void join_check_registered(join_link *link) {
  char byte;
  struct iovec piece = {&byte, 1};
  if (tn_tcp_receive(link->fd, &piece, 1) == 0) return;
  tn_tcp_close(link->fd);
  link->fd = -1;
  link->state = JOIN_AWAITED;
}

/* A rank whose connection has ended comes again. */
static void join_send_table(join *j, join_link *link) {
  size_t rows = (size_t)j->t->ranks * sizeof *j->rows, all = sizeof link->reply + rows;
  struct iovec pieces[2] = {{&link->reply, sizeof link->reply}, {j->rows, rows}}, *from = pieces;
  size_t done = link->done;
  if (done >= pieces[0].iov_len) done -= from++->iov_len;
  from->iov_base = (char *)from->iov_base + done;
  from->iov_len -= done;
  ssize_t sent = tn_tcp_send(link->fd, from, (int32_t)(pieces + 2 - from));
  if (sent > 0) link->done += (size_t)sent;
  link->state = link->done == all ? JOIN_OPEN : JOIN_SENDING;
  if (sent >= 0) return;
  tn_tcp_close(link->fd);
  link->fd = -1;
  link->state = JOIN_AWAITED;
}

static void join_send_tables(join *j) {
  if (j->t->rank != 0 || !join_all_registered(j)) return;
  for (int32_t r = 1; r < j->t->ranks; r++) {
    join_link *link = &j->links[r][TN_TCP_NOTES];
    if (link->state != JOIN_REGISTERED) continue;
    link->reply = tn_tcp_reply_make(&j->prover, &link->nonces, TN_TCP_TABLE, "", j->rows);
    link->done = 0;
    join_send_table(j, link);
  }
}

/* ---- the loop ---- */

static void join_advance_link(join *j, int32_t rank, int32_t lane) {
  join_link *link = &j->links[rank][lane];
  switch (link->state) {
  case JOIN_CONNECTING: join_greet(j, link); break;
  case JOIN_GREETED: join_read_answer(j, lane, link); break;
  case JOIN_ASKED: join_read_reply(j, link); break;
  case JOIN_REGISTERED: join_check_registered(link); break;
  case JOIN_SENDING: join_send_table(j, link); break;
  default: break;
  }
  if (link->state == JOIN_TABLE) join_read_table(j, link);
}

static void join_connect_due(join *j) {
  double now = tn_monotonic_s();
  for (int32_t r = 0; r < j->t->rank; r++)
    for (int32_t lane = 0; lane < TN_TCP_LANES; lane++)
      if (j->links[r][lane].state == JOIN_DUE && j->links[r][lane].due_s <= now) join_connect(j, r, lane);
}

static struct pollfd join_poll_link(const join_link *link) {
  bool writes = link->state == JOIN_CONNECTING || link->state == JOIN_SENDING;
  if (writes) return (struct pollfd){.fd = link->fd, .events = POLLOUT};
  bool reads = link->state == JOIN_GREETED || link->state == JOIN_ASKED || link->state == JOIN_TABLE ||
               link->state == JOIN_REGISTERED;
  return (struct pollfd){.fd = reads ? link->fd : -1, .events = POLLIN};
}

/* The next trial of a connection is not later than that. */
static int join_poll_ms(const join *j) {
  for (int32_t r = 0; r < j->t->rank; r++)
    for (int32_t lane = 0; lane < TN_TCP_LANES; lane++)
      if (j->links[r][lane].state == JOIN_DUE) return (int)(1000 * JOIN_RETRY_S);
  return JOIN_POLL_MS;
}

/* Only open sockets: poll refuses more entries than RLIMIT_NOFILE, be they in use or not. */
static void join_add_poll(join *j, struct pollfd entry, int32_t owner) {
  if (entry.fd < 0) return;
  j->polled[j->n_polled] = entry;
  j->owners[j->n_polled++] = owner;
}

/* Links come first: a guest that is admitted takes the place of one. */
static void join_list_polls(join *j) {
  int32_t links = j->t->ranks * TN_TCP_LANES;
  j->n_polled = 0;
  for (int32_t i = 0; i < links; i++)
    join_add_poll(j, join_poll_link(&j->links[i / TN_TCP_LANES][i % TN_TCP_LANES]), i);
  for (int32_t i = 0; i < TN_TCP_GUESTS; i++)
    join_add_poll(j, (struct pollfd){.fd = j->guests[i].fd, .events = POLLIN}, links + i);
  join_add_poll(j, (struct pollfd){.fd = j->listener, .events = POLLIN}, links + TN_TCP_GUESTS);
}

static void join_follow_poll(join *j, const struct pollfd *entry, int32_t owner) {
  int32_t guest = owner - j->t->ranks * TN_TCP_LANES;
  if (guest < 0)
    join_advance_link(j, owner / TN_TCP_LANES, owner % TN_TCP_LANES);
  else if (guest == TN_TCP_GUESTS)
    join_take_guests(j);
  else if (j->guests[guest].fd == entry->fd)
    join_read_guest(j, &j->guests[guest]);
}

static void join_wait(join *j) {
  join_list_polls(j);
  int ready = poll(j->polled, (nfds_t)j->n_polled, join_poll_ms(j));
  if (ready < 0 && errno != EINTR && errno != EAGAIN)
    tn_tcp_fail(j->t, "rank %d cannot wait for %d sockets: %s%s", (int)j->t->rank, (int)j->n_polled,
                strerror(errno), errno == EINVAL ? "; see `ulimit -n`" : "");
  for (int32_t i = 0; ready > 0 && i < j->n_polled; i++)
    if (j->polled[i].revents != 0) join_follow_poll(j, &j->polled[i], j->owners[i]);
}

static bool join_complete(const join *j) {
  for (int32_t r = 0; r < j->t->ranks; r++)
    if (join_is_missing(j, r, false)) return false;
  return true;
}

/* The cause is the host's to tell. */
static void join_look_at_run(const join *j) {
  if (j->place->has_failed != NULL && j->place->has_failed(j->place))
    tn_tcp_fail(j->t, "the run has failed before all %d ranks were connected", (int)j->t->ranks);
}

static void join_run(join *j) {
  while (!join_complete(j) && !atomic_load(&j->t->failure.set)) {
    join_look_at_run(j);
    join_connect_due(j);
    join_wait(j);
    tn_tcp_guests_drop_old(j->guests);
    if (!atomic_load(&j->t->failure.set)) join_send_tables(j);
    if (!join_complete(j) && tn_monotonic_s() - j->begun_s >= j->limit_s) join_fail_late(j);
  }
}

/* ---- begin, end ---- */

static void join_begin(join *j, const tn_comm_place *place, const tn_tcp_address *own) {
  tn_tcp *t = j->t;
  j->begun_s = tn_monotonic_s();
  j->limit_s = t->timeout_s;
  if (t->rank > 0) j->limit_s += t->timeout_s < JOIN_VERDICT_S ? t->timeout_s : JOIN_VERDICT_S;
  j->rows[t->rank] = (tn_tcp_row){*own, place->process};
  j->hello = (tn_tcp_hello){.version = TN_TCP_VERSION,
                            .rank = t->rank,
                            .ranks = t->ranks,
                            .process = place->process,
                            .address = *own,
                            .direct = (uint64_t)t->options.direct};
  tn_tcp_mark(j->hello.magic);
  if (getrandom(&j->hello.instance, sizeof j->hello.instance, GRND_NONBLOCK) < 0 || j->hello.instance == 0)
    j->hello.instance = (uint64_t)getpid();
  tn_tcp_guests_init(j->guests);
  for (int32_t r = 0; r < t->ranks; r++)
    for (int32_t lane = 0; lane < TN_TCP_LANES; lane++)
      j->links[r][lane] = (join_link){.fd = -1, .state = r < t->rank ? JOIN_LATER : JOIN_AWAITED};
  if (t->rank > 0) j->links[0][TN_TCP_NOTES].state = JOIN_DUE;
}

static void join_end(join *j) {
  if (atomic_load(&j->t->failure.set)) join_refuse_all(j);
  for (int32_t i = 0; i < TN_TCP_GUESTS; i++) tn_tcp_guest_drop(&j->guests[i]);
  for (int32_t r = 0; r < j->t->ranks; r++) {
    tn_tcp_peer *p = &j->t->peers[r];
    p->address = j->rows[r].address;
    p->process = j->rows[r].process;
    for (int32_t lane = 0; lane < TN_TCP_LANES; lane++) p->lanes[lane] = j->links[r][lane].fd;
  }
}

tn_status tn_tcp_join(tn_env *env, tn_tcp *t, const tn_tcp_identity *identity, const tn_comm_place *place,
                      const tn_tcp_address *own, int listener) {
  join *j = tn_new(env, sizeof *j);
  if (j != NULL) {
    j->t = t;
    j->id = identity;
    j->place = place;
    j->prover = (tn_tcp_prover){place, identity};
    j->listener = listener;
    join_begin(j, place, own);
    join_run(j);
    join_end(j);
  }
  tn_tcp_close(listener);
  tn_delete(env, j);
  return j != NULL ? tn_tcp_failed(env, t) : TN_ENOMEM;
}

/* serve.c: gathers requests of several threads into batches. A batch is computed as soon as it is full, or
 * when its first request has waited for 2 ms. Ten threads play the clients.
 *
 *     cc serve.c $(pkg-config --cflags --libs tenon) -lm -pthread -o serve
 *     tenon train digits.ini && ./serve digits.ini */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <tenon/session.h>

enum { PIXELS = 28 * 28, CLASSES = 10, CLIENTS = 10, ASKS = 40, WAIT_NS = 2000000 };
enum { SIZES = 3, MOST = 32 };
static const int sizes[SIZES] = {1, 8, MOST};

/* One picture and its answer. It belongs to the client, and to the server between ask() and `state` != 0. */
typedef struct request {
  const float *image; /* PIXELS */
  float *scores;      /* CLASSES */
  struct timespec arrived;
  int state; /* 0: waits, 1: answered, -1: failed */
  struct request *next;
} request;

typedef struct queue {
  mtx_t lock;
  cnd_t arrived, answered;
  request *first, **end;
  int n, closed;
} queue;

/* A session for each size of a batch: one that is larger than the requests computes zeros for the rest. */
typedef struct server {
  queue requests;
  tn_session *sessions[SIZES];
  float images[MOST * PIXELS], scores[MOST * CLASSES];
  int batches;
} server;

static int fail(const void *handle) {
  fprintf(stderr, "%s\n", tn_error_text(handle));
  return 1;
}

/* ---- the side of the clients ---- */

/* Returns when the answer is there. -1: the server could not compute it. */
static int ask(queue *q, request *r) {
  r->state = 0;
  r->next = NULL;
  mtx_lock(&q->lock);
  timespec_get(&r->arrived, TIME_UTC);
  *q->end = r;
  q->end = &r->next;
  q->n++;
  cnd_signal(&q->arrived);
  while (r->state == 0) cnd_wait(&q->answered, &q->lock);
  mtx_unlock(&q->lock);
  return r->state;
}

/* ---- the side of the server ---- */

/* Waits for requests and takes at most MOST of them; 0: the queue is closed and empty. */
static int take(queue *q, request *taken[MOST]) {
  int n = 0;
  mtx_lock(&q->lock);
  while (q->n == 0 && !q->closed) cnd_wait(&q->arrived, &q->lock);
  if (q->n > 0) {
    struct timespec until = q->first->arrived;
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (q->n < MOST && !q->closed)
      if (cnd_timedwait(&q->arrived, &q->lock, &until) != thrd_success) break;
  }
  for (; n < MOST && q->first != NULL; n++) {
    taken[n] = q->first;
    q->first = q->first->next;
  }
  q->n -= n;
  if (q->first == NULL) q->end = &q->first;
  mtx_unlock(&q->lock);
  return n;
}

/* Infers with the smallest session that the requests fit into. */
static int compute(server *s, request *const taken[], int n) {
  int size = 0;
  while (sizes[size] < n) size++;
  for (int i = 0; i < n; i++) memcpy(s->images + i * PIXELS, taken[i]->image, PIXELS * sizeof(float));
  if (tn_session_infer(s->sessions[size], n) != TN_OK) {
    fail(s->sessions[size]);
    return -1;
  }
  for (int i = 0; i < n; i++) memcpy(taken[i]->scores, s->scores + i * CLASSES, CLASSES * sizeof(float));
  return 1;
}

static int serve(void *argument) {
  server *s = argument;
  request *taken[MOST];
  for (int n; (n = take(&s->requests, taken)) > 0; s->batches++) {
    int state = compute(s, taken, n);
    mtx_lock(&s->requests.lock);
    for (int i = 0; i < n; i++) taken[i]->state = state;
    cnd_broadcast(&s->requests.answered);
    mtx_unlock(&s->requests.lock);
  }
  return 0;
}

/* The buffers of all sessions are the same: rows lie one after another, and a smaller batch uses fewer. */
static tn_status open_sessions(tn_run *run, server *s) {
  for (int i = 0; i < SIZES; i++) {
    const tn_session_options options = {.struct_size = sizeof options, .infer = 1, .batch = sizes[i]};
    size_t n = (size_t)sizes[i] * sizeof(float);
    tn_status status = tn_session_open(run, &options, &s->sessions[i]);
    if (status != TN_OK) return status;
    tn_session_bind(s->sessions[i], "image", s->images, n * PIXELS);
    tn_session_bind(s->sessions[i], "output", s->scores, n * CLASSES);
  }
  return TN_OK;
}

/* ---- a client ---- */

typedef struct client {
  server *server;
  int number, failed;
  double seconds; /* of all its requests */
  float scores[ASKS][CLASSES];
} client;

/* A picture that depends on its number alone, so that it can be drawn again. */
static void draw(float *image, int number) {
  unsigned random = (unsigned)number * 2654435761u + 1;
  for (int i = 0; i < PIXELS; i++) {
    random = random * 1664525u + 1013904223u;
    image[i] = (float)(random >> 8) / (float)(1 << 23) - 1.0f;
  }
}

static double seconds_since(const struct timespec *start) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return difftime(now.tv_sec, start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) * 1e-9;
}

static int be_client(void *argument) {
  client *c = argument;
  float image[PIXELS];
  for (int i = 0; i < ASKS; i++) {
    request r = {.image = image, .scores = c->scores[i]};
    draw(image, c->number * ASKS + i);
    c->failed += ask(&c->server->requests, &r) < 0;
    c->seconds += seconds_since(&r.arrived);
  }
  return 0;
}

/* The largest difference between the answers and those of the session for one picture. */
static double compare(server *s, client *clients) {
  double most = 0;
  for (int i = 0; i < CLIENTS * ASKS; i++) {
    draw(s->images, i);
    if (tn_session_infer(s->sessions[0], 1) != TN_OK) return INFINITY;
    for (int k = 0; k < CLASSES; k++)
      most = fmax(most, fabs((double)clients[i / ASKS].scores[i % ASKS][k] - (double)s->scores[k]));
  }
  return most;
}

/* ---- all together ---- */

static int run_clients(server *s, client *clients) {
  thrd_t serving, asking[CLIENTS];
  struct timespec start;
  double waited = 0;
  int failed = 0, n = 0;
  if (thrd_create(&serving, serve, s) != thrd_success) return 1;
  timespec_get(&start, TIME_UTC);
  for (; n < CLIENTS; n++) {
    clients[n] = (client){.server = s, .number = n};
    if (thrd_create(&asking[n], be_client, &clients[n]) != thrd_success) break;
  }
  for (int i = 0; i < n; i++) {
    thrd_join(asking[i], NULL);
    waited += clients[i].seconds;
    failed += clients[i].failed;
  }
  double all = seconds_since(&start);
  mtx_lock(&s->requests.lock);
  s->requests.closed = 1;
  cnd_signal(&s->requests.arrived);
  mtx_unlock(&s->requests.lock);
  thrd_join(serving, NULL);
  printf("%d requests in %d batches, %d failed\n", n * ASKS, s->batches, failed);
  printf("%.0f a second, %.2f ms each\n", n * ASKS / all, waited / (n * ASKS) * 1e3);
  return failed > 0 || n < CLIENTS;
}

int main(int argc, char **argv) {
  static server s;
  static client clients[CLIENTS];
  tn_context *context;
  tn_run *run;
  if (argc != 2) return 2;
  s.requests.end = &s.requests.first;
  if (mtx_init(&s.requests.lock, mtx_plain) != thrd_success ||
      cnd_init(&s.requests.arrived) != thrd_success || cnd_init(&s.requests.answered) != thrd_success)
    return 1;
  if (tn_context_open(NULL, &context) != TN_OK) return fail(context);
  if (tn_run_open(context, argv[1], NULL, &run) != TN_OK) return fail(context);
  if (open_sessions(run, &s) != TN_OK) return fail(run);
  if (run_clients(&s, clients) != 0) return 1;
  printf("largest difference from one at a time: %g\n", compare(&s, clients));
  printf("scores of the first picture: %g %g ...\n", clients[0].scores[0][0], clients[0].scores[0][1]);
  for (int i = 0; i < SIZES; i++) tn_session_close(s.sessions[i]);
  tn_run_close(run);
  tn_context_close(context);
  return 0;
}

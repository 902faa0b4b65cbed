#include "core/distributed/join/lookup.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/thread_state.h"

enum { LOOKUP_NS = 50000000 }; /* between two looks at the request */

/* The one of the two threads that ends last frees it, after the caller's handle may have ended: so it comes
 * from malloc. */
typedef struct lookup {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool done, left; /* by the resolver; by the caller */
  tn_socket_host *host;
  const char *reason;
  char name[]; /* the host's */
} lookup;

static lookup *lookup_new(const char *name) {
  lookup *l = calloc(1, sizeof *l + strlen(name) + 1);
  if (l == NULL) return NULL;
  memcpy(l->name, name, strlen(name) + 1);
  pthread_mutex_init(&l->lock, NULL);
  pthread_cond_init(&l->changed, NULL);
  return l;
}

static void lookup_free(lookup *l) {
  pthread_cond_destroy(&l->changed);
  pthread_mutex_destroy(&l->lock);
  free(l);
}

static void *lookup_run(void *arg) {
  lookup *l = arg;
  const char *reason = "";
  tn_socket_host *host = tn_socket_host_find(l->name, &reason);
  pthread_mutex_lock(&l->lock);
  l->host = host;
  l->reason = reason;
  l->done = true;
  bool left = l->left;
  pthread_cond_signal(&l->changed);
  pthread_mutex_unlock(&l->lock);
  if (!left) return NULL;
  tn_socket_host_free(host);
  lookup_free(l);
  return NULL;
}

/* False: this process was asked to stop, and the look-up is left. */
static bool lookup_await(lookup *l, const tn_join_request *request) {
  struct timespec until;
  pthread_mutex_lock(&l->lock);
  while (!l->done && !tn_join_stopped(request)) {
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOKUP_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&l->changed, &l->lock, &until);
  }
  bool done = l->done;
  l->left = !done;
  pthread_mutex_unlock(&l->lock);
  return done;
}

tn_socket_host *tn_lookup_master(const tn_join_request *request, const char **reason) {
  lookup *l = lookup_new(request->place->master);
  pthread_t thread;
  *reason = "out of memory";
  if (l == NULL) return NULL;
  if (tn_thread_start(&thread, lookup_run, l) != 0) {
    lookup_free(l);
    return tn_socket_host_find(request->place->master, reason);
  }
  *reason = "stopped";
  if (!lookup_await(l, request)) {
    pthread_detach(thread);
    return NULL;
  }
  pthread_join(thread, NULL);
  tn_socket_host *host = l->host;
  *reason = l->reason;
  lookup_free(l);
  return host;
}

/* backends/cuda/modules/compile_pool.c: see compile_pool.h. */
#include "backends/cuda/modules/compile_pool.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "tenon/api.h"

enum { POOL_LOOK_NS = 100000000 }; /* between two looks at a request to stop */

void tn_cuda_pool_init(tn_cuda_pool *pool) {
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->more, NULL);
  pthread_cond_init(&pool->less, NULL);
}

static bool pool_compile(const tn_cuda_pool *pool, tn_cuda_job *job) {
  if (job->compile != NULL) return job->compile(job);
  tn_cuda_compiled compiled =
      tn_cuda_compile(&pool->compiler, job->title, job->text, &job->image, job->error);
  job->refused = compiled == TN_CUDA_REFUSED;
  return compiled == TN_CUDA_COMPILED;
}

/* A job whose image nvcc has made, or that is on disk, is not compiled. */
static void pool_run_job(const tn_cuda_pool *pool, tn_cuda_job *job) {
  *job->error = *job->unsaved = '\0';
  job->ahead = pool->ahead != NULL && job->file != NULL &&
               tn_cuda_ahead_read(pool->ahead, job->file, &job->image, &job->damaged);
  job->compiled = job->ahead;
  if (job->ahead) return;
  job->cached = tn_cuda_image_read(pool->folder, job->key, &job->image, &job->corrupt);
  job->compiled = job->cached || pool_compile(pool, job);
  if (job->compiled && !job->cached)
    (void)tn_cuda_image_write(pool->folder, job->key, &job->image, job->unsaved);
}

static tn_cuda_job *pool_take(tn_cuda_pool *pool) {
  tn_cuda_job *job = pool->first;
  if (job != NULL) pool->first = job->next;
  if (pool->first == NULL) pool->last = NULL;
  return job;
}

static void pool_put_done(tn_cuda_pool *pool, tn_cuda_job *job) {
  job->done = true;
  pthread_cond_broadcast(&pool->less);
}

static void *pool_thread(void *arg) {
  tn_cuda_pool *pool = arg;
  pthread_mutex_lock(&pool->lock);
  while (!pool->stop) {
    tn_cuda_job *job = pool_take(pool);
    if (job == NULL) {
      pool->n_idle++;
      pthread_cond_wait(&pool->more, &pool->lock);
      pool->n_idle--;
      continue;
    }
    pthread_mutex_unlock(&pool->lock);
    pool_run_job(pool, job);
    pthread_mutex_lock(&pool->lock);
    pool_put_done(pool, job);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

/* Threads of the pool block all signals, so the host's threads handle them. */
static bool pool_start_thread(tn_cuda_pool *pool) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&pool->threads[pool->n_threads], NULL, pool_thread, pool) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pool->n_threads += started;
  return started;
}

static int32_t pool_most_threads(void) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  return processors < 1                         ? 1
         : processors > TN_CUDA_COMPILE_THREADS ? TN_CUDA_COMPILE_THREADS
                                                : (int32_t)processors;
}

void tn_cuda_pool_add(tn_cuda_pool *pool, tn_cuda_job *job) {
  pthread_mutex_lock(&pool->lock);
  job->next = NULL;
  if (pool->last != NULL)
    pool->last->next = job;
  else
    pool->first = job;
  pool->last = job;
  if (pool->n_idle == 0 && pool->n_threads < pool_most_threads()) (void)pool_start_thread(pool);
  pthread_cond_signal(&pool->more);
  bool alone = pool->n_threads == 0;
  if (alone) (void)pool_take(pool);
  pthread_mutex_unlock(&pool->lock);
  if (!alone) return;
  pool_run_job(pool, job);
  job->done = true;
}

/* The lock must be held. */
static void pool_await_change(tn_cuda_pool *pool) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += POOL_LOOK_NS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_cond_timedwait(&pool->less, &pool->lock, &until);
}

bool tn_cuda_pool_await(const void *handle, tn_cuda_pool *pool, const tn_cuda_job *job) {
  pthread_mutex_lock(&pool->lock);
  while (!job->done && !tn_env_stopping(handle)) pool_await_change(pool);
  bool done = job->done;
  pthread_mutex_unlock(&pool->lock);
  return done;
}

/* The lock must be held. */
static bool pool_drop(tn_cuda_pool *pool, const tn_cuda_job *job) {
  tn_cuda_job **at = &pool->first, *before = NULL;
  for (; *at != NULL && *at != job; at = &(*at)->next) before = *at;
  if (*at == NULL) return false;
  *at = job->next;
  if (pool->last == job) pool->last = before;
  return true;
}

void tn_cuda_pool_withdraw(tn_cuda_pool *pool, tn_cuda_job *job) {
  pthread_mutex_lock(&pool->lock);
  bool dropped = pool_drop(pool, job);
  while (!dropped && !job->done) pthread_cond_wait(&pool->less, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

void tn_cuda_pool_free(tn_cuda_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  pool->stop = true;
  pthread_cond_broadcast(&pool->more);
  pthread_mutex_unlock(&pool->lock);
  for (int32_t i = 0; i < pool->n_threads; i++) pthread_join(pool->threads[i], NULL);
  pthread_cond_destroy(&pool->less);
  pthread_cond_destroy(&pool->more);
  pthread_mutex_destroy(&pool->lock);
}

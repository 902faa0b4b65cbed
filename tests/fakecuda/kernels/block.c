#include "tests/fakecuda/kernels/block.h"
#include "tests/fakecuda/kernels/warp.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_key_t block_key;
static pthread_once_t block_once = PTHREAD_ONCE_INIT;

static void block_free(void *value) {
  fake_block *block = value;
  for (int32_t i = 0; i < block->n_allocated; i++) fake_fiber_free(&block->fibers[i]);
  free(block);
}

static void block_make_key(void) { pthread_key_create(&block_key, block_free); }

/* The double may be unloaded before a thread ends: then nothing may call block_free. */
__attribute__((destructor)) static void block_drop_key(void) {
  pthread_once(&block_once, block_make_key);
  void *block = pthread_getspecific(block_key);
  pthread_key_delete(block_key);
  if (block) block_free(block);
}

fake_block *fake_block_get(void) {
  pthread_once(&block_once, block_make_key);
  fake_block *block = pthread_getspecific(block_key);
  if (block) return block;
  block = calloc(1, sizeof *block);
  if (block && pthread_setspecific(block_key, block) != 0) {
    free(block);
    block = NULL;
  }
  return block;
}

static uint64_t block_random(fake_block *block) {
  block->random ^= block->random << 13;
  block->random ^= block->random >> 7;
  block->random ^= block->random << 17;
  return block->random;
}

static void block_push(fake_block *block, int32_t thread) {
  block->ready[block->n_ready++] = (int16_t)thread;
}

static int32_t block_pick(fake_block *block) {
  int32_t last = --block->n_ready;
  if (!block->random) return block->ready[last];
  int32_t at = (int32_t)((block_random(block) >> 32) * (uint64_t)(last + 1) >> 32);
  int32_t thread = block->ready[at];
  block->ready[at] = block->ready[last];
  return thread;
}

static void block_switch(fake_block *block, fake_fiber *to) {
  fake_fiber *from = block->self;
  block->self = to;
  fake_fiber_switch(from, to);
}

/* The fibers of the block are left in the middle of their threads. */
void fake_block_fail(fake_block *block, const char *format, ...) {
  va_list list;
  va_start(list, format);
  int n = snprintf(block->why, FAKE_TEXT, "kernel '%s', block (%u, %u, %u): ", block->name,
                   block->here->block.x, block->here->block.y, block->here->block.z);
  if (n >= 0 && n < FAKE_TEXT) vsnprintf(block->why + n, (size_t)(FAKE_TEXT - n), format, list);
  va_end(list);
  block->failed = true;
  if (block->self != &block->host) block_switch(block, &block->host);
}

static void block_main(void *arg);

/* A fiber that has no thread; one more is begun where all have one. */
static fake_fiber *block_idle_fiber(fake_block *block) {
  if (block->n_idle) return block->idle[--block->n_idle];
  int32_t number = block->n_begun;
  if (number == block->n_allocated) {
    if (fake_fiber_allocate(&block->fibers[number]) != 0) {
      fake_block_fail(block, "no memory for the stack of thread %d", number);
      return NULL;
    }
    block->n_allocated++;
  }
  fake_fiber_start(&block->fibers[number], number, block_main, block);
  block->n_begun++;
  return &block->fibers[number];
}

/* Why no thread can run: some wait for a barrier of the block, others for lanes of their warp. */
static void block_report_deadlock(fake_block *block) {
  const fake_thread *at_warp = NULL, *at_barrier = NULL;
  for (int32_t i = 0; i < block->n_threads; i++) {
    const fake_thread *thread = &block->threads[i];
    if (!at_warp && thread->state == FAKE_AT_WARP) at_warp = thread;
    if (!at_barrier && thread->state == FAKE_AT_BARRIER) at_barrier = thread;
  }
  char barrier[FAKE_TEXT / 2] = "";
  if (at_barrier)
    snprintf(barrier, sizeof barrier,
             "%d of %d threads wait at __syncthreads (%s:%d) and the others never reach it; ",
             block->n_at_barrier, block->n_alive, at_barrier->barrier->file, at_barrier->barrier->line);
  char warp[FAKE_TEXT / 2] = "";
  if (at_warp) fake_warp_describe(block, (int32_t)(at_warp - block->threads), warp, sizeof warp);
  fake_block_fail(block, "deadlock: %s%s", barrier, warp);
}

/* Sets the thread that runs next. False: all threads have exited. */
static bool block_choose(fake_block *block) {
  if (!block->n_ready && block->n_alive) block_report_deadlock(block);
  if (!block->n_ready) return false;
  block->current = block_pick(block);
  block->here->thread = block->threads[block->current].index;
  return true;
}

/* The calling fiber waits until its thread may go on. */
static void block_wait(fake_block *block) {
  if (!block_choose(block)) return;
  fake_thread *next = &block->threads[block->current];
  if (next->fiber == block->self) return;
  if (!next->fiber) next->fiber = block_idle_fiber(block);
  if (next->fiber) block_switch(block, next->fiber);
}

/* The barriers of all threads must be the same one: the count is of those that arrive with a predicate. */
static void block_release(fake_block *block) {
  const fake_barrier *first = NULL;
  int32_t n_true = 0, n_here = 0;
  for (int32_t i = block->n_threads - 1; i >= 0; i--) {
    fake_thread *thread = &block->threads[i];
    if (thread->state != FAKE_AT_BARRIER) continue;
    const fake_barrier *call = thread->barrier;
    if (!first) first = call;
    if (call->line != first->line || call->verb != first->verb) {
      fake_block_fail(block, "threads of the block wait at different barriers (%s:%d and %s:%d)", call->file,
                      call->line, first->file, first->line);
      return;
    }
    n_true += call->predicate != 0;
    n_here++;
  }
  for (int32_t i = block->n_threads - 1; i >= 0; i--) {
    fake_thread *thread = &block->threads[i];
    if (thread->state != FAKE_AT_BARRIER) continue;
    int verb = thread->barrier->verb;
    thread->barrier->result = verb == FAKE_BARRIER_AND  ? n_true == n_here
                              : verb == FAKE_BARRIER_OR ? n_true > 0
                                                        : n_true;
    thread->state = FAKE_READY;
    block_push(block, i);
  }
  block->n_at_barrier = 0;
}

static void block_barrier(void *state, fake_barrier *call) {
  fake_block *block = state;
  fake_thread *thread = &block->threads[block->current];
  thread->state = FAKE_AT_BARRIER;
  thread->barrier = call;
  thread->fiber = block->self;
  if (++block->n_at_barrier == block->n_alive) block_release(block);
  block_wait(block);
}

static void block_warp(void *state, fake_warp *call) {
  fake_block *block = state;
  fake_thread *thread = &block->threads[block->current];
  uint32_t ready = fake_warp_arrive(block, call);
  thread->fiber = block->self;
  for (int32_t lane = FAKE_WARP - 1, base = block->current / FAKE_WARP * FAKE_WARP; lane >= 0; lane--)
    if (ready >> lane & 1) {
      block->threads[base + lane].state = FAKE_READY;
      block_push(block, base + lane);
    }
  block_wait(block);
}

static unsigned block_lane(void *state) { return (unsigned)((fake_block *)state)->current % FAKE_WARP; }

static void block_trap(void *state, const char *what, const char *file, int line) {
  fake_block *block = state;
  fake_index at = block->here->thread;
  fake_block_fail(block, "thread (%u, %u, %u): %s (%s:%d)", at.x, at.y, at.z, what, file, line);
}

static void block_yield(void *state) {
  fake_block *block = state;
  if (!block->n_ready) return;
  fake_thread *thread = &block->threads[block->current];
  thread->fiber = block->self;
  /* the thread goes behind the others: those in front would never run in the order without a seed */
  memmove(block->ready + 1, block->ready, sizeof block->ready[0] * (size_t)block->n_ready++);
  block->ready[0] = (int16_t)block->current;
  block_wait(block);
}

static unsigned long long block_clock(void *state) { return ((fake_block *)state)->ticks += 100; }

const fake_runtime fake_block_runtime = {.barrier = block_barrier,
                                         .warp = block_warp,
                                         .lane = block_lane,
                                         .trap = block_trap,
                                         .yield = block_yield,
                                         .clock = block_clock};

static void block_exit(fake_block *block) {
  fake_thread *thread = &block->threads[block->current];
  thread->state = FAKE_EXITED;
  thread->fiber = NULL;
  block->n_alive--;
  fake_warp_exit(block);
  if (block->n_at_barrier && block->n_at_barrier == block->n_alive) block_release(block);
}

/* A fiber runs threads one after the other, until one of them waits. */
static void block_main(void *arg) {
  fake_block *block = arg;
  for (;;) {
    block->kernel->run(block->buffer);
    block_exit(block);
    fake_fiber *next = block_choose(block) ? block->threads[block->current].fiber : &block->host;
    if (!next) continue;
    block->idle[block->n_idle++] = block->self;
    block_switch(block, next);
  }
}

/* Fibers without a thread go on in the next launch: to begin one is slow, most of all under ThreadSanitizer.
 * A launch that failed has left others in the middle of their threads; then all begin anew. */
void fake_block_prepare(fake_block *block, fake_dim dim) {
  if (block->n_idle < block->n_begun) block->n_begun = block->n_idle = 0;
  block->failed = false;
  fake_fiber_adopt(&block->host);
  block->self = &block->host;
  fake_thread *thread = block->threads;
  for (uint32_t z = 0; z < dim.z; z++)
    for (uint32_t y = 0; y < dim.y; y++)
      for (uint32_t x = 0; x < dim.x; x++, thread++) thread->index = (fake_index){x, y, z};
}

int fake_block_run(fake_block *block) {
  block->n_alive = block->n_threads;
  block->n_at_barrier = block->n_ready = 0;
  for (int32_t i = 0; i * FAKE_WARP < block->n_threads; i++) block->waiting[i] = 0;
  for (int32_t i = block->n_threads - 1; i >= 0; i--) {
    block->threads[i].state = FAKE_READY;
    block->threads[i].fiber = NULL;
    block_push(block, i);
  }
  block_choose(block);
  fake_fiber *first = block_idle_fiber(block);
  if (first) block_switch(block, first);
  return block->failed ? -1 : 0;
}

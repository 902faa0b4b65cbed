/* core/base/thread_state.h: what a host may have changed in its thread, and on which results depend: the
 * floating-point environment (rounding, traps, denormals) and the decimal point of its locale. A public call
 * begins with the defaults and gives back what it found. Threads inherit the environment of the thread that
 * starts them, but not its locale, so a thread that prints or reads numbers begins like a public call. */
#pragma once

#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tn_thread_state {
  bool whole;       /* `environment` is to be restored, else `control` alone */
  uint32_t control; /* and flags, of SSE */
  fenv_t environment;
  locale_t locale; /* to be restored; 0: the thread has a decimal point already */
} tn_thread_state;

void tn_thread_state_enter(tn_thread_state *before);
/* Gives back also the flags of exceptions, so that none of those raised here are seen. */
void tn_thread_state_leave(const tn_thread_state *before);

/* A declaration: the defaults hold to the end of the block, whichever way it is left. */
#define TN_THREAD_STATE                                                                                      \
  __attribute__((cleanup(tn_thread_state_leave))) tn_thread_state tn_thread_state_;                          \
  tn_thread_state_enter(&tn_thread_state_)

/* pthread_create of a thread that blocks all signals, so that the application's threads handle them. */
int tn_thread_start(pthread_t *thread, void *(*run)(void *), void *arg);

/* backends/sim/engine/signal.c: an event count on a futex; neither side takes a lock. A waiting thread reads
 * the count, checks its condition, and sleeps if the count is unchanged. A thread that changes the condition
 * raises the count afterwards. All operations are seq_cst, so either the waiter sees the change or the raiser
 * sees the sleeper. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backends/sim/engine/signal.h"

uint32_t tn_sim_signal_read(tn_sim_signal *signal) { return atomic_load(&signal->count); }

void tn_sim_signal_raise(tn_sim_signal *signal) {
  atomic_fetch_add(&signal->count, 1);
  if (atomic_load(&signal->sleepers) > 0)
    syscall(SYS_futex, &signal->count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void tn_sim_signal_wait(tn_sim_signal *signal, uint32_t seen, int64_t micros) {
  struct timespec limit = {(time_t)(micros / 1000000), (long)(micros % 1000000) * 1000};
  int before = errno;
  atomic_fetch_add(&signal->sleepers, 1);
  syscall(SYS_futex, &signal->count, FUTEX_WAIT_PRIVATE, seen, micros < 0 ? NULL : &limit, NULL, 0);
  atomic_fetch_sub(&signal->sleepers, 1);
  errno = before;
}

/* tests/support/test_clock.h: the monotonic clock of a test and of the processes that it forks. The clock
 * runs until a test holds it; then time passes only where the test says so. A limit of the code under test
 * ends when the test is ready for its end, and work that must be done before that may take any time. Waits of
 * the system, as of poll, still take their time.
 *
 * The dependency test_clock_dep links it in place of tn_clock_s, and test_clock_backends_dep in place of
 * clock_gettime, for tests of backends without the core. */
#pragma once

/* The clock's time, from that of the system. */
double test_clock_s(void);
/* Before the first fork: processes of this one share the clock. */
void test_clock_open(void);
void test_clock_hold(void);
/* The clock is that of the system again: for objects that are made from now on, since it may go back. */
void test_clock_run(void);
/* Moves the clock at once, where it is held. */
void test_clock_pass(double seconds);

/* A forked process reads the clock again and again until it ends, and test_clock_step waits for it: it is
 * added by its parent, and calls test_clock_use first. */
void test_clock_add(int pid);
void test_clock_use(void);
/* Moves the clock, and returns when each process that uses it has read it several times since, so that
 * all that was to be done at that time is done. Processes that are stopped or have ended are left out. */
void test_clock_step(double seconds);

/* Returns when threads of this process have read the clock so many times more. */
void test_clock_await_reads(int n);

/* Returns when a process is stopped (SIGSTOP). */
void test_await_stopped(int pid);

/* tests/integration/processes/launched.h: trainings by several processes of `tenon launch`, on backend cpu.
 */
#ifndef TN_TESTS_INTEGRATION_PROCESSES_LAUNCHED_H
#define TN_TESTS_INTEGRATION_PROCESSES_LAUNCHED_H

#include "tests/integration/cli/program.h"

/* 60 steps, in model.ini. */
extern const char launched_ini[];

/* CMocka's set-up: a temporary folder with model.ini, and no variables of a launcher. */
int launched_open(void **state);

/* The process id of a process of the launch, from the environments of this machine's processes; 0: there is
 * no such process. */
pid_t launched_process(int number);
/* Waits up to 60 s until there is one, or none any more. */
pid_t launched_await(int number);
void launched_await_end(int number);

/* Fails unless program_err has the text. */
void launched_says(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Two files metrics.jsonl have the same losses but for the rounding of sums: sums over ranks are added in
 * another order. */
void launched_compare(const char *one, const char *several, int steps);

double launched_clock_s(void);

#endif

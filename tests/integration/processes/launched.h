/* tests/integration/processes/launched.h: trainings by several processes of `tenon launch`, on backend cpu.
 */
#pragma once

#include "tests/integration/cli/program.h"

/* A perceptron on digits, on backend cpu. RUN: lines of [run]. TIMEOUT: an hour, which no test waits for,
 * except where its end is tested: "a process that waits ends by itself" needs no bound on how long it takes
 * then. */
#define LAUNCHED_INI(RUN, TIMEOUT)                                                                           \
  "[run]\n" RUN "seed = 3\nthreads = 1\n"                                                                    \
  "[data]\nsource = digits\nbatch = 48\nworkers = 0\ntransforms = to_float\n"                                \
  "[data.valid]\nepoch = 480\n"                                                                              \
  "[model]\ninputs = image: f32[1, 28, 28]\n"                                                                \
  "layers =\n    flatten\n    fc1: linear(32)\n    relu\n    fc2: linear(10)\n"                              \
  "loss = cross_entropy\nmetrics = accuracy\n"                                                               \
  "[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\n"                                                     \
  "[backend]\nuse = cpu\nautotune = no\n"                                                                    \
  "[distributed]\ntimeout = " TIMEOUT "\n"

/* 60 steps, in model.ini, with a timeout of an hour. */
extern const char launched_ini[];

/* CMocka's set-up: a temporary folder with model.ini, and no variables of the stand-in for ssh. */
int launched_open(void **state);

/* The process id of a process of the launch, from the environments of this machine's processes; 0: there is
 * no such process. */
pid_t launched_process(int number);
/* Waits until there is one, or none any more. */
pid_t launched_await(int number);
void launched_await_end(int number);

/* Fails unless program_err has the text. */
void launched_says(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Two files metrics.jsonl have the same losses but for the rounding of sums: sums over ranks are added in
 * another order. */
void launched_compare(const char *one, const char *several, int steps);

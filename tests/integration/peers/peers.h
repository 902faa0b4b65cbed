/* tests/integration/peers/peers.h: training runs held against goldens of other frameworks. */
#ifndef TN_TESTS_INTEGRATION_PEERS_PEERS_H
#define TN_TESTS_INTEGRATION_PEERS_PEERS_H

#include "program.h"

enum { PEERS_MOST_STEPS = 512 };

/* Skips the test, saying so, where a file of DATA is absent. */
void peers_need(const char *file);

/* A golden of tests/golden, by its path there. */
const json_t *peers_golden(const char *path);

/* Trains a configuration, with options behind it or not, and reads the loss of every step. Returns the number
 * of steps; `weights`, where it is not NULL, gets the path of the last checkpoint's model. */
int peers_train(const char *ini, double losses[PEERS_MOST_STEPS], char weights[512]);

/* Fails unless |ours - golden| <= relative * |golden|, or `least` where that is more, at steps
 * [first, last). */
void peers_compare(const double *ours, const json_t *golden, int first, int last, double relative,
                   double least);

/* Fails where the first n losses and the golden's, both smoothed (curve.h), are more than `band` apart. */
void peers_compare_smoothed(const double *ours, const json_t *golden, size_t n, double band);

#endif

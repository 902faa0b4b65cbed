/* tests/integration/peers/peers.h: compares training runs with goldens of other frameworks. */
#pragma once

#include "program.h"

enum { PEERS_MOST_STEPS = 512 };

/* Skips the test with a message if a file of DATA is missing. */
void peers_need(const char *file);

/* Reads a golden by its path in tests/golden. */
const json_t *peers_golden(const char *path);

/* Trains a configuration and reads the loss of every step. `ini` is the path, with options after it if
 * needed. Returns the number of steps; `weights`, if not NULL, receives the path of the last checkpoint's
 * model. */
int peers_train(const char *ini, double losses[PEERS_MOST_STEPS], char weights[512]);

/* Fails unless |ours - golden| <= max(relative * |golden|, least) at steps [first, last). */
void peers_compare(const double *ours, const json_t *golden, int first, int last, double relative,
                   double least);

/* Fails if the first n losses and the golden's, both smoothed (curve.h), differ by more than `band`. */
void peers_compare_smoothed(const double *ours, const json_t *golden, size_t n, double band);

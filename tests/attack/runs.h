/* tests/attack/runs.h: two small run folders, made once: base/picture/run, a classifier of pictures, and
 * base/text/run, a language model, with picture.ini, text.ini, text.txt and rows.npy. */
#pragma once

#include "tests/attack/attack.h"

enum { RUNS_PICTURE = 1, RUNS_TEXT = 2 };

/* Trains both unless they are there. */
void runs_make(void);
/* A .npy file of f32 rows for the classifier: (rows, 1, 6, 6). */
void runs_write_rows(const char *path, int rows, const float *values);
enum { RUNS_ROW = 36 };

/* tests/unit/data/numbers.h: a source and transforms with predictable values. */
#pragma once

#include <stdatomic.h>

#include "core/data/loader.h"

/* Options of the source. Field "x" f32[4] is {index, key mixed down, 0, 0} and "y" i32[] is the index;
 * with `vary`, x is f32[?], of 1 + index % 5 elements. class_of: the samples 0 and 1 have class 9, 2 to 7
 * class 3, all others 5. */
typedef struct numbers {
  int64_t count; /* -1: endless */
  int32_t vary;
  int64_t fail_at;                  /* reading this index fails; 0: no failure */
  int64_t corrupt_from, corrupt_to; /* the indices from .. to - 1 cannot be read; 0, 0: all can */
  int32_t forget;                   /* y is not written */
  int64_t ends_at;                  /* the stream returns TN_EOF here; 0: never */
  int64_t epoch;                    /* the epoch in the description */
  int64_t hang_at;                  /* reading this index ends only when the host stops; 0: never */
  /* the seconds that pass in it, and when: once the flag is set; NULL: no time passes */
  double hang_s;
  const atomic_int *hang_from;
  int32_t odd_class;     /* class_of gives a class that the description does not have */
  const double *weights; /* of the samples, or NULL */
  int32_t *opens;        /* how often it was opened, and how often closed; NULL: not counted */
  atomic_int *reads;     /* counts the reads of each index; NULL: they are not counted */
} numbers;

extern const tn_source numbers_source, numbers_stream;

/* y = x + 1000, any length; per sample. */
extern const tn_transform shift_transform;
/* Adds a number drawn from the key; training only. */
extern const tn_transform jitter_transform;
/* The same; it can run on the device, with the integer part of 1000 times the number as its draw. Its draw
 * fails for sample 5 with options that are not NULL. */
extern const tn_transform toss_transform;
/* y = x; it can run on the device. */
extern const tn_transform pass_transform;
/* Repeats the values: f32[n] -> f32[2 n]. */
extern const tn_transform twice_transform;
/* f32[?] -> f32[8], filled up with -1. */
extern const tn_transform fix_transform;
/* Reverses the batch; per batch. */
extern const tn_transform reverse_transform;
/* Fails for samples whose first value is 5. */
extern const tn_transform picky_transform;

/* backends/onednn/kernels/attention.h: inner loops of attention over tiles of TN_ATTENTION_TILE queries and
 * as many keys, in f32. A call handles a strip of TN_ATTENTION_STRIP queries; their scores are rows of
 * TN_ATTENTION_TILE numbers. */
#pragma once

#include <stdbool.h>

#include "backends/onednn/simd/loops.h"

enum {
  TN_ATTENTION_TILE = 64,
  TN_ATTENTION_STRIP = 16, /* the step of keys, too: no vector is wider */
  TN_ATTENTION_WIDTH = 128 /* of a head, at most */
};

/* The score of a key that a query does not see, and every score of a mask up to it: finite, so that a row of
 * hidden keys has a softmax, which the first key that it sees makes 0. */
#define TN_ATTENTION_HIDDEN (-1e30f)

/* A strip whose keys are hidden by a mask or by their distance. Row i sees keys begin[i] .. end[i] - 1 of the
 * tile, where the mask lets it. */
typedef struct tn_attention_hiding {
  float *scores;
  int64_t rows, columns; /* as in tn_attention_strip */
  int64_t keys;          /* that exist, of the columns */
  float scale;
  const float *floats;  /* added to the scores; NULL: no such mask */
  const uint8_t *bools; /* 0: hidden; NULL: no such mask */
  int64_t row, key;     /* the distances of their rows and keys; key is 0 or 1 */
  int32_t begin[TN_ATTENTION_STRIP], end[TN_ATTENTION_STRIP];
} tn_attention_hiding;

/* The queries of row i of a strip attend to the first `visible[i]` keys. */
typedef struct tn_attention_strip {
  float *scores;
  int64_t rows, columns; /* computed scores; columns is a multiple of TN_ATTENTION_STRIP */
  const int32_t *visible;
  float scale;
} tn_attention_strip;

typedef struct tn_attention_loops {
  /* Scores become scale s + mask, and TN_ATTENTION_HIDDEN for hidden keys. */
  void (*hide)(const tn_attention_hiding *t);
  /* Online softmax (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018): scores become
   * exp(scale s - m) with m the largest so far, and 0 for hidden keys. `largest` and `sum` are updated;
   * `rescale` gets the factor of earlier sums. All three have TN_ATTENTION_STRIP numbers. */
  void (*softmax_step)(const tn_attention_strip *t, float *largest, float *sum, float *rescale);
  /* Scores become probabilities, exp(scale s - lse), and 0 for hidden keys. `whole`: the strip has all keys,
   * and each row is divided by its sum, which differs from 1 by the rounding of lse. */
  void (*probabilities)(const tn_attention_strip *t, const float *lse, bool whole);
  /* d = p (d - delta) scale, from probabilities p and the gradient d with respect to them. */
  void (*score_grad)(const tn_attention_strip *p, float *d, const float *delta);
  /* y = rescale y + more, or y + more where rescale is NULL, for n rows of `width`. Rows of y are `step`
   * apart, rows of more are dense. */
  void (*accumulate)(float *y, int64_t step, const float *more, const float *rescale, int64_t n,
                     int64_t width);
  /* y / sum, and lse = largest + ln(sum), for n <= TN_ATTENTION_STRIP rows. */
  void (*normalize)(float *y, int64_t step, float *lse, const float *largest, const float *sum, int64_t n,
                    int64_t width);
  /* delta = the dot product of x and y for each of n rows; x_step and y_step are the distances of rows. */
  void (*row_dots)(const float *x, int64_t x_step, const float *y, int64_t y_step, float *delta, int64_t n,
                   int64_t width);
} tn_attention_loops;
TN_LOOPS_DECLARE(tn_attention_loops, tn_loops_attention);

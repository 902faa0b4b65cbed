/* backends/onednn/kernels/attention.h: inner loops of attention over tiles of TN_ATTENTION_TILE queries and
 * as many keys, in f32. They see TN_ATTENTION_STRIP queries at a time, whose scores are rows of
 * TN_ATTENTION_TILE numbers. */
#ifndef TN_BACKENDS_ONEDNN_KERNELS_ATTENTION_H
#define TN_BACKENDS_ONEDNN_KERNELS_ATTENTION_H

#include "backends/onednn/simd/loops.h"

enum {
  TN_ATTENTION_TILE = 64,
  TN_ATTENTION_STRIP = 16, /* what keys are counted in, too: no vector is wider */
  TN_ATTENTION_WIDTH = 128 /* of a head, at most */
};

/* Row i of a strip sees its keys up to the first `sees[i]`. */
typedef struct tn_attention_strip {
  float *scores;
  int64_t rows, columns; /* of scores that are there; a multiple of TN_ATTENTION_STRIP */
  const int32_t *sees;
  float scale;
} tn_attention_strip;

typedef struct tn_attention_loops {
  /* Scores become exp(scale s - m) with m the largest so far, 0 for keys that are not seen. `largest` and
   * `sum` are updated, and `fade` is what earlier sums are to be multiplied with (Milakov and Gimelshein,
   * "Online normalizer calculation for softmax", 2018). All three have TN_ATTENTION_STRIP numbers. */
  void (*soften)(const tn_attention_strip *t, float *largest, float *sum, float *fade);
  /* Scores become probabilities, exp(scale s - lse), 0 for keys that are not seen. */
  void (*recall)(const tn_attention_strip *t, const float *lse);
  /* d = p (d - delta) scale: of probabilities and of the gradient with respect to them */
  void (*differ)(const tn_attention_strip *p, float *d, const float *delta);
  /* y = fade y + more; fade NULL: y + more. n rows of `width`: of y they lie `step` apart, of more densely.
   */
  void (*gather)(float *y, int64_t step, const float *more, const float *fade, int64_t n, int64_t width);
  /* y / sum, and lse = largest + ln(sum), for n <= TN_ATTENTION_STRIP rows */
  void (*finish)(float *y, int64_t step, float *lse, const float *largest, const float *sum, int64_t n,
                 int64_t width);
  /* delta = sum of x y for each of n rows, which lie so far apart */
  void (*dot)(const float *x, int64_t x_step, const float *y, int64_t y_step, float *delta, int64_t n,
              int64_t width);
} tn_attention_loops;
TN_LOOPS_DECLARE(tn_attention_loops, tn_loops_attention);

#endif

/* core/step/update/watch.h: the numbers of [run] watch, as outputs of the program `watch`
 * (docs/decisions/0106-watch.md).
 *
 * TN_OUTPUT_WATCH_SUMS is a vector of f32: for each trained parameter TN_WATCH_SUMS numbers. With
 * watch_histograms, TN_OUTPUT_WATCH_COUNTS is a vector of i32: for each parameter the counts of its gradient,
 * and those of its weights, in TN_WATCH_BUCKETS buckets each.
 *
 * The buckets are those of magnitudes that grow by 2^(1/4), for both signs, around one for the magnitudes
 * below 2^-32. So counts of parameters can be added up, and no pass over the numbers has to find their range
 * first. */
#pragma once

#define TN_OUTPUT_WATCH_SUMS   "watch.sums"
#define TN_OUTPUT_WATCH_COUNTS "watch.counts"

enum {
  TN_WATCH_SQUARES = 0, /* the sum of the squares of the gradient, of the weights, and of the update */
  TN_WATCH_WEIGHT_SQUARES,
  TN_WATCH_UPDATE_SQUARES,
  TN_WATCH_RANGES, /* with histograms: least, greatest and sum of the gradient; the same of the weights */
  TN_WATCH_SUMS = TN_WATCH_RANGES + 6
};

enum {
  TN_WATCH_PER_OCTAVE = 4,
  TN_WATCH_LEAST = -32,      /* exponent of the smallest magnitude that is told from 0 */
  TN_WATCH_MAGNITUDES = 160, /* buckets of one sign; the last one has all from 2^(7 3/4) on */
  TN_WATCH_FINITE = 2 * TN_WATCH_MAGNITUDES + 1,
  TN_WATCH_BUCKETS = TN_WATCH_FINITE + 1 /* the last one has NaN */
};

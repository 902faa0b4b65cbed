/* backends/cuda/device/reduce_args.cuh: the arguments of reductions, for host and device. */
#ifndef TN_CUDA_REDUCE_ARGS_CUH
#define TN_CUDA_REDUCE_ARGS_CUH

enum { REDUCE_THREADS = 256, REDUCE_LOOPS = 4, REDUCE_COLUMN_PACK = 4 };

/* Nested loops over dimensions of the operand, outermost first. */
struct reduce_loops {
  long long dims[REDUCE_LOOPS], strides[REDUCE_LOOPS];
  int n, pad;
};

/* Runs: the innermost dimension is reduced. A group of `lanes` threads reads the elements of a result in units, which
 * are vectors or single elements: `units` of them in a run, and a run for each place of `reduced`.
 * Columns: the innermost dimension, of `columns` elements, is kept. `width` neighbouring threads read neighbouring
 * units of a row, `rows` of them read different rows of the same columns, `lanes` together; a row for each place of
 * `reduced`. The columns of a place of `kept` are divided into `tiles`.
 * `vector` is the number of elements in a unit, or 0: units are single elements. The last vector of a run reaches into
 * the padding behind it, where `row` is not 0: the run then has so many elements.
 * A task is a result, or a tile; a part of it has `part` units of the runs, or rows, of all `steps`. With several parts
 * the accumulators go to `workspace`, [part][result], and a second launch merges them. */
struct reduce_args {
  const void *x, *y, *mean, *rstd, *target; /* absent operands are NULL */
  void *out[2], *workspace;
  struct reduce_loops kept, reduced;
  long long results, count; /* count: elements of a result */
  long long units, columns, tiles, steps, part, parts, tasks, row;
  long long step_outer, step_inside; /* of the lanes: whole runs and units */
  long long ignore, class_stride;    /* cross_entropy */
  double smoothing;
  int vector, lanes, width, rows, target_bytes, pad;
};

#endif

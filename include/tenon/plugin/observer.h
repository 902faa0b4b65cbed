/* tenon/plugin/observer.h: an observer receives the events of a run: progress bar, metric files, reports.
 *
 * Life cycle: open (main thread) -> event, in order, on one thread of the host that launches no steps ->
 * close. A slow observer delays other observers; training runs on. The host logs the failure of an observer
 * and calls it no more, except for close.
 *
 * An observer may end the run: `event` returns TN_ESTOPPED, with the reason as text:
 *
 *     return tn_fail(env, TN_ESTOPPED, NULL, "the loss is %g, below %g", loss, least);
 *
 * The run ends as it does at [run] max_time: after the steps that were launched it validates, writes a
 * checkpoint, and has the status "observer". Asked for at an EPOCH_END, the end comes before the next step.
 * The observer gets the later events, the last one RUN_END. The first request counts. */
#ifndef TENON_PLUGIN_OBSERVER_H
#define TENON_PLUGIN_OBSERVER_H

#include "tenon/plugin/plugin.h"

TN_BEGIN_C

enum {
  TN_EVENT_RUN_START = 1,
  TN_EVENT_STEP = 2,       /* metrics of a training step; they arrive some steps later */
  TN_EVENT_VALID_STEP = 3, /* a batch of a validation; `valid` has the means so far */
  TN_EVENT_EPOCH_END = 4,  /* train: means of the epoch; valid: means of its validation */
  TN_EVENT_CHECKPOINT = 5,
  TN_EVENT_RUN_END = 6,
  TN_EVENT_PROFILE =
      7, /* the steps of [run] profile have been measured; `table` shows where their time went */
  TN_EVENT_STRAGGLER = 8, /* a rank is slower than the others; `text` names it, with its time */
  TN_EVENT_WATCH = 9,     /* after the STEP of a step of [run] watch: `watched` and `histograms` */
  TN_EVENT_SAMPLES = 10   /* [run] samples: after a validation, in front of its EPOCH_END: `media` */
};

/* Value of a loss or metric, by its name; "loss" is the total. Frozen: events have arrays of them. */
typedef struct tn_metric {
  const char *name;
  double value;
} tn_metric;

/* How many numbers of a group of parameters lie in each bucket: those above the limit before and up to its
 * own. The first bucket has no limit below, the last one none above. Frozen: events have arrays of them. */
typedef struct tn_histogram {
  const char *name;    /* "gradients/fc1" */
  int64_t n;           /* numbers, without those that are NaN */
  double min, max;     /* the least and the greatest of them */
  double sum, squares; /* of all of them, and of their squares */
  int32_t n_buckets;
  const double *limits, *counts; /* ascending upper limits; numbers in each bucket */
} tn_histogram;

/* A picture or a text for people. Frozen: events have arrays of them. */
typedef struct tn_media {
  int32_t kind;          /* TN_MEDIA_... */
  int32_t width, height; /* of a picture, in pixels; else 0 */
  const char *name;      /* "samples/0": a group and a name in it, equal in all events of the run */
  const void *data;      /* PNG: a whole file; TEXT: UTF-8 in Markdown, without a zero at its end */
  size_t bytes;
} tn_media;
enum { TN_MEDIA_PNG = 1, TN_MEDIA_TEXT = 2 };

/* Facts about the run. Valid until close. */
typedef struct tn_run_info {
  uint32_t struct_size;
  const char *name, *folder; /* folder "" when nothing is written */
  int64_t epochs, steps;     /* planned; -1: unknown */
  /* batch: samples in a step, over all devices and micro-batches; with [schedule.accumulate] the mean of the
   * steps that are left, rounded. */
  int64_t steps_per_epoch, batch;
  int32_t terminal; /* stderr is a terminal */
  int32_t terminal_columns;
  /* The step at which a resumed run continues; 0 for a new run. Events of this and later steps occur again,
   * so an observer that appends to a log removes theirs first. */
  int64_t first_step;
  int32_t epoch_ended; /* 1: the EPOCH_END at first_step was reported before and does not recur */
  int32_t quiet;       /* 1: the caller asked for no more output than necessary */
  /* The device. Texts are never NULL. */
  const char *backend;            /* the name in use: "onednn" */
  const char *extends;            /* its family; "" for a family itself */
  const char *libraries;          /* what its speed depends on: "oneDNN 2.6.3"; "" */
  const char *passed_over;        /* reasons against the backends before it in [backend] use; "" */
  const char *device;             /* its own name, "Intel(R) Xeon(R) Processor" */
  const char *precision;          /* name of the policy */
  int32_t devices, threads;       /* threads of one device */
  const char *source;             /* of the training data */
  int64_t samples, valid_samples; /* in an epoch, and in a validation; 0 where the run has no validation */
  int64_t classes;                /* of the first target with classes; 0 where no target has classes */
  int64_t parameters;             /* trained numbers */
  int64_t planned_bytes;          /* device memory of one device, as `tenon plan` says */
  int32_t resumed;                /* 1: the run continues an earlier one */
  int32_t replayed;               /* 1: with the kernels that its plan.json records */
  /* Lines, with '\n' between: what a resumed run does otherwise than before, "[data] batch = 8 > 16"; what
   * became of its position; that there was no run to resume; which groups are frozen, and until when; what
   * [run] overfit, limit_train, limit_valid and [data] balance make of an epoch. "" */
  const char *remarks;
  int64_t frozen;  /* numbers of the parameters that [group.NAME] freeze keeps in the present epoch */
  const char *use; /* the text of [backend] use that chose the backend: "auto" takes the fastest */
  const char *better_policy; /* for which the device has kernels for this model that it lacks otherwise; "" */
  int64_t data_batch;        /* [data] batch; a step has [optimizer] accumulate of them */
} tn_run_info;

typedef struct tn_event {
  uint32_t struct_size;
  int32_t kind;        /* TN_EVENT_... */
  int64_t epoch, step; /* epoch: from 0, observers show epoch + 1; step counts over the whole run */
  int64_t step_in_epoch;
  int64_t steps_in_epoch; /* -1: unknown; for VALID_STEP, steps of the validation */
  double seconds;         /* since the run started */
  double samples_per_s;   /* over the recent steps; 0: unknown */
  double lr;
  int32_t n_train, n_valid;
  const tn_metric *train, *valid;
  /* CHECKPOINT: its path; PROFILE: that of profile.json; RUN_END: the reason; STRAGGLER: a sentence; else ""
   */
  const char *text;
  /* Loss scaling, clipping and check_finite skip updates whose gradients are not finite. STEP: 1 where this
   * update was skipped; EPOCH_END: number of skipped updates; -1: the run skips no updates. */
  int64_t skipped;
  double loss_scale; /* of the step; 0: no loss scaling */
  const char *table; /* PROFILE: lines of at most 80 columns, valid until close; else NULL */
  /* WATCH: "gradient_norm/GROUP", "weight_norm/GROUP" and "update_ratio/GROUP" of each group; with
   * watch_histograms "gradients/GROUP" and "weights/GROUP". */
  int32_t n_watched, n_histograms;
  const tn_metric *watched;
  const tn_histogram *histograms;
  double sparsity; /* EPOCH_END: the share of weights that [prune] has made zero; -1: there is no [prune] */
  /* STEP with [schedule.accumulate]: the samples of this update, over all devices; 0: tn_run_info tells those
   * of all, or another event. */
  int64_t samples;
  /* SAMPLES: a picture of each sample, "samples/0" ..., and the text "samples/table", a table with a row for
   * each; of both those that the values of the samples allow. */
  int32_t n_media;
  const tn_media *media;
} tn_event;

typedef struct tn_observer {
  tn_item item;
  int32_t always; /* 1: active in every run, unless [run] observers has -NAME */
  int32_t prints; /* 1: it writes to stdout or stderr, so that `always` holds only in runs of an application
                     that asks for progress (tn_run_options.progress), as the program `tenon` does */
  tn_status (*open)(tn_env *env, const void *options, const tn_run_info *run, void **observer);
  /* `event` and its texts are valid during the call. TN_ESTOPPED: the run is to end. */
  tn_status (*event)(tn_env *env, void *observer, const tn_event *event);
  void (*close)(tn_env *env, void *observer);
} tn_observer;

TN_END_C
#endif

/* plugins/precision/precision.h: the options of the policies, and loss scaling. */
#pragma once

#include "tenon/plugin/precision.h"

enum { PRECISION_FOLLOW = 0, PRECISION_SINGLE = 1 };
enum { SCALING_NONE = 0, SCALING_STATIC = 1, SCALING_DYNAMIC = 2 };

typedef struct precision_options {
  int32_t reduce, norm, loss, pointwise; /* PRECISION_...: the type of each class of ops */
  int32_t scaling;                       /* SCALING_... */
  double init_scale, growth_factor, backoff_factor;
  int64_t growth_interval;
} precision_options;

/* scaling.c */
tn_status precision_scale(tn_build *b, const void *options);
tn_status precision_update(tn_build *b, const void *options);

/* backends/onednn/pointwise/compile.h: a region while it is being compiled. Private to lower.c, fuse.c and
 * compile.c. */
#pragma once

#include "backends/onednn/pointwise/program.h"

typedef struct tn_tile_compiler {
  tn_pw_region region;
  int32_t first;   /* the segment is axes `first` and on */
  int64_t segment; /* elements */
  int64_t cycle;   /* tiles are multiples of it */
} tn_tile_compiler;

/* Replaces loads by one of the ways along a segment, and instructions for which there is no loop. */
void tn_tile_lower(tn_tile_compiler *c);
/* Joins instructions into pairs. `uses` has room for every value. */
void tn_tile_fuse(tn_pw_region *region, int32_t *uses);

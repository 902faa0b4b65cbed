/* core/compile/packing/place_intervals.h: places live intervals one after another in an arena. */
#pragma once

#include <stdbool.h>

#include "core/compile/packing/pack_intervals.h"

/* The gap that an interval gets, between those that are live at the same time: the smallest one that fits, or
 * the lowest one. */
typedef enum tn_interval_fit { TN_FIT_SMALLEST, TN_FIT_LOWEST } tn_interval_fit;

/* The bytes of an arena that placed intervals occupy. */
typedef struct tn_occupied_bytes tn_occupied_bytes;

/* Empty, for intervals whose last step is `last` at most. */
tn_status tn_occupied_create(const void *handle, int32_t last, tn_occupied_bytes **occupied);
/* NULL does nothing. */
void tn_occupied_destroy(tn_occupied_bytes *occupied);
/* Removes all intervals, and keeps its memory for others. */
void tn_occupied_clear(tn_occupied_bytes *occupied);

/* Gives an interval the offset of a gap, or of the end of the occupied bytes where no gap fits. *placed
 * false: it would end behind `most`, and was not added. */
tn_status tn_occupied_place(tn_occupied_bytes *occupied, tn_live_interval *interval, tn_interval_fit fit,
                            int64_t most, bool *placed);

/* core/compile/capture_parts.h: the parts of a program that a device captures.
 *
 * A launch that cannot be captured cuts its segment: the launches before it are one captured part, those
 * after it another, and the launch itself is enqueued in every run. A part never awaits an event of another
 * capture: a captured part awaits its own collectives at its end, and collectives outside of captures at its
 * beginning. A step in the middle of captured launches that awaits such a collective therefore begins a part,
 * so that a collective which cannot be captured still overlaps with the launches up to that step. Copies of
 * offloaded values are captured, and end with their part at the latest; but for those of groups that are
 * placed on the host, which are as collectives that cannot be captured. */
#pragma once

#include "core/base/text/text.h"
#include "core/compile/program.h"

typedef struct tn_capture_part {
  int32_t segment, first, n; /* n steps of one segment */
  bool captured;    /* false: the steps are enqueued in every run; fallback segments are such a part too */
  tn_awaits awaits; /* captured: steps of earlier parts on other streams that the beginning awaits */
  tn_awaits joins;  /* captured: the steps of this part on other streams that its end awaits */
} tn_capture_part;

/* A bound for the number of parts. */
static inline size_t tn_capture_parts_most(const tn_program *program) {
  return (size_t)program->n_steps + (size_t)program->n_segments;
}
/* Writes the parts of all segments, in order, and returns their number. captures: the device captures;
 * otherwise every segment is one part. */
int32_t tn_capture_parts_list(const tn_program *program, bool captures, tn_capture_part *parts);

/* Whether a step of a part is a launch that should have been captured. Those on the fallback are reported by
 * themselves, and copies of placed groups are never captured. */
bool tn_capture_part_lacks(const tn_program *program, const tn_capture_part *part, int32_t step);
/* Appends why a step cannot be captured: "communicator round_table cannot be captured". */
void tn_capture_part_reason(const tn_step *step, tn_text *text);

/* Appends "2 captured parts, 1 launch not captured: all_reduce of bucket 2 (communicator round_table cannot
 * be captured)". Returns the number of launches that are not captured, without those on the fallback. */
int32_t tn_capture_parts_describe(const tn_program *program, const tn_capture_part *parts, int32_t n,
                                  tn_text *text);

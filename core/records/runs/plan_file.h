/* core/records/runs/plan_file.h: plan.json of a run folder: written when a run starts, read when it
 * resumes. */
#pragma once

#include <jansson.h>

#include "core/compile/kernels/recorded_choices.h"
#include "core/step/programs/programs.h"

/* The choices that plan.json of the resumed run records, where they are to be repeated: with the same
 * backend, versions and settings (run_differences.h); else, and where the run does not resume, *choices is
 * NULL. A missing or invalid plan.json gives a warning and NULL. Resolves `--resume auto`: run->resume is the
 * folder afterwards, or NULL. */
tn_status tn_plan_file_read(tn_run *run, const tn_device *device, const tn_recorded_choices **choices);

/* Writes FOLDER/plan.json: the report of `tenon plan` and every choice. Where the run repeats recorded
 * choices and a program still has another hash than in the file, a warning names the first difference. */
tn_status tn_plan_file_keep(tn_run *run, const tn_device *device, const tn_program_set *set, int32_t slots,
                            const char *folder);

/* The text of such a file; the caller's (tn_release). Between processes of a run: the first makes the
 * choices, and the others take them, so that all compile the same programs. */
tn_status tn_plan_file_print(tn_run *run, const tn_device *device, const tn_program_set *set, int32_t slots,
                             char **text);
tn_status tn_plan_file_take(tn_run *run, const char *text, size_t bytes);

/* plan_difference.c: appends the first difference between two records of a program. */
void tn_plan_describe_differences(const json_t *then, const json_t *now, tn_text *text);

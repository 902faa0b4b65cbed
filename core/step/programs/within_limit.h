/* core/step/programs/within_limit.h: the bytes that programs need of [run] memory_limit and of the device,
 * and an attempt to compile them within the limit. */
#pragma once

#include "core/step/programs/programs.h"

/* The input slots of the executor: those of the request, or of a training. */
int32_t tn_within_limit_slots(const tn_run *run, const tn_program_request *request);
/* The bytes that memory_limit counts; and those of the device, without staging buffers, which are memory of
 * the host. */
int64_t tn_within_limit_planned(const tn_run *run, const tn_target *target, const tn_program_request *request,
                                const tn_program_set *set);
int64_t tn_within_limit_on_device(const tn_run *run, const tn_program_request *request,
                                  const tn_program_set *set);
/* The memory for the run: on a device with memory of its own, that which is not in use. The host's may be
 * swapped out, so all of it counts. 0: unknown. */
int64_t tn_within_limit_memory(const tn_device_properties *properties);
/* The bytes that the programs have too many for memory_limit or the device; at most 0: they fit. */
int64_t tn_within_limit_excess(const tn_run *run, const tn_target *target, const tn_program_request *request,
                               const tn_program_set *set);

/* Compiles; under a limit, if need be, again with an arena of the bytes that the limit leaves. */
tn_status tn_within_limit_attempt(tn_run *run, const tn_target *target, const tn_program_request *request,
                                  tn_program_set *set);

/* stream_weights.c: where the programs of a set do not fit and tn_programs_can_stream allows it, makes new
 * ones whose large parameters are streamed, but for as many as fit. Where nothing helps but that, values are
 * rematerialized as well. Sets request->stream; the set may still not fit. */
tn_status tn_within_limit_stream(tn_run *run, const tn_target *target, tn_program_request *request,
                                 tn_program_set *set);

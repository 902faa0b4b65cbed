/* core/train/feed/feeder.h: moves batches from a loader into the input slots of an executor. */
#pragma once

#include "core/data/loader.h"
#include "core/step/programs/programs.h"

typedef struct tn_feeder tn_feeder;
/* Takes the loader over from *opened, or creates one where that is NULL, and connects its fields with the
 * inputs of `program`. Fields of another type and inputs without a field are errors. */
tn_status tn_feeder_create(tn_run *run, int32_t split, tn_loader **opened, tn_executor *executor,
                           int32_t index, const tn_program *program, int32_t slots, tn_feeder **feeder);
/* A feeder of training samples of a size, counted from 0, of [model] sizes, for the program of that size, in
 * place of `before`, whose open source it reads. */
tn_status tn_feeder_create_sized(const tn_feeder *before, int32_t size, int32_t index,
                                 const tn_program *program, tn_feeder **feeder);
/* Opens the loader of a split before the programs are compiled, for tn_program_request.loaders; while
 * planning only one whose transforms the device may apply, since a plan needs no other data. *loader is NULL
 * if the data cannot be opened, which tn_feeder_create reports, and a plan with a warning. The caller
 * destroys a loader that no feeder has taken. */
tn_status tn_feeder_open_loader(tn_run *run, int32_t split, const tn_target *target, int32_t slots,
                                tn_loader **loader);
/* The loader options of a split, for a loader that reads ahead into `slots` slots. `target` decides which
 * transforms the device applies; NULL: none. */
tn_status tn_feeder_options(tn_run *run, int32_t split, const tn_target *target, int32_t slots,
                            tn_loader_options *options);
/* Whether [run] overfit decides what both splits read. */
bool tn_run_overfits(const tn_run *run);
/* Turns TN_EUNAVAILABLE, a missing split, into TN_EIO for splits that are required. */
tn_status tn_feeder_require(tn_run *run, tn_status status);
void tn_feeder_destroy(tn_feeder *feeder);
const tn_loader *tn_feeder_loader(const tn_feeder *feeder);
/* The same, for tn_loader_profile. */
tn_loader *tn_feeder_profiled_loader(tn_feeder *feeder);
/* Updates in an epoch; batches, where they differ ([schedule.accumulate]). */
int64_t tn_feeder_updates(const tn_feeder *feeder);
/* Starts an epoch at update number `first`; submits all slots to the loader. */
tn_status tn_feeder_start(tn_feeder *feeder, int64_t epoch, int64_t first);
/* The same of an epoch whose updates differ in their batches. */
tn_status tn_feeder_start_updates(tn_feeder *feeder, int64_t epoch, const tn_epoch_updates *updates);
/* Stops the loader, so that another loader may write into the slots. */
tn_status tn_feeder_stop(tn_feeder *feeder);
/* Waits for the next batch; *samples counts the real samples of all ranks. TN_EOF: the epoch has ended. */
tn_status tn_feeder_next(tn_feeder *feeder, int32_t *slot, int64_t *samples);
/* The number of the length, of [model] lengths, of the batch that came last. */
int32_t tn_feeder_length(const tn_feeder *feeder);
/* Submits a slot for another batch, after its step was waited for and its outputs were read. */
tn_status tn_feeder_return(tn_feeder *feeder, int32_t slot);

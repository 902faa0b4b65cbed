/* core/train/loop/feeder.h: batches from a loader into the slots of an executor. */
#ifndef TN_CORE_TRAIN_LOOP_FEEDER_H
#define TN_CORE_TRAIN_LOOP_FEEDER_H

#include "core/data/loader.h"
#include "core/train/programs/programs.h"

typedef struct tn_feeder tn_feeder;
/* Feeds `program` of the executor from one split. Names the field that does not fit. */
tn_status tn_feeder_create(tn_run *run, int32_t split, tn_executor *executor, int32_t index,
                           const tn_program *program, int32_t slots, tn_feeder **feeder);
/* What the configuration asks of the loader of a split that reads ahead into so many slots. */
tn_status tn_feeder_options(tn_run *run, int32_t split, int32_t slots, tn_loader_options *options);
/* A split that must be there and is not (TN_EUNAVAILABLE) is like a file that is not: TN_EIO. */
tn_status tn_feeder_require(tn_run *run, tn_status status);
void tn_feeder_destroy(tn_feeder *feeder);
const tn_loader *tn_feeder_loader(const tn_feeder *feeder);
/* Updates in an epoch. */
int64_t tn_feeder_updates(const tn_feeder *feeder);
/* Begins an epoch at an update; all slots are handed to the loader. */
tn_status tn_feeder_start(tn_feeder *feeder, int64_t epoch, int64_t first);
/* The loader stops writing into the slots, so that another may. */
tn_status tn_feeder_stop(tn_feeder *feeder);
/* Waits for the next batch; *samples are the real ones of all ranks. TN_EOF: the epoch is over. */
tn_status tn_feeder_next(tn_feeder *feeder, int32_t *slot, int64_t *samples);
/* Gives a slot back that has been waited for, and whose outputs have been read, for another batch. */
tn_status tn_feeder_return(tn_feeder *feeder, int32_t slot);

#endif

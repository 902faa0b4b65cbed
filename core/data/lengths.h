/* core/data/lengths.h: samples whose sizes differ in one dimension. A reader pads each to the longest length,
 * and a full batch shrinks to the smallest length that holds its longest sample. A field `length` has the
 * size of each sample before it was padded: the source's own, or one that the chain adds. */
#pragma once

#include "core/data/batch.h"
#include "core/data/reader.h"

/* Gives the padded fields of the chain the longest length, and adds `length` where the source lacks it.
 * Called once, behind the inference of types. */
tn_status tn_lengths_prepare(tn_env *env, const tn_loader_options *options, tn_transform_chain *chain);

/* Pads the sample that the reader holds into the batch, and writes its length. */
tn_status tn_lengths_pad_sample(tn_reader *reader);

/* Moves the rows of a batch together, which all have room for the longest length. `rows` of them are filled.
 * Returns the number of the length. */
int32_t tn_lengths_shrink(const tn_transform_chain *chain, void *const *fields, int64_t rows, int64_t batch);

/* core/train/samples/sample_media.h: samples as pictures and as a table. */
#pragma once

#include "core/base/text/text.h"
#include "core/train/samples/continuation.h"
#include "tenon/plugin/observer.h"

/* The media of a set; names stay as long as the set, data until tn_sample_media_clear. */
typedef struct tn_sample_media {
  tn_media *v; /* room for a picture of each sample and the table */
  int32_t n;
  const char **names; /* "samples/0" ... */
} tn_sample_media;

tn_status tn_sample_media_start(tn_sample_set *set, tn_sample_media *media);
/* `c` has no input where there are no continuations. */
tn_status tn_sample_media_make(const tn_sample_set *set, const tn_continuation *c, tn_sample_media *media);
void tn_sample_media_clear(const tn_sample_set *set, tn_sample_media *media);

/* sample_table.c: the values with cells as a table in Markdown (the dialect of GitHub), a row for each
 * sample. The text is empty where no value has cells. */
void tn_sample_table(const tn_sample_set *set, const tn_continuation *c, tn_text *text);

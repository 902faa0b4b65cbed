/* tenon/shuffle_attributes.h: the attributes of the ops that rearrange the channels of images. */
#ifndef TENON_SHUFFLE_ATTRIBUTES_H
#define TENON_SHUFFLE_ATTRIBUTES_H

#include <stdint.h>

typedef struct tn_shuffle_attributes { /* pixel_shuffle, pixel_unshuffle: factor; channel_shuffle: groups */
  int64_t factor, groups;
} tn_shuffle_attributes;

#endif

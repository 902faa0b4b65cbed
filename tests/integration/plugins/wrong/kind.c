/* Brings an item of a kind that is still to come, and one that is known. */
#include "wrong.h"

static const tn_item dream = {(uint32_t)sizeof(tn_item),   77, "dream", "a dream", NULL,
                              (uint32_t)sizeof(tn_option), 0};
WRONG_SCHEDULE(half);

TN_PLUGIN(kind, "1.0", "MIT", &dream, &half.item)

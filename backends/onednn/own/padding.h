/* backends/onednn/own/padding.h: positions of storage that hold no element, where blocks do not divide a
 * dimension. Every writer keeps them zero (tenon/base.h). */
#ifndef TN_ONEDNN_PADDING_H
#define TN_ONEDNN_PADDING_H

#include <stdbool.h>

#include "tenon/base.h"

/* Whether there are any. */
bool tn_padding_is(const tn_type *type, const tn_layout *layout);
/* Zeroes them. */
void tn_padding_clear(const tn_type *type, const tn_layout *layout, void *data);

#endif

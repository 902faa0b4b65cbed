/* core/infer/prediction/picture_text.h: what the model sees as a picture in a page. */
#pragma once

#include <stdbool.h>

#include "core/base/env.h"

/* Whether a value of this type is a picture: f32 or u8, [1 or 3, height, width], of at most 512 x 512. */
bool tn_picture_is(const tn_type *type);
/* "data:image/bmp;base64,...": the value, stretched so that its smallest number is black and its largest is
 * white. The caller releases it (tn_release); NULL: out of memory. */
char *tn_picture_text(const void *handle, const tn_type *type, const void *value);

/* core/infer/prediction/picture_source.h: pictures for a model whose data are of another form: arrays,
 * archives, a table. A source that opens pictures (tn_source.open_pictures) reads them as the model's input.
 */
#pragma once

#include "core/infer/prediction/predict_inputs.h"

typedef struct tn_picture_source {
  bool wanted;            /* the inputs are pictures, which the source of [data] does not open */
  tn_source source;       /* for a loader, whose options are the tn_picture_source */
  const tn_source *inner; /* it calls this one */
  const char *field;      /* the model's input */
  int32_t channels;       /* of it */
} tn_picture_source;

/* TN_EINVAL: files are pictures, and the model does not take one. TN_EUNAVAILABLE: no source opens pictures.
 */
tn_status tn_picture_source_open(const tn_predict_inputs *inputs, tn_picture_source *pictures);

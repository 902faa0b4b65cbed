/* core/infer/prediction/picture_source.h: pictures for a model whose data are of another form: arrays,
 * archives, a table. The source image_folder reads them, under the name of the model's input. */
#pragma once

#include "core/infer/prediction/predict_inputs.h"

typedef struct tn_picture_source {
  bool wanted; /* the inputs are pictures, which the source of [data] does not read */
  const tn_source *source;
  const void *options;
  const tn_source *inner; /* image_folder */
  const void *inner_options;
  const char *field; /* the model's input */
  tn_transform_use
      *transforms; /* those of validation, behind one that makes a grey picture of a coloured one */
  int32_t n_transforms;
} tn_picture_source;

/* TN_EINVAL: the model does not take one picture. */
tn_status tn_picture_source_open(const tn_predict_inputs *inputs, tn_picture_source *pictures);

/* plugins/transforms/plugin.c: the descriptor. */
#include "plugins/transforms/transforms.h"

TN_PLUGIN(transforms, "0.1.0", "MIT", &resize_transform.item, &center_crop_transform.item,
          &random_crop_transform.item, &random_resized_crop_transform.item, &random_flip_transform.item,
          &to_float_transform.item, &normalize_transform.item)

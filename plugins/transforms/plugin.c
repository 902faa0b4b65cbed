/* plugins/transforms/plugin.c: the descriptor. */
#include "plugins/transforms/transforms.h"

TN_PLUGIN(transforms, "0.1.0", "MIT", &resize_transform.item, &center_crop_transform.item,
          &random_crop_transform.item, &random_resized_crop_transform.item, &random_flip_transform.item,
          &to_float_transform.item, &normalize_transform.item, &color_jitter_transform.item,
          &grayscale_transform.item, &random_grayscale_transform.item, &random_rotation_transform.item,
          &random_erasing_transform.item, &gaussian_blur_transform.item, &rand_augment_transform.item,
          &trivial_augment_transform.item, &one_hot_transform.item, &mixup_transform.item,
          &cutmix_transform.item)

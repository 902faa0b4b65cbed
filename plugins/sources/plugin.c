/* plugins/sources/plugin.c: the descriptor. */
#include "plugins/sources/sources.h"

TN_PLUGIN(sources, "0.1.0", "MIT", &digits_source.item, &idx_source.item, &image_folder_source.item,
          &random_source.item, &text_source.item)

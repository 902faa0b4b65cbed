/* plugins/sources/table/kinds/kinds.c: the list of kinds. */
#include "plugins/sources/table/kinds/kinds.h"

const table_kind *const table_kinds[] = {
    &kind_number, &kind_numbers, &kind_time,  &kind_category, &kind_categories, &kind_sequence, &kind_boxes,
    &kind_text,   &kind_tokens,  &kind_image, &kind_mask,     &kind_audio,      &kind_array};
const int32_t table_n_kinds = sizeof(table_kinds) / sizeof(*table_kinds);

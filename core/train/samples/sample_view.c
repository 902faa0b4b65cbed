#include "core/train/samples/sample_view.h"

/* The first one that takes a value is its view. */
static const tn_sample_view *const views[] = {&tn_box_view,     &tn_mask_view,  &tn_mask_score_view,
                                              &tn_picture_view, &tn_label_view, &tn_score_view,
                                              &tn_token_view,   &tn_number_view};

const tn_sample_view *tn_sample_view_find(const tn_sample_set *set, const tn_sample_value *value) {
  for (size_t i = 0; i < sizeof views / sizeof *views; i++)
    if (views[i]->takes(set, value)) return views[i];
  return NULL;
}

/* core/train/samples/sample_view.h: how the values of samples are shown: as a picture, or as a cell of a
 * table. */
#pragma once

#include "core/base/text/text.h"
#include "core/formats/canvas.h"
#include "core/train/samples/sample_set.h"

/* One kind of value. */
typedef struct tn_sample_view {
  bool (*takes)(const tn_sample_set *set, const tn_sample_value *value);
  /* Sample i as a picture, whose rgb the caller releases; NULL: the value is a cell. */
  tn_status (*draw)(const tn_sample_set *set, const tn_sample_value *value, int64_t i, tn_canvas *canvas);
  /* Sample i as text, without escapes. */
  void (*print)(const tn_sample_set *set, const tn_sample_value *value, int64_t i, tn_text *text);
} tn_sample_view;

/* The view of a value; NULL: it cannot be shown. */
const tn_sample_view *tn_sample_view_find(const tn_sample_set *set, const tn_sample_value *value);

/* token_cell.c: the view of a sequence of whole numbers; n of them as text. */
extern const tn_sample_view tn_token_view;
void tn_tokens_print(const tn_sample_set *set, const tn_sample_value *value, const char *row, int64_t n,
                     tn_text *text);
/* cells.c: classes, scores of classes, few numbers. */
extern const tn_sample_view tn_label_view, tn_score_view, tn_number_view;
/* boxes_panel.c: boxes over a picture. */
extern const tn_sample_view tn_box_view;
/* panels.c: masks, scores of masks, pictures. */
extern const tn_sample_view tn_mask_view, tn_mask_score_view, tn_picture_view;

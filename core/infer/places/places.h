/* core/infer/places/places.h: predictions that are places in a picture: masks, whose classes are those with
 * the highest scores, and boxes; and predictions that are pictures themselves. */
#pragma once

#include <jansson.h>

#include "core/formats/canvas.h"
#include "core/infer/prediction/forward_pass.h"

enum { TN_PLACES_NONE = 0, TN_PLACES_MASKS, TN_PLACES_BOXES, TN_PLACES_PICTURES };
enum { TN_MASK_CLASSES = 256 };

typedef struct tn_places {
  const tn_forward *forward;
  int32_t kind; /* TN_PLACES_... */
  const char *masks,
      *show;        /* folders for masks or pictures, and for pictures with places over them; NULL: none */
  double threshold; /* the least score of a box */
  int32_t top;      /* classes of a mask that are listed */
  json_t *document, *names; /* of the classes; names is borrowed from the document; NULL: unknown */
  json_t *taken;            /* names of files that are written */
  int64_t classes, height, width;
  bool classes_last, binary;
  uint8_t *mask;                 /* of the last row */
  int32_t boxes, scores, labels; /* numbers of outputs; labels -1: the model has none */
  int32_t picture;               /* the number of the picture's field in the loader, or -1 */
} tn_places;

/* Finds whether the model predicts masks (scores of classes for each pixel, and a target of class numbers, or
 * yes and no) or boxes (outputs called boxes and scores), or, with a folder for them, pictures, before the
 * folders are used. TN_EINVAL: a folder is
 * named, and the model has neither, or no picture to show. The caller calls tn_places_finish, also after a
 * failure. */
tn_status tn_places_start(const tn_forward *forward, tn_places *places);
void tn_places_finish(tn_places *places);
/* Adds "areas" and "mask", or "boxes", and "shown", to the prediction of a row of a slot, and writes the
 * files. */
tn_status tn_places_row(tn_places *places, int32_t slot, int64_t row, const char *input, json_t *prediction);

/* ---- between the files of this folder ---- */

/* find_places.c: sets kind and the members that belong to it. */
tn_status tn_places_find(tn_places *places);
/* {"class": 3, "name": "cat"} */
json_t *tn_places_class(const tn_places *places, int64_t number);

/* masks.c: the mask of a row, and "areas"; a PNG with a palette of the mask, and "mask". */
void tn_mask_add(tn_places *places, int32_t slot, int64_t row, json_t *prediction);
tn_status tn_mask_write(const tn_places *places, const char *name, json_t *prediction);

/* boxes.c: "boxes", the highest score first; the same boxes on a canvas. */
void tn_boxes_add(const tn_places *places, int32_t slot, int64_t row, json_t *prediction);
void tn_boxes_draw(const tn_places *places, int32_t slot, int64_t row, tn_canvas *canvas);

/* plugins/losses/detection.c: the metric coco_map, the mean average precision of boxes as COCO's evaluation
 * computes it (Lin et al., Microsoft COCO, ECCV 2014). */
#include "plugins/losses/losses.h"

#include <math.h>
#include <stdlib.h>

typedef struct coco_options {
  double iou;
  int64_t boxes;
  int32_t area; /* AREA_... */
} coco_options;

static const tn_option coco_rows[] = {
    TN_OPT(coco_options, iou, TN_OPT_FLOAT, "0", "[0, 1]",
           "the overlap from which a box is found; 0: the mean over 0.5, 0.55 ... 0.95"),
    TN_OPT(coco_options, area, TN_OPT_ENUM, "all", "all|small|medium|large",
           "boxes of this area alone, in pixels: small to 32 x 32, large from 96 x 96"),
    TN_OPT(coco_options, boxes, TN_OPT_INT, "100", ">= 1",
           "so many boxes of a class in a picture count, those with the highest scores"),
    TN_OPT_END};

/* A row of a picture is a list of boxes with these numbers each; the first one has the options. */
enum { BOX_LEFT, BOX_TOP, BOX_RIGHT, BOX_BOTTOM, BOX_CLASS, BOX_SCORE, BOX_MEANT, BOX_NUMBERS };
enum { BOX_CORNERS = 4, COCO_INPUTS = 5, COCO_IOUS = 10, COCO_RECALLS = 101 };
static const double areas_low[] = {0, 0, 1024, 9216}, areas_high[] = {1e10, 1024, 9216, 1e10};

/* ---- a row of each picture ---- */

static tn_status coco_check(tn_build *b) {
  static const int32_t ranks[COCO_INPUTS] = {3, 2, 2, 3, 2};
  for (int32_t i = 0; i < COCO_INPUTS; i++) {
    const tn_type *type = tn_val_type(b, tn_build_in(b, i)),
                  *boxes = tn_val_type(b, tn_build_in(b, i < 3 ? 0 : 3));
    int fits = type->rank == ranks[i] && boxes->rank == 3 && type->dims[1] == boxes->dims[1];
    if (!fits || (type->rank == 3 && type->dims[2] != BOX_CORNERS))
      return tn_fail(
          b, TN_EINVAL, NULL,
          "input %d has rank %d, expected boxes (N, n, 4), scores (N, n), classes (N, n), true boxes (N, "
          "m, 4), true classes (N, m)",
          (int)i + 1, (int)type->rank);
  }
  return TN_OK;
}

/* Input i in f32 with the numbers of a box in its last dimension. */
static tn_val coco_numbers(tn_build *b, int32_t i) {
  tn_val value = tn_to_dtype(b, tn_build_in(b, i), TN_F32);
  const tn_type *type = tn_val_type(b, value);
  const int64_t column[] = {type->dims[0], type->dims[1], 1};
  return type->rank == 3 ? value : tn_reshape(b, value, 3, column);
}

static tn_val coco_column(tn_build *b, int64_t n, int64_t rows, double value) {
  const tn_type type = {TN_F32, 3, {n, rows, 1}};
  return tn_full(b, &type, value);
}

static tn_val coco_header(tn_build *b, const coco_options *o, int64_t n) {
  const double numbers[BOX_NUMBERS] = {o->iou, (double)o->boxes, o->area};
  tn_val parts[BOX_NUMBERS];
  for (int i = 0; i < BOX_NUMBERS; i++) parts[i] = coco_column(b, n, 1, numbers[i]);
  return tn_concat(b, BOX_NUMBERS, parts, 2);
}

static tn_status build_coco_map(tn_build *b, const void *given) {
  TN_TRY(coco_check(b));
  int64_t n = tn_val_dim(b, tn_build_in(b, 0), 0), most = tn_val_dim(b, tn_build_in(b, 0), 1),
          meant = tn_val_dim(b, tn_build_in(b, 3), 1);
  tn_val found[] = {coco_numbers(b, 0), coco_numbers(b, 2), coco_numbers(b, 1), coco_column(b, n, most, 0)};
  tn_val wanted[] = {coco_numbers(b, 3), coco_numbers(b, 4), coco_column(b, n, meant, 0),
                     coco_column(b, n, meant, 1)};
  tn_val rows[] = {coco_header(b, given, n), tn_concat(b, 4, found, 2), tn_concat(b, 4, wanted, 2)};
  tn_build_yield(b, 0, tn_concat(b, 3, rows, 1));
  return TN_OK;
}

/* ---- boxes of all pictures ---- */

typedef struct coco_box {
  const float *at; /* BOX_NUMBERS of them */
  int64_t picture, place;
  int32_t ignored;             /* true boxes: of another area than the wanted one */
  uint32_t matched, discarded; /* a bit for each overlap: the box has a partner; it does not count */
} coco_box;

typedef struct coco {
  coco_box *found, *meant;
  int64_t n_found, n_meant;
  double iou[COCO_IOUS];
  int32_t n_iou;
  int64_t most;     /* boxes of a class in a picture */
  double low, high; /* areas */
} coco;

static double coco_area(const float *box) {
  return ((double)box[BOX_RIGHT] - (double)box[BOX_LEFT]) * ((double)box[BOX_BOTTOM] - (double)box[BOX_TOP]);
}

static int coco_outside(const coco *c, const float *box) {
  double area = coco_area(box);
  return area < c->low || area > c->high;
}

static void coco_read_options(coco *c, const float *header) {
  int32_t area = (int32_t)header[2];
  c->n_iou = header[0] > 0 ? 1 : COCO_IOUS;
  c->iou[0] = header[0] > 0 ? (double)header[0] : 0.5;
  const double step = (0.95 - 0.5) / (COCO_IOUS - 1);
  for (int32_t i = 1; i < c->n_iou; i++) c->iou[i] = i == COCO_IOUS - 1 ? 0.95 : 0.5 + i * step;
  c->most = (int64_t)header[1];
  c->low = areas_low[area];
  c->high = areas_high[area];
}

/* A class below 0 stands for no box. A score that is no number makes the metric one, too. */
static int32_t coco_collect(coco *c, const float *rows, int64_t n, const tn_type *row) {
  int64_t boxes = row->dims[0];
  for (int64_t i = 0; i < n; i++, rows += boxes * BOX_NUMBERS + 1)
    for (int64_t k = 1; k < boxes; k++) {
      const float *at = rows + k * BOX_NUMBERS;
      if (isnan(at[BOX_SCORE])) return 0;
      if (!(at[BOX_CLASS] >= 0)) continue;
      coco_box box = {.at = at, .picture = i, .place = k};
      box.ignored = at[BOX_MEANT] > 0 && coco_outside(c, at);
      if (at[BOX_MEANT] > 0)
        c->meant[c->n_meant++] = box;
      else
        c->found[c->n_found++] = box;
    }
  return 1;
}

#define COCO_ORDER(x, y)                                                                                     \
  if ((x) != (y)) return (x) < (y) ? -1 : 1

/* By class and picture: the highest score first, boxes that count in front of those that are ignored. */
static int coco_compare_pictures(const void *x, const void *y) {
  const coco_box *a = x, *b = y;
  COCO_ORDER(a->at[BOX_CLASS], b->at[BOX_CLASS]);
  COCO_ORDER(a->picture, b->picture);
  COCO_ORDER(a->ignored, b->ignored);
  COCO_ORDER(b->at[BOX_SCORE], a->at[BOX_SCORE]);
  COCO_ORDER(a->place, b->place);
  return 0;
}

/* By class alone: the highest score first. */
static int coco_compare_scores(const void *x, const void *y) {
  const coco_box *a = x, *b = y;
  COCO_ORDER(a->at[BOX_CLASS], b->at[BOX_CLASS]);
  COCO_ORDER(b->at[BOX_SCORE], a->at[BOX_SCORE]);
  COCO_ORDER(a->picture, b->picture);
  COCO_ORDER(a->place, b->place);
  return 0;
}

static void coco_sort(coco_box *boxes, int64_t n, int (*compare)(const void *x, const void *y)) {
  if (n > 0) qsort(boxes, (size_t)n, sizeof *boxes, compare);
}

/* ---- pairs of boxes ---- */

/* The common area as a part of that of both. */
static double coco_overlap(const float *a, const float *b) {
  double width = fmin((double)a[BOX_RIGHT], (double)b[BOX_RIGHT]) -
                 fmax((double)a[BOX_LEFT], (double)b[BOX_LEFT]),
         height = fmin((double)a[BOX_BOTTOM], (double)b[BOX_BOTTOM]) -
                  fmax((double)a[BOX_TOP], (double)b[BOX_TOP]);
  if (width <= 0 || height <= 0) return 0;
  return width * height / (coco_area(a) + coco_area(b) - width * height);
}

/* The true box that a found one belongs to: the one of the largest overlap that has no partner yet; one that
 * is ignored only where no other is there. -1: none. */
static int64_t coco_partner(const coco_box *found, const coco_box *meant, int64_t n, int32_t t,
                            double least) {
  int64_t best = -1;
  double largest = fmin(least, 1 - 1e-10);
  for (int64_t k = 0; k < n; k++) {
    if (meant[k].matched >> t & 1) continue;
    if (best >= 0 && !meant[best].ignored && meant[k].ignored) break;
    double overlap = coco_overlap(found->at, meant[k].at);
    if (overlap < largest) continue;
    largest = overlap;
    best = k;
  }
  return best;
}

/* The boxes of one class in one picture, the highest score first. */
static void coco_match(const coco *c, coco_box *found, int64_t n_found, coco_box *meant, int64_t n_meant) {
  for (int32_t t = 0; t < c->n_iou; t++)
    for (int64_t i = 0; i < n_found; i++) {
      uint32_t bit = 1u << t;
      int64_t k = i < c->most ? coco_partner(&found[i], meant, n_meant, t, c->iou[t]) : -1;
      if (k >= 0) {
        found[i].matched |= bit;
        meant[k].matched |= bit;
      }
      int32_t away = k >= 0 ? meant[k].ignored : coco_outside(c, found[i].at);
      if (away || i >= c->most) found[i].discarded |= bit;
    }
}

static int coco_same(const coco_box *a, const coco_box *b, int pictures) {
  return a->at[BOX_CLASS] == b->at[BOX_CLASS] && (!pictures || a->picture == b->picture);
}

/* The boxes from `from` on that have the class (and the picture) of `of`, after those that come before it. */
static int64_t coco_group(const coco_box *boxes, int64_t n, const coco_box *of, int pictures, int64_t *from) {
  int64_t end;
  while (*from < n && (boxes[*from].at[BOX_CLASS] < of->at[BOX_CLASS] ||
                       (pictures && boxes[*from].at[BOX_CLASS] == of->at[BOX_CLASS] &&
                        boxes[*from].picture < of->picture)))
    ++*from;
  for (end = *from; end < n && coco_same(&boxes[end], of, pictures);) end++;
  return end;
}

static void coco_match_all(coco *c) {
  int64_t meant = 0;
  for (int64_t i = 0, end; i < c->n_found; i = end) {
    int64_t first = i;
    end = coco_group(c->found, c->n_found, &c->found[i], 1, &first);
    int64_t last = coco_group(c->meant, c->n_meant, &c->found[i], 1, &meant);
    coco_match(c, c->found + i, end - i, c->meant + meant, last - meant);
  }
}

/* ---- the area under the curve ---- */

/* The mean of the precision at the recalls 0, 0.01 ... 1, each the highest one from there on. `precision` and
 * `recall` have room for n. */
static double coco_average(const coco_box *found, int64_t n, double meant, int32_t t, double *precision,
                           double *recall) {
  double right = 0, wrong = 0, sum = 0;
  for (int64_t i = 0; i < n; i++) {
    int32_t counts = !(found[i].discarded >> t & 1), hit = found[i].matched >> t & 1;
    right += counts && hit;
    wrong += counts && !hit;
    recall[i] = right / meant;
    precision[i] = right / (right + wrong + 0x1p-52);
  }
  for (int64_t i = n - 1; i > 0; i--) precision[i - 1] = fmax(precision[i - 1], precision[i]);
  for (int64_t k = 0, i = 0; k < COCO_RECALLS; k++) {
    double least = k == COCO_RECALLS - 1 ? 1 : (double)k * 0.01;
    while (i < n && recall[i] < least) i++;
    sum += i < n ? precision[i] : 0;
  }
  return sum / COCO_RECALLS;
}

/* The mean over classes with true boxes, and overlaps. `room` has space for two numbers for each found box.
 */
static double coco_mean(coco *c, double *room) {
  double sum = 0;
  int64_t classes = 0, found = 0;
  for (int64_t i = 0, end; i < c->n_meant; i = end) {
    int64_t first = i, counted = 0;
    end = coco_group(c->meant, c->n_meant, &c->meant[i], 0, &first);
    for (int64_t k = i; k < end; k++) counted += !c->meant[k].ignored;
    int64_t last = coco_group(c->found, c->n_found, &c->meant[i], 0, &found);
    if (counted == 0) continue;
    classes++;
    for (int32_t t = 0; t < c->n_iou; t++)
      sum += coco_average(c->found + found, last - found, (double)counted, t, room, room + c->n_found);
  }
  return classes > 0 ? sum / (double)(classes * c->n_iou) : (double)NAN;
}

static tn_status coco_map_of_rows(const void *handle, const float *rows, int64_t n, const tn_type *row,
                                  double *value) {
  size_t all = (size_t)n * (size_t)row->dims[0] + 1;
  coco c = {.found = tn_new(handle, all * sizeof(coco_box)), .meant = tn_new(handle, all * sizeof(coco_box))};
  double *room = tn_new(handle, 2 * all * sizeof *room);
  tn_status status = c.found != NULL && c.meant != NULL && room != NULL ? TN_OK : TN_ENOMEM;
  *value = (double)NAN;
  if (status == TN_OK && n > 0) {
    coco_read_options(&c, rows);
    int32_t numbers = coco_collect(&c, rows, n, row);
    coco_sort(c.found, c.n_found, coco_compare_pictures);
    coco_sort(c.meant, c.n_meant, coco_compare_pictures);
    coco_match_all(&c);
    coco_sort(c.found, c.n_found, coco_compare_scores);
    if (numbers) *value = coco_mean(&c, room);
  }
  tn_delete(handle, c.found);
  tn_delete(handle, c.meant);
  tn_delete(handle, room);
  return status;
}

const tn_layer_kind metric_coco_map = {
    .item = TN_ITEM(
        tn_layer_kind, TN_LAYER, "coco_map",
        "mean average precision of boxes over a whole validation, as COCO computes it; training has none",
        coco_options, coco_rows),
    .role = TN_LAYER_METRIC,
    .min_in = COCO_INPUTS,
    .max_in = COCO_INPUTS,
    .types =
        "boxes (N, n, 4), scores (N, n) and class numbers (N, n) that are found; boxes (N, m, 4) and class "
        "numbers (N, m) that are meant: x0 y0 x1 y1 in pixels; a class below 0 is no box",
    .example =
        "inputs = boxes: f32[6, 4], scores: f32[6], labels: i32[6]\ntargets = true_boxes: f32[3, 4], "
        "true_labels: "
        "i32[3]\nlayers = fc: linear(4) <- boxes\nloss = mse <- fc, boxes\nmetrics = coco_map <- fc, scores, "
        "labels, true_boxes, true_labels",
    .build = build_coco_map,
    .of_rows = coco_map_of_rows};

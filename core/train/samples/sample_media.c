#include "core/train/samples/sample_media.h"

#include "core/formats/png.h"
#include "core/train/samples/sample_view.h"

enum { MOST_PANELS = 16 };

tn_status tn_sample_media_start(tn_sample_set *set, tn_sample_media *media) {
  media->v = tn_arena_alloc(&set->arena, tn_size_mul((size_t)set->n + 1, sizeof *media->v));
  media->names = tn_arena_alloc(&set->arena, tn_size_mul((size_t)set->n + 1, sizeof *media->names));
  if (media->v == NULL || media->names == NULL) return TN_ENOMEM;
  for (int64_t i = 0; i <= set->n; i++) {
    media->names[i] = i < set->n ? tn_arena_printf(&set->arena, "samples/%lld", (long long)i)
                                 : tn_arena_strdup(&set->arena, "samples/table");
    if (media->names[i] == NULL) return TN_ENOMEM;
  }
  return TN_OK;
}

void tn_sample_media_clear(const tn_sample_set *set, tn_sample_media *media) {
  for (int32_t i = 0; i < media->n; i++) tn_release(&set->run->env, (void *)(uintptr_t)media->v[i].data);
  media->n = 0;
}

/* ---- a picture ---- */

/* The values of sample i that are pictures, side by side: inputs, targets, outputs. */
static tn_status media_draw_panels(const tn_sample_set *set, int64_t i, tn_canvas *panels, int32_t *n) {
  for (int32_t k = 0; k < set->n_values && *n < MOST_PANELS; k++) {
    const tn_sample_value *value = &set->values[k];
    if (value->view == NULL || value->view->draw == NULL) continue;
    TN_TRY(value->view->draw(set, value, i, &panels[*n]));
    ++*n;
  }
  return TN_OK;
}

static tn_status media_add_picture(const tn_sample_set *set, const tn_canvas *canvas, const char *name,
                                   tn_sample_media *media) {
  uint8_t *bytes = NULL;
  size_t n;
  TN_TRY(tn_png_encode(&set->run->env, canvas->width, canvas->height, canvas->rgb, &bytes, &n));
  media->v[media->n++] = (tn_media){.kind = TN_MEDIA_PNG,
                                    .width = (int32_t)canvas->width,
                                    .height = (int32_t)canvas->height,
                                    .name = name,
                                    .data = bytes,
                                    .bytes = n};
  return TN_OK;
}

static tn_status media_add_sample(const tn_sample_set *set, int64_t i, tn_sample_media *media) {
  const void *env = &set->run->env;
  tn_canvas panels[MOST_PANELS] = {{.rgb = NULL}}, joined = {.rgb = NULL};
  int32_t n = 0;
  tn_status status = media_draw_panels(set, i, panels, &n);
  if (status == TN_OK && n > 0) status = tn_canvas_join(env, panels, n, &joined);
  if (status == TN_OK && n > 0) status = media_add_picture(set, &joined, media->names[i], media);
  for (int32_t k = 0; k < MOST_PANELS; k++) tn_release(env, panels[k].rgb);
  tn_release(env, joined.rgb);
  return status;
}

/* ---- all ---- */

static tn_status media_add_table(const tn_sample_set *set, const tn_continuation *c, tn_sample_media *media) {
  tn_text text = tn_text_new(&set->run->env);
  tn_sample_table(set, c, &text);
  size_t n = text.n;
  if (n == 0 && !text.failed) return TN_OK;
  char *taken = tn_text_take(&text);
  if (taken == NULL) return TN_ENOMEM;
  media->v[media->n++] =
      (tn_media){.kind = TN_MEDIA_TEXT, .name = media->names[set->n], .data = taken, .bytes = n};
  return TN_OK;
}

tn_status tn_sample_media_make(const tn_sample_set *set, const tn_continuation *c, tn_sample_media *media) {
  tn_sample_media_clear(set, media);
  for (int64_t i = 0; i < set->n; i++) TN_TRY(media_add_sample(set, i, media));
  return media_add_table(set, c, media);
}

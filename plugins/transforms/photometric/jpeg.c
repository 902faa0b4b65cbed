/* plugins/transforms/photometric/jpeg.c: writes a picture as JPEG of random quality and reads it back, as
 * torchvision's JPEG. libjpeg reports errors with a callback that must not return; it jumps back to
 * jpeg_guarded. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "plugins/transforms/pixels/canvas.h"

typedef struct jpeg_options {
  tn_ints quality;
} jpeg_options;

static const tn_option options[] = {TN_OPT(jpeg_options, quality, TN_OPT_INTS, NULL, "[1, 100]",
                                           "quality; two numbers: at random from the first to the second"),
                                    TN_OPT_END};

static tn_status jpeg_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  const tn_ints *quality = &((const jpeg_options *)opts)->quality;
  if (quality->n > 2 || quality->v[0] > quality->v[quality->n - 1])
    return tn_fail(env, TN_EINVAL, "quality", "quality must be one number, or two, the smaller one first");
  for (int32_t k = 0; k < n; k++) {
    out[k] = in[k];
    int64_t height = in[k].rank >= 2 ? in[k].dims[in[k].rank - 2] : 0;
    int64_t width = in[k].rank >= 2 ? in[k].dims[in[k].rank - 1] : 0;
    if (height > JPEG_MAX_DIMENSION || width > JPEG_MAX_DIMENSION)
      return tn_fail(env, TN_EINVAL, NULL, "a picture is %lld x %lld, and a JPEG at most %ld x %ld",
                     (long long)height, (long long)width, (long)JPEG_MAX_DIMENSION, (long)JPEG_MAX_DIMENSION);
  }
  return canvas_check(env, n, in, 1);
}

/* All that changes between setjmp and longjmp is here. */
typedef struct jpeg_pass {
  struct jpeg_error_mgr errors; /* of both */
  struct jpeg_compress_struct to;
  struct jpeg_decompress_struct from;
  jmp_buf back;
  canvas *frame;
  uint8_t *row;
  unsigned char *bytes; /* of libjpeg, which allocates with malloc */
  unsigned long count;
} jpeg_pass;

static void jpeg_on_error(j_common_ptr info) { longjmp(((jpeg_pass *)info->client_data)->back, 1); }
static void jpeg_on_message(j_common_ptr info, int level) { (void)info, (void)level; }

/* Row y between planes and pixels. */
static void jpeg_copy_row(const canvas *c, int64_t y, uint8_t *row, int to_planes) {
  for (int64_t k = 0; k < c->channels; k++) {
    uint8_t *plane = c->pixels + (k * c->height + y) * c->width;
    for (int64_t x = 0; x < c->width; x++) {
      uint8_t *pixel = row + x * c->channels + k;
      if (to_planes)
        plane[x] = *pixel;
      else
        *pixel = plane[x];
    }
  }
}

static void jpeg_write(jpeg_pass *p, int quality) {
  jpeg_create_compress(&p->to);
  jpeg_mem_dest(&p->to, &p->bytes, &p->count);
  p->to.image_width = (JDIMENSION)p->frame->width;
  p->to.image_height = (JDIMENSION)p->frame->height;
  p->to.input_components = (int)p->frame->channels;
  p->to.in_color_space = p->frame->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(&p->to);
  jpeg_set_quality(&p->to, quality, TRUE);
  jpeg_start_compress(&p->to, TRUE);
  for (int64_t y = 0; y < p->frame->height; y++) {
    jpeg_copy_row(p->frame, y, p->row, 0);
    jpeg_write_scanlines(&p->to, &p->row, 1);
  }
  jpeg_finish_compress(&p->to);
}

static void jpeg_read(jpeg_pass *p) {
  jpeg_create_decompress(&p->from);
  jpeg_mem_src(&p->from, p->bytes, p->count);
  jpeg_read_header(&p->from, TRUE);
  jpeg_start_decompress(&p->from);
  for (int64_t y = 0; y < p->frame->height; y++) {
    jpeg_read_scanlines(&p->from, &p->row, 1);
    jpeg_copy_row(p->frame, y, p->row, 1);
  }
  jpeg_finish_decompress(&p->from);
}

static int jpeg_guarded(jpeg_pass *p, int quality) {
  if (setjmp(p->back) != 0) return 0;
  jpeg_write(p, quality);
  jpeg_read(p);
  return 1;
}

/* One picture of a canvas; its rows pass through the spare memory. */
static tn_status jpeg_frame(tn_transform_call *c, canvas *frame, int quality) {
  jpeg_pass p;
  memset(&p, 0, sizeof p);
  p.frame = frame;
  p.row = frame->spare;
  p.to.err = p.from.err = jpeg_std_error(&p.errors);
  p.errors.error_exit = jpeg_on_error;
  p.errors.emit_message = jpeg_on_message;
  p.to.client_data = p.from.client_data = &p;
  int done = jpeg_guarded(&p, quality);
  jpeg_destroy_compress(&p.to);
  jpeg_destroy_decompress(&p.from);
  free(p.bytes);
  return done ? TN_OK : tn_fail(c, TN_ENOMEM, NULL, "libjpeg has no memory for a picture");
}

static tn_status jpeg_apply(tn_transform_call *c, const void *opts) {
  const tn_ints *range = &((const jpeg_options *)opts)->quality;
  tn_rng rng = tn_rng_at(c->key, 0);
  int quality = (int)(range->v[0] + tn_rng_below(&rng, range->v[range->n - 1] - range->v[0] + 1));
  tn_status status = TN_OK;
  for (int32_t k = 0; status == TN_OK && k < c->n; k++) {
    canvas all;
    status = canvas_open(c, k, &all);
    int64_t area = all.height * all.width;
    for (int64_t f = 0; status == TN_OK && area > 0 && f < all.frames; f++) {
      canvas frame = all;
      frame.pixels += f * all.channels * area;
      status = jpeg_frame(c, &frame, quality);
    }
  }
  return status;
}

const tn_transform jpeg_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "jpeg",
                    "the losses of a JPEG of random quality (training only; u8)", jpeg_options, options),
    .training_only = 1,
    .types = "u8 [channels, height, width], 1 or 3 channels",
    .example = "transforms = jpeg([30, 90]), to_float",
    .infer = jpeg_infer,
    .apply = jpeg_apply,
};

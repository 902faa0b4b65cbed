/* plugins/sources/image/jpeg.c: decodes JPEG with libjpeg-turbo. The library reports errors with a callback
 * that must not return; the callback jumps back to image_jpeg_guarded. The library calls its progress monitor
 * between rows of blocks; the monitor ends the decoding in the same way. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "plugins/sources/image/image.h"

/* A scan of a progressive file visits every block of the picture, however few bytes the scan has. Encoders
 * write about 10 scans; the format allows any number. */
enum { MOST_SCANS = 500 };

typedef struct jpeg_reader {
  struct jpeg_decompress_struct info; /* first member: callbacks receive a pointer to it */
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  tn_status status; /* of the failure that the callbacks report */
  jmp_buf back;
  image_sink *sink;
  uint8_t *row; /* one row, up to 4 bytes per pixel */
  char text[JMSG_LENGTH_MAX];
} jpeg_reader;

static void image_jpeg_on_error(j_common_ptr info) {
  jpeg_reader *r = (jpeg_reader *)info;
  r->errors.format_message(info, r->text);
  r->status =
      tn_fail(r->sink->handle, TN_EINVAL, NULL,
              "%s: damaged JPEG: %s; remove it, or set corrupt = skip in [data]", r->sink->path, r->text);
  longjmp(r->back, 1);
}

static void image_jpeg_on_progress(j_common_ptr info) {
  jpeg_reader *r = (jpeg_reader *)info;
  const image_sink *sink = r->sink;
  if (r->info.input_scan_number > MOST_SCANS)
    r->status = tn_fail(sink->handle, TN_EINVAL, NULL,
                        "%s: a progressive JPEG of more than %d scans, each of which takes the time of a "
                        "picture; expected at most %d; write it again, for example with `djpeg | cjpeg`",
                        sink->path, MOST_SCANS, MOST_SCANS);
  else if (sink->stopping != NULL && sink->stopping(sink))
    r->status = tn_fail(sink->handle, TN_ESTOPPED, NULL, "%s: stopped while it was decoded", sink->path);
  if (r->status != TN_OK) longjmp(r->back, 1);
}

/* Most warnings concern bytes that do not affect the picture. Data that ends too soon is an error: the rest
 * of the picture would be grey. */
static void on_message(j_common_ptr info, int level) {
  jpeg_reader *r = (jpeg_reader *)info;
  if (level >= 0) return;
  r->errors.num_warnings++;
  if (r->errors.msg_code == JWRN_JPEG_EOF || r->errors.msg_code == JWRN_HIT_MARKER) image_jpeg_on_error(info);
}

static void be_silent(j_common_ptr info) { (void)info; }

/* Converts cyan, magenta, yellow and black to RGB. The inks are stored inverted, as Adobe does; Pillow takes
 * every file for one of these. */
static void cmyk_to_rgb(uint8_t *row, int64_t width) {
  for (int64_t x = 0; x < width; x++) {
    unsigned k = row[4 * x + 3];
    for (int c = 0; c < 3; c++) row[3 * x + c] = (uint8_t)((row[4 * x + c] * k + 127) / 255);
  }
}

static tn_status image_jpeg_read_rows(jpeg_reader *r) {
  struct jpeg_decompress_struct *info = &r->info;
  int cmyk = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
  info->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(info);
  r->row = tn_new(r->sink->handle, (size_t)info->output_width * (size_t)info->output_components);
  if (r->row == NULL) return TN_ENOMEM;
  while (info->output_scanline < info->output_height) {
    int64_t y = info->output_scanline;
    jpeg_read_scanlines(info, &r->row, 1);
    if (cmyk) cmyk_to_rgb(r->row, info->output_width);
    image_put_row(r->sink, y, r->row);
  }
  jpeg_finish_decompress(info);
  return TN_OK;
}

/* Selects the smallest size that keeps at_least pixels on both sides. The inverse transform of an 8 x 8 block
 * can omit its high frequencies and compute 4 x 4, 2 x 2 or 1 x 1 pixels, which takes much less time and is
 * close to the mean of the omitted pixels. */
static void choose_scale(jpeg_reader *r) {
  struct jpeg_decompress_struct *info = &r->info;
  int64_t least = r->sink->at_least;
  for (unsigned parts = 8; least > 0 && parts > 1; parts /= 2) {
    info->scale_num = 1;
    info->scale_denom = parts;
    jpeg_calc_output_dimensions(info);
    if (info->output_height >= least && info->output_width >= least) return;
  }
  info->scale_num = info->scale_denom = 1;
  jpeg_calc_output_dimensions(info);
}

enum { EXIF_MARKER = JPEG_APP0 + 1, LONGEST_MARKER = 0xFFFF };

static int find_orientation(const jpeg_reader *r) {
  int orientation = 0;
  for (jpeg_saved_marker_ptr m = r->info.marker_list; m != NULL && orientation == 0; m = m->next)
    if (m->marker == EXIF_MARKER) orientation = image_exif_orientation(m->data, m->data_length);
  return orientation;
}

static tn_status read_picture(jpeg_reader *r, const uint8_t *bytes, size_t count) {
  int wanted;
  jpeg_mem_src(&r->info, bytes, (unsigned long)count);
  if (!r->sink->ignores_orientation) jpeg_save_markers(&r->info, EXIF_MARKER, LONGEST_MARKER);
  jpeg_read_header(&r->info, TRUE);
  r->sink->orientation = find_orientation(r);
  TN_TRY(image_check_size(r->sink, r->info.image_height, r->info.image_width));
  choose_scale(r);
  tn_status status = image_size(r->sink, r->info.output_height, r->info.output_width, &wanted);
  return status == TN_OK && wanted ? image_jpeg_read_rows(r) : status;
}

/* All values that change between setjmp and longjmp are members of the reader, not local variables. */
static tn_status image_jpeg_guarded(jpeg_reader *r, const uint8_t *bytes, size_t count) {
  if (setjmp(r->back) != 0) return r->status;
  jpeg_create_decompress(&r->info);
  r->progress.progress_monitor = image_jpeg_on_progress;
  r->info.progress = &r->progress;
  return read_picture(r, bytes, count);
}

tn_status image_decode_jpeg(image_sink *sink, const uint8_t *bytes, size_t count) {
  jpeg_reader r;
  memset(&r, 0, sizeof(r));
  r.sink = sink;
  r.info.err = jpeg_std_error(&r.errors);
  r.errors.error_exit = image_jpeg_on_error;
  r.errors.emit_message = on_message;
  r.errors.output_message = be_silent;
  tn_status status = image_jpeg_guarded(&r, bytes, count);
  jpeg_destroy_decompress(&r.info);
  tn_delete(sink->handle, r.row);
  return status;
}

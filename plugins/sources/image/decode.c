/* plugins/sources/image/decode.c: selects the decoder of a file. A new format has a file
 * beside jpeg.c, a line in image.h, and its endings in file_list.c and in tools/init/pictures.c. */
#include "plugins/sources/image/image.h"

#include <string.h>

/* The first bytes select the decoder: the names of files are often wrong. */
tn_status image_decode(image_sink *sink, const uint8_t *bytes, size_t count) {
  static const uint8_t jpeg[] = {0xFF, 0xD8, 0xFF}, png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  if (count >= sizeof(jpeg) && memcmp(bytes, jpeg, sizeof(jpeg)) == 0)
    return image_decode_jpeg(sink, bytes, count);
  if (count >= sizeof(png) && memcmp(bytes, png, sizeof(png)) == 0)
    return image_decode_png(sink, bytes, count);
  return tn_fail(sink->handle, TN_EINVAL, NULL, "%s: is neither JPEG nor PNG", sink->path);
}

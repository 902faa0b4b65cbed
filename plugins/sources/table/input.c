/* plugins/sources/table/input.c: the first bytes of a file say how it is packed, not its name. */
#include "plugins/sources/table/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#ifdef TABLE_ZSTD
#include <zstd.h>
#endif

enum { INPUT_BLOCK = 1 << 20, PACKED_BLOCK = 1 << 17, LONGEST_ROW = 1 << 26 };
/* A packed file may stand for any number of bytes. */
static const uint64_t MOST_BYTES = (uint64_t)1 << 40;

static tn_status input_fail(const table_input *in, const char *what) {
  return tn_fail(in->env, TN_EIO, NULL, "%s: cannot %s: %s", in->path, what, strerror(errno));
}

/* ---- reading and unpacking ---- */

static tn_status input_read_plain(table_input *in, void *to, size_t room, size_t *n) {
  ssize_t got;
  do got = read(in->fd, to, room);
  while (got < 0 && errno == EINTR);
  if (got < 0) return input_fail(in, "read");
  *n = (size_t)got;
  return TN_OK;
}

static tn_status input_read_gzip(table_input *in, void *to, size_t room, size_t *n) {
  int got = gzread(in->gzip, to, (unsigned)room), code = Z_OK;
  const char *why = gzerror(in->gzip, &code);
  *n = got > 0 ? (size_t)got : 0;
  if (code == Z_OK || code == Z_STREAM_END) return TN_OK;
  if (code == Z_ERRNO) return input_fail(in, "read");
  if (code == Z_MEM_ERROR) return TN_ENOMEM;
  return tn_fail(in->env, TN_EINVAL, NULL, "%s: damaged gzip data behind %llu unpacked bytes: %s", in->path,
                 (unsigned long long)in->total, why);
}

#ifdef TABLE_ZSTD
static tn_status input_read_zstd(table_input *in, void *to, size_t room, size_t *n) {
  ZSTD_outBuffer out = {to, room, 0};
  while (out.pos == 0) {
    if (in->packed_at == in->packed_end) {
      in->packed_at = 0;
      TN_TRY(input_read_plain(in, in->packed, PACKED_BLOCK, &in->packed_end));
    }
    if (in->packed_end == 0 && !in->packed_open) break;
    if (in->packed_end == 0)
      return tn_fail(in->env, TN_EINVAL, NULL, "%s: the zstd data end in a frame, behind %llu unpacked bytes",
                     in->path, (unsigned long long)in->total);
    ZSTD_inBuffer packed = {in->packed, in->packed_end, in->packed_at};
    size_t left = ZSTD_decompressStream(in->zstd, &out, &packed);
    if (ZSTD_isError(left))
      return tn_fail(in->env, TN_EINVAL, NULL, "%s: damaged zstd data behind %llu unpacked bytes: %s",
                     in->path, (unsigned long long)in->total, ZSTD_getErrorName(left));
    in->packed_at = packed.pos;
    in->packed_open = left != 0;
  }
  *n = out.pos;
  return TN_OK;
}
#endif

static tn_status input_read(table_input *in, void *to, size_t room, size_t *n) {
#ifdef TABLE_ZSTD
  if (in->zstd != NULL) return input_read_zstd(in, to, room, n);
#endif
  return in->gzip != NULL ? input_read_gzip(in, to, room, n) : input_read_plain(in, to, room, n);
}

/* ---- blocks ---- */

static tn_status input_grow(table_input *in) {
  size_t size = 2 * in->size;
  if (size > LONGEST_ROW)
    return tn_fail(in->env, TN_EINVAL, NULL,
                   "%s: a row has more than %d MiB; is a quote not closed, or is it no table?", in->path,
                   LONGEST_ROW >> 21);
  char *bytes = tn_new(in->env, size + 1);
  if (bytes == NULL) return TN_ENOMEM;
  memcpy(bytes, in->bytes, in->end);
  tn_delete(in->env, in->bytes);
  in->bytes = bytes;
  in->size = size;
  return TN_OK;
}

tn_status table_input_more(table_input *in) {
  if (in->at > 0) memmove(in->bytes, in->bytes + in->at, in->end - in->at);
  in->end -= in->at;
  in->at = 0;
  if (in->end > in->size / 2) TN_TRY(input_grow(in));
  while (!in->ended && in->end < in->size) {
    size_t n = 0;
    TN_TRY(input_read(in, in->bytes + in->end, in->size - in->end, &n));
    in->ended = n == 0;
    in->end += n;
    in->total += n;
  }
  in->bytes[in->end] = '\0';
  if (in->total <= MOST_BYTES) return TN_OK;
  return tn_fail(in->env, TN_EINVAL, NULL, "%s: has more than 1 TiB when it is unpacked", in->path);
}

/* ---- opening ---- */

static tn_status input_start_gzip(table_input *in) {
  in->gzip = gzdopen(in->fd, "rb");
  if (in->gzip == NULL) return TN_ENOMEM;
  in->fd = -1; /* gzip closes it */
  gzbuffer(in->gzip, PACKED_BLOCK);
  return TN_OK;
}

static tn_status input_start_zstd(table_input *in) {
#ifdef TABLE_ZSTD
  in->zstd = ZSTD_createDCtx();
  in->packed = tn_new(in->env, PACKED_BLOCK);
  return in->zstd != NULL && in->packed != NULL ? TN_OK : TN_ENOMEM;
#else
  return tn_fail(in->env, TN_EUNSUPPORTED, NULL,
                 "%s: is packed by zstd, and this build has no libzstd; unpack it: zstd -d FILE", in->path);
#endif
}

static tn_status input_start(table_input *in) {
  static const uint8_t gzip[] = {0x1F, 0x8B}, zstd[] = {0x28, 0xB5, 0x2F, 0xFD};
  uint8_t magic[4];
  struct stat info;
  if (fstat(in->fd, &info) != 0) return input_fail(in, "examine");
  ssize_t n = pread(in->fd, magic, sizeof(magic), 0);
  in->file_bytes = info.st_size;
  if (n >= 2 && memcmp(magic, gzip, 2) == 0) return input_start_gzip(in);
  if (n == 4 && memcmp(magic, zstd, 4) == 0) return input_start_zstd(in);
  in->estimate = (double)info.st_size;
  return TN_OK;
}

/* Excel and Windows write marks in front. */
static tn_status input_skip_mark(table_input *in) {
  const uint8_t *b = (const uint8_t *)in->bytes;
  if (in->end >= 3 && b[0] == 0xEF && b[1] == 0xBB && b[2] == 0xBF) in->at = 3;
  bool wide = in->end >= 2 && ((b[0] == 0xFF && b[1] == 0xFE) || (b[0] == 0xFE && b[1] == 0xFF));
  if (!wide) return TN_OK;
  return tn_fail(in->env, TN_EINVAL, NULL,
                 "%s: is UTF-16, expected UTF-8; convert it: iconv -f UTF-16 -t UTF-8", in->path);
}

static tn_status input_read_first(table_input *in) {
  in->bytes = tn_new(in->env, in->size + 1);
  if (in->bytes == NULL) return TN_ENOMEM;
  TN_TRY(table_input_more(in));
  return input_skip_mark(in);
}

tn_status table_input_open(const tn_env *env, const char *path, table_input *in) {
  *in = (table_input){.env = env, .path = path, .fd = -1, .size = INPUT_BLOCK};
  TN_TRY(source_open_file(env, path, &in->fd));
  TN_TRY(input_start(in));
  return input_read_first(in);
}

tn_status table_input_open_standard(const tn_env *env, const char *name, table_input *in) {
  *in = (table_input){.env = env, .path = name, .size = INPUT_BLOCK};
  in->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  return in->fd >= 0 ? input_read_first(in) : input_fail(in, "open");
}

void table_input_close(table_input *in) {
  if (in->gzip != NULL) gzclose(in->gzip);
#ifdef TABLE_ZSTD
  ZSTD_freeDCtx(in->zstd);
#endif
  if (in->fd >= 0) close(in->fd);
  tn_delete(in->env, in->packed);
  tn_delete(in->env, in->bytes);
}

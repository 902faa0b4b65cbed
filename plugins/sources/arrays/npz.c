/* plugins/sources/arrays/npz.c: NumPy's .npz archives, which are ZIP files with a .npy file for each array
 * (PKWARE, APPNOTE.TXT 6.3). A stored member is read where it lies; a deflated one is unpacked as a whole. */
#define ZLIB_CONST 1
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "plugins/sources/arrays/array.h"

enum {
  ZIP_END = 22,
  ZIP_LOCATOR = 20,
  ZIP_END64 = 56,
  ZIP_ENTRY = 46,
  ZIP_LOCAL = 30,
  ZIP_LONGEST_COMMENT = 65535
};
enum { ZIP_STORED = 0, ZIP_DEFLATED = 8, ZIP_ENCRYPTED = 1 };
/* Deflate compresses at most 1032 bytes into one (zlib's technical notes), which bounds what a member of a
 * small file may declare. */
enum { ZIP_MOST_RATIO = 1032 };
enum { ZIP_LISTED = 200 }; /* characters of names in a message */

typedef struct zip_member {
  const char *name;
  size_t name_n;
  uint32_t method, flags, crc;
  uint64_t packed, unpacked, at; /* sizes; the offset of the local header */
} zip_member;

typedef struct zip {
  const void *handle;
  const char *path;
  const uint8_t *bytes;
  uint64_t count;
  uint64_t directory, directory_end; /* the central directory */
} zip;

static tn_status zip_damaged(const zip *z, const char *what) {
  return tn_fail(z->handle, TN_EINVAL, NULL, "%s: %s: the archive is cut off or damaged", z->path, what);
}

static int32_t zip_is(const zip *z, uint64_t at, uint64_t n, uint32_t signature) {
  return at <= z->count && n <= z->count - at && bytes_u32(z->bytes + at) == signature;
}

/* The end of the directory lies in front of a comment that ends with the file. */
static int32_t zip_find_end(const zip *z, uint64_t *end) {
  if (z->count < ZIP_END) return 0;
  uint64_t last = z->count - ZIP_END, least = last > ZIP_LONGEST_COMMENT ? last - ZIP_LONGEST_COMMENT : 0;
  for (*end = last;; --*end) {
    if (bytes_u32(z->bytes + *end) == 0x06054b50 && bytes_u16(z->bytes + *end + 20) == last - *end) return 1;
    if (*end == least) return 0;
  }
}

static tn_status zip_find_directory(zip *z) {
  uint64_t end, size;
  if (!zip_find_end(z, &end)) return zip_damaged(z, "has no directory at its end");
  size = bytes_u32(z->bytes + end + 12);
  z->directory = bytes_u32(z->bytes + end + 16);
  if (end >= ZIP_LOCATOR && zip_is(z, end - ZIP_LOCATOR, ZIP_LOCATOR, 0x07064b50)) {
    uint64_t end64 = bytes_u64(z->bytes + end - ZIP_LOCATOR + 8);
    if (!zip_is(z, end64, ZIP_END64, 0x06064b50)) return zip_damaged(z, "its 64-bit directory is not there");
    size = bytes_u64(z->bytes + end64 + 40);
    z->directory = bytes_u64(z->bytes + end64 + 48);
  }
  if (z->directory > z->count || size > z->count - z->directory)
    return zip_damaged(z, "its directory lies outside of the file");
  z->directory_end = z->directory + size;
  return TN_OK;
}

/* Sizes and offset that do not fit 32 bits lie in the extra field 1, in this order. */
static void zip_read_extra(const uint8_t *extra, size_t n, zip_member *m) {
  while (n >= 4) {
    size_t part = bytes_u16(extra + 2), at = 4;
    if (part > n - 4) return;
    uint64_t *wide[] = {&m->unpacked, &m->packed, &m->at};
    for (int i = 0; bytes_u16(extra) == 1 && i < 3; i++) {
      if (*wide[i] != UINT32_MAX || part + 4 - at < 8) continue;
      *wide[i] = bytes_u64(extra + at);
      at += 8;
    }
    extra += 4 + part;
    n -= 4 + part;
  }
}

/* The member at *at of the directory, behind which *at is left; TN_EOF: there are no more. */
static tn_status zip_next(const zip *z, uint64_t *at, zip_member *m) {
  if (*at == z->directory_end) return TN_EOF;
  if (z->directory_end - *at < ZIP_ENTRY || !zip_is(z, *at, ZIP_ENTRY, 0x02014b50))
    return zip_damaged(z, "its directory has an entry without its mark");
  const uint8_t *e = z->bytes + *at;
  uint64_t name = bytes_u16(e + 28), extra = bytes_u16(e + 30),
           whole = ZIP_ENTRY + name + extra + bytes_u16(e + 32);
  if (whole > z->directory_end - *at) return zip_damaged(z, "an entry of its directory is too long");
  *m = (zip_member){.name = (const char *)e + ZIP_ENTRY,
                    .name_n = name,
                    .method = bytes_u16(e + 10),
                    .flags = bytes_u16(e + 8),
                    .crc = bytes_u32(e + 16),
                    .packed = bytes_u32(e + 20),
                    .unpacked = bytes_u32(e + 24),
                    .at = bytes_u32(e + 42)};
  zip_read_extra(e + ZIP_ENTRY + name, extra, m);
  if (m->name_n > 4 && memcmp(m->name + m->name_n - 4, ".npy", 4) == 0) m->name_n -= 4;
  *at += whole;
  return TN_OK;
}

static int32_t zip_is_named(const zip_member *m, const char *name) {
  return strlen(name) == m->name_n && memcmp(m->name, name, m->name_n) == 0;
}

/* The names in the archive, as far as a message has room. */
static void zip_list(const zip *z, char text[ZIP_LISTED]) {
  zip_member m;
  size_t n = 0;
  text[0] = '\0';
  for (uint64_t at = z->directory; zip_next(z, &at, &m) == TN_OK && n + m.name_n + 8 < ZIP_LISTED;)
    n += (size_t)snprintf(text + n, ZIP_LISTED - n, "%s%.*s", n > 0 ? ", " : "", (int)m.name_n, m.name);
}

/* The member of the name; without one, that of the field's name, or the only one. */
static tn_status zip_find_member(const zip *z, const array_place *p, zip_member *found) {
  char names[ZIP_LISTED];
  zip_member m;
  int64_t all = 0, hits = 0;
  tn_status status = TN_OK;
  for (uint64_t at = z->directory; (status = zip_next(z, &at, &m)) == TN_OK; all++) {
    if (all > 0 && !zip_is_named(&m, p->member[0] != '\0' ? p->member : p->preferred)) continue;
    hits += zip_is_named(&m, p->member[0] != '\0' ? p->member : p->preferred);
    *found = m;
  }
  if (status != TN_EOF) return status;
  if (hits > 0 || (p->member[0] == '\0' && all == 1)) return TN_OK;
  zip_list(z, names);
  return tn_fail(z->handle, TN_EINVAL, NULL, "%s: has no array '%s', expected one of: %s", p->path,
                 p->member[0] != '\0' ? p->member : p->preferred, names);
}

/* ---- the bytes of a member ---- */

/* zlib counts in 32 bits. */
static int zip_inflate_all(z_stream *s, const uint8_t *from, uint64_t n, uint8_t *to, uint64_t m) {
  enum { PIECE = 1 << 30 };
  int result = Z_OK;
  while (result == Z_OK) {
    s->next_in = from;
    s->next_out = to;
    s->avail_in = n < PIECE ? (uInt)n : PIECE;
    s->avail_out = m < PIECE ? (uInt)m : PIECE;
    uInt in = s->avail_in, out = s->avail_out;
    result = inflate(s, Z_NO_FLUSH);
    in -= s->avail_in, out -= s->avail_out;
    if (in == 0 && out == 0 && result == Z_OK) return Z_BUF_ERROR;
    from += in, n -= in, to += out, m -= out;
  }
  return result == Z_STREAM_END && m > 0 ? Z_BUF_ERROR : result;
}

static tn_status zip_unpack(const zip *z, const zip_member *m, const uint8_t *from, array *a) {
  z_stream stream = {.zalloc = Z_NULL};
  if (m->unpacked / ZIP_MOST_RATIO > m->packed)
    return zip_damaged(z, "a member declares more bytes than it can hold");
  a->unpacked = tn_new(z->handle, (size_t)m->unpacked + 1);
  if (a->unpacked == NULL) return TN_ENOMEM;
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return tn_fail(z->handle, TN_ENOMEM, NULL, "%s: out of memory while unpacking", z->path);
  int result = zip_inflate_all(&stream, from, m->packed, a->unpacked, m->unpacked);
  inflateEnd(&stream);
  if (result == Z_MEM_ERROR)
    return tn_fail(z->handle, TN_ENOMEM, NULL, "%s: out of memory while unpacking", z->path);
  if (result != Z_STREAM_END || crc32_z(0, a->unpacked, (z_size_t)m->unpacked) != m->crc)
    return zip_damaged(z, "a member is not as it was written");
  return TN_OK;
}

static tn_status zip_read_member(const zip *z, const zip_member *m, array *a, const uint8_t **bytes) {
  if (!zip_is(z, m->at, ZIP_LOCAL, 0x04034b50)) return zip_damaged(z, "a member lies outside of the file");
  const uint8_t *local = z->bytes + m->at;
  uint64_t start = m->at + ZIP_LOCAL + bytes_u16(local + 26) + bytes_u16(local + 28);
  if (start > z->count || m->packed > z->count - start)
    return zip_damaged(z, "a member lies outside of the file");
  if ((m->flags & ZIP_ENCRYPTED) || (m->method != ZIP_STORED && m->method != ZIP_DEFLATED))
    return tn_fail(z->handle, TN_EINVAL, NULL,
                   "%s: is encrypted or packed by method %u, expected numpy.savez or savez_compressed",
                   z->path, (unsigned)m->method);
  *bytes = z->bytes + start;
  if (m->method == ZIP_STORED)
    return m->packed == m->unpacked ? TN_OK : zip_damaged(z, "a stored member has two sizes");
  tn_status status = zip_unpack(z, m, *bytes, a);
  *bytes = a->unpacked;
  return status;
}

tn_status npz_find(const void *handle, const array_place *place, array *a) {
  zip z = {.handle = handle, .path = place->path, .bytes = a->file.bytes, .count = a->file.count};
  zip_member m = {.name = NULL};
  const uint8_t *bytes = NULL;
  char where[1024];
  TN_TRY(zip_find_directory(&z));
  TN_TRY(zip_find_member(&z, place, &m));
  TN_TRY(zip_read_member(&z, &m, a, &bytes));
  snprintf(where, sizeof where, "%s/%.*s", place->path, (int)m.name_n, m.name);
  return npy_find(handle, where, bytes, (size_t)m.unpacked, a);
}

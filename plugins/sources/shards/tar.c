/* plugins/sources/shards/tar.c: see tar.h. A header is a block of 512 bytes with a checksum; the member
 * follows, padded to blocks. Members of types L (GNU) and x (pax) describe the member behind them. */
#include "plugins/sources/shards/tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Offsets and sizes in a header. */
enum {
  TAR_NAME_SIZE = 100,
  TAR_SIZE_AT = 124,
  TAR_SIZE_SIZE = 12,
  TAR_SUM_AT = 148,
  TAR_SUM_SIZE = 8,
  TAR_TYPE_AT = 156,
  TAR_MAGIC_AT = 257,
  TAR_PREFIX_AT = 345,
  TAR_PREFIX_SIZE = 155
};
/* Descriptions of a member are a few hundred bytes; extended attributes can be more. */
enum { TAR_LONGEST_PAX = 1 << 20 };

/* The description of a member by the members in front of it. */
typedef struct tar_extra {
  int32_t named, sized, sparse;
  int64_t size;
} tar_extra;

#define TAR_CUT          "it is cut off at byte %lld, inside the member '%.80s'"
#define TAR_FAIL(t, ...) (snprintf((t)->fault, TAR_FAULT, __VA_ARGS__), TN_EINVAL)

void tar_begin(tar *t, const void *handle, tar_input *in, int64_t at) {
  t->handle = handle;
  t->in = in;
  t->at = t->behind = at;
  t->name[0] = t->fault[0] = '\0';
  t->size = 0;
  t->type = '\0';
  t->sparse = 0;
}

int32_t tar_is_plain_file(const tar *t) { return t->type == '0' && !t->sparse; }

static tn_status tar_take(tar *t, void *to, size_t n, size_t *got) {
  tn_status status = t->in->read(t->in, to, n, got);
  if (status == TN_OK) t->at += (int64_t)*got;
  return status;
}

tn_status tar_read(tar *t, void *to) {
  size_t got;
  TN_TRY(tar_take(t, to, (size_t)t->size, &got));
  return got == (size_t)t->size ? TN_OK : TAR_FAIL(t, TAR_CUT, (long long)t->at, t->name);
}

/* Octal digits between blanks, or GNU's big-endian number behind a first byte of 0x80. -1: neither. */
static int64_t tar_number(const uint8_t *from, size_t n) {
  int64_t value = 0;
  size_t i = 0;
  if (from[0] == 0x80) {
    for (i = 1; i < n; i++) {
      if (value > INT64_MAX >> 8) return -1;
      value = value << 8 | from[i];
    }
    return value;
  }
  while (i < n && from[i] == ' ') i++;
  for (; i < n && from[i] >= '0' && from[i] <= '7'; i++) value = value << 3 | (from[i] - '0');
  return i == n || from[i] == ' ' || from[i] == '\0' ? value : -1;
}

/* Old programs summed the bytes as signed ones. */
static int32_t tar_sum_fits(const uint8_t *block) {
  int64_t plain = 0, with_sign = 0, told = tar_number(block + TAR_SUM_AT, TAR_SUM_SIZE);
  for (int i = 0; i < TAR_BLOCK; i++) {
    uint8_t byte = i >= TAR_SUM_AT && i < TAR_SUM_AT + TAR_SUM_SIZE ? ' ' : block[i];
    plain += byte;
    with_sign += (int8_t)byte;
  }
  return told == plain || told == with_sign;
}

static void tar_take_name(tar *t, const uint8_t *block) {
  const char *name = (const char *)block, *prefix = (const char *)block + TAR_PREFIX_AT;
  int32_t has_prefix = memcmp(block + TAR_MAGIC_AT, "ustar\0", 6) == 0 && prefix[0] != '\0';
  snprintf(t->name, TAR_NAME, "%.*s%s%.*s", has_prefix ? TAR_PREFIX_SIZE : 0, prefix, has_prefix ? "/" : "",
           TAR_NAME_SIZE, name);
}

/* Goes on to the next header. The padding behind the last member may be missing. */
static tn_status tar_pass(tar *t) {
  int64_t n = t->behind - t->at, got = 0,
          padding = t->size > 0 ? TAR_BLOCK - 1 - (t->size - 1) % TAR_BLOCK : 0;
  if (n == 0) return TN_OK;
  TN_TRY(t->in->skip(t->in, n, &got));
  t->at += got;
  return n - got <= padding ? TN_OK : TAR_FAIL(t, TAR_CUT, (long long)t->at, t->name);
}

static int32_t tar_is_zero(const uint8_t *block) {
  for (int i = 0; i < TAR_BLOCK; i++)
    if (block[i] != 0) return 0;
  return 1;
}

static tn_status tar_take_header(tar *t, uint8_t *block) {
  size_t got;
  TN_TRY(tar_pass(t));
  int64_t from = t->at;
  TN_TRY(tar_take(t, block, TAR_BLOCK, &got));
  if (got == 0) return TN_EOF;
  if (got < TAR_BLOCK) return TAR_FAIL(t, "it is cut off at byte %lld, inside a header", (long long)t->at);
  if (tar_is_zero(block)) return TN_EOF;
  if (!tar_sum_fits(block))
    return TAR_FAIL(t,
                    from == 0 ? "it is no tar archive: the checksum of its first header is wrong"
                              : "its header at byte %lld is damaged: the checksum is wrong",
                    (long long)from);
  t->size = tar_number(block + TAR_SIZE_AT, TAR_SIZE_SIZE);
  if (t->size < 0 || t->size > INT64_MAX / 2)
    return TAR_FAIL(t, "its header at byte %lld is damaged: the size is no number", (long long)from);
  t->type = (char)(block[TAR_TYPE_AT] == '\0' || block[TAR_TYPE_AT] == '7' ? '0' : block[TAR_TYPE_AT]);
  return TN_OK;
}

static void tar_set_end(tar *t) { t->behind = t->at + (t->size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK; }

/* A name longer than this reader keeps belongs to no sample. */
static tn_status tar_set_name(tar *t, const char *name, size_t n) {
  if (n >= TAR_NAME || n == 0)
    return TAR_FAIL(t, "a member at byte %lld has a name of %zu bytes, expected 1 to %d", (long long)t->at, n,
                    TAR_NAME - 1);
  memcpy(t->name, name, n);
  t->name[n] = '\0';
  return TN_OK;
}

/* ---- the members that describe others ---- */

static tn_status tar_take_long_name(tar *t, tar_extra *extra) {
  char name[TAR_NAME];
  if (t->size >= TAR_NAME) return tar_set_name(t, "", (size_t)t->size);
  TN_TRY(tar_read(t, name));
  extra->named = 1;
  return tar_set_name(t, name, strnlen(name, (size_t)t->size));
}

static int32_t tar_is_key(const char *text, const char *key) { return strncmp(text, key, strlen(key)) == 0; }

/* "path=NAME" of n bytes; other keys are not needed. */
static tn_status tar_take_pair(tar *t, const char *pair, size_t n, tar_extra *extra) {
  if (tar_is_key(pair, "path=")) {
    extra->named = 1;
    return tar_set_name(t, pair + 5, n - 5);
  }
  if (tar_is_key(pair, "GNU.sparse.")) extra->sparse = 1;
  if (!tar_is_key(pair, "size=")) return TN_OK;
  char *end;
  long long size = strtoll(pair + 5, &end, 10);
  if (end != pair + n || end == pair + 5 || size < 0 || size > INT64_MAX / 2)
    return TAR_FAIL(t, "a pax header before byte %lld has the size '%.40s'", (long long)t->at, pair + 5);
  extra->sized = 1;
  extra->size = size;
  return TN_OK;
}

/* Records such as "25 path=photos/0001.jpg\n", whose number counts the whole record. */
static tn_status tar_take_pairs(tar *t, char *text, size_t n, tar_extra *extra) {
  for (size_t at = 0; at < n;) {
    char *end;
    unsigned long length = strtoul(text + at, &end, 10);
    size_t digits = (size_t)(end - (text + at));
    if (digits == 0 || *end != ' ' || length < digits + 2 || length > n - at || text[at + length - 1] != '\n')
      return TAR_FAIL(t, "a pax header before byte %lld is damaged", (long long)t->at);
    text[at + length - 1] = '\0';
    TN_TRY(tar_take_pair(t, end + 1, length - digits - 2, extra));
    at += length;
  }
  return TN_OK;
}

static tn_status tar_take_pax(tar *t, tar_extra *extra) {
  if (t->size > TAR_LONGEST_PAX)
    return TAR_FAIL(t, "a pax header at byte %lld has %lld bytes, expected at most %d", (long long)t->at,
                    (long long)t->size, TAR_LONGEST_PAX);
  size_t n = (size_t)t->size;
  char *text = tn_new(t->handle, n + 1);
  if (text == NULL) return TN_ENOMEM;
  tn_status status = tar_read(t, text);
  text[n] = '\0';
  if (status == TN_OK) status = tar_take_pairs(t, text, n, extra);
  tn_delete(t->handle, text);
  return status;
}

/* TN_OK: the member was a description. TN_EUNSUPPORTED: it is no description. */
static tn_status tar_take_extra(tar *t, tar_extra *extra) {
  if (t->type == 'L') return tar_take_long_name(t, extra);
  if (t->type == 'x') return tar_take_pax(t, extra);
  return t->type == 'K' || t->type == 'g' || t->type == 'V' ? TN_OK : TN_EUNSUPPORTED;
}

tn_status tar_next(tar *t) {
  uint8_t block[TAR_BLOCK];
  tar_extra extra = {0};
  tn_status status;
  do {
    TN_TRY(tar_take_header(t, block));
    tar_set_end(t);
  } while ((status = tar_take_extra(t, &extra)) == TN_OK);
  if (status != TN_EUNSUPPORTED) return status;
  if (!extra.named) tar_take_name(t, block);
  if (extra.sized) t->size = extra.size;
  t->sparse = extra.sparse;
  tar_set_end(t);
  return TN_OK;
}

/* tests/attack/bytes.c: ways in which the bytes of a file are damaged, or another kind of file takes its
 * place. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/attack/attack.h"

const char *attack_strange_number(void) {
  static const char *const numbers[] = {"0",
                                        "-1",
                                        "1",
                                        "99999999999999999999",
                                        "9223372036854775807",
                                        "4294967296",
                                        "2147483648",
                                        "2147483647",
                                        "-9223372036854775808",
                                        "18446744073709551615",
                                        "1e308",
                                        "1e999",
                                        "-1e999",
                                        "1e-320",
                                        "0.5",
                                        "NaN",
                                        "nan",
                                        "Infinity",
                                        "-inf",
                                        "null",
                                        "true",
                                        "\"x\"",
                                        "[]",
                                        "{}",
                                        "0x10",
                                        "65537",
                                        "1e400000",
                                        "00000000001",
                                        "-0",
                                        ""};
  return ATTACK_PICK(numbers);
}

const char *attack_strange_text(void) {
  static char text[6000];
  static const char *const texts[] = {"\"\"",
                                      "null",
                                      "[]",
                                      "{\"a\": 1}",
                                      "../precious",
                                      "/dev/zero",
                                      "%s%n%s%n",
                                      "\\ud800",
                                      "\\u0000",
                                      "\x1b]0;title\x07\x1b[31m",
                                      "\xc2\x9b"
                                      "2J",
                                      "\xe2\x80\xae"
                                      "abc",
                                      "\xff\xfe",
                                      "\xef\xbb\xbf",
                                      "=HYPERLINK(1)",
                                      "<script>alert(1)</script>",
                                      "\n[plugins]\nload = x.so\n",
                                      "[[[[[[[[[[[[[[[[",
                                      "{{{{{{{{{{{{{{{{",
                                      ";",
                                      "\\",
                                      "\r\n",
                                      " "};
  uint64_t which = attack_draw(sizeof texts / sizeof *texts + 2);
  if (which < sizeof texts / sizeof *texts) return texts[which];
  memset(text, which % 2 != 0 ? 'A' : '[', sizeof text - 1);
  return text;
}

/* ---- replacing a part ---- */

static void bytes_replace(attack_bytes *b, size_t at, size_t n, const void *part, size_t n_part) {
  char *grown = malloc(b->n - n + n_part + 1);
  if (grown == NULL) attack_die("out of memory");
  memcpy(grown, b->v, at);
  memcpy(grown + at, part, n_part);
  memcpy(grown + at + n_part, b->v + at + n, b->n - at - n);
  free(b->v);
  b->n = b->n - n + n_part;
  b->v = grown;
  b->v[b->n] = '\0';
}

static void bytes_put_text(attack_bytes *b, size_t at, size_t n, const char *text) {
  bytes_replace(b, at, n, text, strlen(text));
}

/* ---- one way each; each has at least a byte, of which the first `limit` may be changed ---- */

static void bytes_flip(attack_bytes *b, size_t limit, char *words, size_t size) {
  size_t at = attack_draw(limit);
  int bit = (int)attack_draw(8);
  b->v[at] = (char)(b->v[at] ^ 1 << bit);
  snprintf(words, size, "bit %d of byte %zu", bit, at);
}

static void bytes_set(attack_bytes *b, size_t limit, char *words, size_t size) {
  static const char values[] = {0,   (char)255, '\n', '"', '\\', '-',  '9', '{',
                                '[', ']',       '}',  ',', ':',  0x1b, ' '};
  size_t at = attack_draw(limit);
  b->v[at] = ATTACK_PICK(values);
  snprintf(words, size, "byte %zu becomes %d", at, b->v[at] & 0xff);
}

static void bytes_cut(attack_bytes *b, size_t limit, char *words, size_t size) {
  size_t at = attack_draw(limit);
  bytes_replace(b, at, b->n - at, "", 0);
  snprintf(words, size, "cut at %zu", at);
}

static void bytes_delete(attack_bytes *b, size_t limit, char *words, size_t size) {
  size_t at = attack_draw(limit), most = b->n - at < 40 ? b->n - at : 40, n = 1 + attack_draw(most);
  bytes_replace(b, at, n, "", 0);
  snprintf(words, size, "%zu bytes at %zu removed", n, at);
}

static void bytes_insert(attack_bytes *b, size_t limit, char *words, size_t size) {
  size_t at = attack_draw(limit);
  const char *text = attack_draw(2) != 0 ? attack_strange_text() : attack_strange_number();
  bytes_put_text(b, at, 0, text);
  snprintf(words, size, "%zu bytes inserted at %zu", strlen(text), at);
}

/* The n-th piece that begins where `begins` says and goes on while `goes_on` does, or false. */
static bool bytes_find(const attack_bytes *b, size_t limit, int (*is_part)(int), size_t *at, size_t *n) {
  size_t count = 0, wanted;
  for (int round = 0; round < 2; round++) {
    wanted = round == 0 ? SIZE_MAX : attack_draw(count);
    size_t seen = 0;
    for (size_t i = 0; i < limit; i++) {
      size_t end = i;
      while (end < b->n && is_part((unsigned char)b->v[end]) != 0) end++;
      if (end == i) continue;
      *at = i;
      *n = end - i;
      if (seen++ == wanted) return true;
      i = end;
    }
    count = seen;
    if (count == 0) return false;
  }
  return false;
}

static int bytes_is_word(int c) { return isalnum(c) || c == '_' || c == '.'; }
static int bytes_is_digit(int c) { return isdigit(c); }

static void bytes_number(attack_bytes *b, size_t limit, char *words, size_t size) {
  size_t at = 0, n = 0;
  const char *text = attack_strange_number();
  bool found = bytes_find(b, limit, bytes_is_digit, &at, &n);
  if (found) bytes_put_text(b, at, n, text);
  snprintf(words, size, found ? "the number at %zu becomes %s" : "no number", at, text);
}

static void bytes_word(attack_bytes *b, size_t limit, char *words, size_t size) {
  size_t at = 0, n = 0;
  const char *text = attack_strange_text();
  bool found = bytes_find(b, limit, bytes_is_word, &at, &n);
  if (found) bytes_put_text(b, at, n, text);
  snprintf(words, size, "the word at %zu becomes %zu bytes", at, found ? strlen(text) : 0);
}

static size_t bytes_line_end(const attack_bytes *b, size_t from) {
  const char *end = memchr(b->v + from, '\n', b->n - from);
  return end != NULL ? (size_t)(end - b->v) + 1 : b->n;
}

/* The line around a byte goes, comes twice, or moves to the front. */
static void bytes_line(attack_bytes *b, size_t limit, char *words, size_t size) {
  static const char *const ways[] = {"removed", "doubled", "put in front"};
  size_t at = attack_draw(limit), from = at;
  int way = (int)attack_draw(3);
  while (from > 0 && b->v[from - 1] != '\n') from--;
  size_t n = bytes_line_end(b, from) - from;
  char *line = malloc(n + 1);
  if (line == NULL) attack_die("out of memory");
  memcpy(line, b->v + from, n);
  if (way != 1) bytes_replace(b, from, n, "", 0);
  if (way != 0) bytes_replace(b, way == 1 ? from : 0, 0, line, n);
  free(line);
  snprintf(words, size, "the line of byte %zu is %s", at, ways[way]);
}

/* Eight bytes as a length or an offset. */
static void bytes_length(attack_bytes *b, size_t limit, char *words, size_t size) {
  static const uint64_t lengths[] = {0,          1,          7,          UINT32_MAX,    1ull << 31,
                                     1ull << 32, 1ull << 40, 1ull << 62, 1ull << 63,    UINT64_MAX,
                                     100u << 20, 0x7fffffff, 1000,       UINT64_MAX - 7};
  size_t at = attack_draw(2) != 0 ? 0 : attack_draw(limit), n = b->n - at < 8 ? b->n - at : 8;
  uint64_t length = ATTACK_PICK(lengths);
  memcpy(b->v + at, &length, n);
  snprintf(words, size, "length %llu at %zu", (unsigned long long)length, at);
}

/* A float, for tensors. */
static void bytes_float(attack_bytes *b, size_t limit, char *words, size_t size) {
  static const uint32_t floats[] = {0x7fc00000, 0xffc00000, 0x7f800000, 0xff800000,
                                    0x7f7fffff, 0x00000001, 0x80000000};
  size_t at = attack_draw(limit) & ~(size_t)3, n = b->n - at < 4 ? b->n - at : 4;
  uint32_t value = ATTACK_PICK(floats);
  memcpy(b->v + at, &value, n);
  snprintf(words, size, "float %#x at %zu", (unsigned)value, at);
}

static void bytes_empty(attack_bytes *b, size_t limit, char *words, size_t size) {
  (void)limit;
  bytes_replace(b, 0, b->n, "", 0);
  snprintf(words, size, "empty");
}

static void bytes_append(attack_bytes *b, size_t limit, char *words, size_t size) {
  (void)limit;
  size_t before = b->n;
  bytes_put_text(b, b->n, 0, attack_strange_text());
  snprintf(words, size, "%zu bytes appended", b->n - before);
}

static void bytes_zeros(attack_bytes *b, size_t limit, char *words, size_t size) {
  size_t at = attack_draw(limit);
  memset(b->v + at, 0, b->n - at);
  snprintf(words, size, "zeros from %zu on", at);
}

void attack_damage_bytes(attack_bytes *bytes, size_t head, char *words, size_t size) {
  static void (*const ways[])(attack_bytes *, size_t, char *,
                              size_t) = {bytes_flip,   bytes_flip,   bytes_set,    bytes_cut,    bytes_delete,
                                         bytes_insert, bytes_number, bytes_number, bytes_word,   bytes_line,
                                         bytes_length, bytes_float,  bytes_empty,  bytes_append, bytes_zeros};
  size_t limit = head > 0 && head < bytes->n ? head : bytes->n;
  if (bytes->n == 0) {
    bytes_append(bytes, 0, words, size);
    return;
  }
  ATTACK_PICK(ways)(bytes, limit, words, size);
}

/* ---- other kinds of files ---- */

static void bytes_make_socket(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path);
  if (s < 0 || bind(s, (struct sockaddr *)&address, sizeof address) != 0)
    attack_die("%s: %s", path, strerror(errno));
  close(s);
}

const char *attack_replace(const char *path) {
  static const char *const links[] = {"/dev/zero",      "/dev/full",  "model.safetensors", "/nowhere",
                                      "/proc/self/mem", "/dev/stdin", "/proc/kmsg",        "/"};
  static char words[64];
  const char *target;
  char precious[4096];
  attack_remove(path);
  switch (attack_draw(7)) {
  case 0: return "removed";
  case 1: attack_folder(path); return "a folder";
  case 2: return mkfifo(path, 0644) == 0 ? "a FIFO" : "removed";
  case 3: bytes_make_socket(path); return "a socket";
  case 4: attack_write_text(path, attack_strange_text()); return "a strange text";
  case 5:
    if (getcwd(precious, sizeof precious - 8) == NULL) return "removed";
    strcat(precious, attack_draw(2) != 0 ? "/keep" : "/base");
    return symlink(precious, path) == 0 ? "a link to other files" : "removed";
  default:
    target = ATTACK_PICK(links);
    snprintf(words, sizeof words, "a link to %s", target);
    return symlink(target, path) == 0 ? words : "removed";
  }
}

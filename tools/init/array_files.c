/* tools/init/array_files.c: reads headers of .npy files, and the members of .npz archives (PKWARE,
 * APPNOTE.TXT 6.3). It leaves files out that it cannot read: the source says more when it opens them. */
#include "tools/init/array_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { LARGEST_LABELS = 1 << 26 }; /* bytes of an array whose greatest number is looked for */

static bool array_files_end(const char *name, const char *ending) {
  size_t n = strlen(name), m = strlen(ending);
  return n > m && strcmp(name + n - m, ending) == 0;
}

static uint64_t array_files_number(const unsigned char *at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

/* ---- one array ---- */

static void array_files_find_greatest(array_look *a, const unsigned char *data, size_t bytes) {
  size_t n = bytes / (size_t)a->size;
  for (size_t i = 0; i < n; i++) {
    long long value = (long long)array_files_number(data + i * (size_t)a->size, a->size);
    bool ignored =
        (a->size == 1 && value == 255) || (a->kind == 'i' && a->size < 8 && value >> (8 * a->size - 1));
    if (!ignored && value > a->greatest) a->greatest = value;
  }
}

/* The header of a .npy file at `bytes`; behind it there may be less than the whole array. */
static bool array_files_read(array_look *a, const unsigned char *bytes, size_t count) {
  char text[4096], order;
  int used = 0;
  if (count < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0) return false;
  size_t start = bytes[6] == 1 ? 10 : 12,
         length = (size_t)array_files_number(bytes + 8, bytes[6] == 1 ? 2 : 4);
  if (length >= sizeof text || length > count - start) return false;
  memcpy(text, bytes + start, length);
  text[length] = '\0';
  const char *descr = strstr(text, "'descr': '"), *shape = strstr(text, "'shape': (");
  if (descr == NULL || shape == NULL || strstr(text, "'fortran_order': True") != NULL) return false;
  if (sscanf(descr, "'descr': '%c%c%d'", &order, &a->kind, &a->size) != 3 || strchr("biuf", a->kind) == NULL)
    return false;
  for (shape += strlen("'shape': (");
       a->rank < ARRAYS_RANK && sscanf(shape, "%lld%n", &a->dims[a->rank], &used) == 1;
       shape += strspn(shape, ", ")) {
    a->rank++;
    shape += used;
  }
  size_t rest = count - start - length;
  a->greatest = -1;
  if (order != '>' && a->kind != 'f' && rest <= LARGEST_LABELS && a->size >= 1 && a->size <= 8)
    array_files_find_greatest(a, bytes + start + length, rest);
  return a->rank > 0 && a->dims[0] > 0;
}

static void array_files_add(array_looks *found, const char *name, size_t name_n, const char *place,
                            const unsigned char *bytes, size_t count) {
  array_look a = {.rank = 0};
  if (found->n == ARRAYS_MOST || name_n >= ARRAYS_NAME || !array_files_read(&a, bytes, count)) return;
  snprintf(a.name, sizeof a.name, "%.*s", (int)name_n, name);
  snprintf(a.place, sizeof a.place, "%s", place);
  found->v[found->n++] = a;
}

/* ---- files ---- */

/* The bytes of a file, mapped, since it may be large. NULL: errno says why. */
static const unsigned char *array_files_map(const char *path, size_t *n) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  void *at = MAP_FAILED;
  if (fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0)
    at = mmap(NULL, *n = (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (fd >= 0) close(fd);
  return at != MAP_FAILED ? at : NULL;
}

/* The beginning of a member, unpacked. The caller frees it. */
static unsigned char *array_files_unpack(const unsigned char *from, size_t packed, size_t whole, size_t *n) {
  z_stream stream = {.next_in = (unsigned char *)(uintptr_t)from, .avail_in = (uInt)packed};
  *n = whole < LARGEST_LABELS ? whole : LARGEST_LABELS;
  unsigned char *to = malloc(*n + 1);
  if (to == NULL || inflateInit2(&stream, -MAX_WBITS) != Z_OK) {
    free(to);
    return NULL;
  }
  stream.next_out = to;
  stream.avail_out = (uInt)*n;
  inflate(&stream, Z_SYNC_FLUSH);
  *n -= stream.avail_out;
  inflateEnd(&stream);
  return to;
}

/* The member whose entry of the directory is at `e`. */
static void array_files_add_member(array_looks *found, const char *place, const unsigned char *bytes,
                                   size_t n, const unsigned char *e) {
  char whole_place[2 * ARRAYS_PATH];
  size_t method = (size_t)array_files_number(e + 10, 2), packed = (size_t)array_files_number(e + 20, 4),
         whole = (size_t)array_files_number(e + 24, 4), at = (size_t)array_files_number(e + 42, 4),
         got = whole;
  size_t name_n = (size_t)array_files_number(e + 28, 2);
  if (name_n <= 4 || memcmp(e + 46 + name_n - 4, ".npy", 4) != 0 || n < 30 || at > n - 30) return;
  size_t data = at + 30 + (size_t)array_files_number(bytes + at + 26, 2) +
                (size_t)array_files_number(bytes + at + 28, 2);
  if (data > n || packed > n - data || (method != 0 && method != 8)) return;
  unsigned char *own = method == 8 ? array_files_unpack(bytes + data, packed, whole, &got) : NULL;
  snprintf(whole_place, sizeof whole_place, "%s/%.*s", place, (int)name_n - 4, (const char *)e + 46);
  if (method == 0 || own != NULL)
    array_files_add(found, (const char *)e + 46, name_n - 4, whole_place, method == 8 ? own : bytes + data,
                    got);
  free(own);
}

static void array_files_add_archive(array_looks *found, const char *place, const unsigned char *bytes,
                                    size_t n) {
  if (n < 22) return;
  size_t end = n - 22, least = end > 65535 ? end - 65535 : 0;
  while (end > least && memcmp(bytes + end, "PK\5\6", 4) != 0) end--;
  size_t at = (size_t)array_files_number(bytes + end + 16, 4);
  while (at + 46 <= n && memcmp(bytes + at, "PK\1\2", 4) == 0) {
    size_t next = at + 46 +
                  (size_t)(array_files_number(bytes + at + 28, 2) + array_files_number(bytes + at + 30, 2) +
                           array_files_number(bytes + at + 32, 2));
    if (next > n) return;
    array_files_add_member(found, place, bytes, n, bytes + at);
    at = next;
  }
}

static int array_files_add_file(const cli_args *args, const char *path, const char *place,
                                array_looks *found) {
  const char *slash = strrchr(place, '/'), *name = slash != NULL ? slash + 1 : place;
  size_t n = 0;
  const unsigned char *bytes = array_files_map(path, &n);
  if (bytes == NULL) return cli_refuse(args, CLI_IO, "%s: cannot be read: %s", path, strerror(errno));
  if (array_files_end(name, ".npz"))
    array_files_add_archive(found, place, bytes, n);
  else
    array_files_add(found, name, strlen(name) - 4, place, bytes, n);
  munmap((void *)(uintptr_t)bytes, n);
  return CLI_OK;
}

static int array_files_select(const struct dirent *entry) {
  return entry->d_name[0] != '.' &&
         (array_files_end(entry->d_name, ".npy") || array_files_end(entry->d_name, ".npz"));
}

bool array_files_are(const char *path, bool folder) {
  struct dirent **list;
  if (!folder) return array_files_end(path, ".npz");
  int n = scandir(path, &list, array_files_select, NULL);
  for (int i = 0; i < n; i++) free(list[i]);
  if (n >= 0) free(list);
  return n > 0;
}

int array_files_survey(const cli_args *args, const char *path, bool folder, array_looks *found) {
  struct dirent **list;
  const char *slash = strrchr(path, '/');
  int code = CLI_OK;
  found->n = 0;
  if (!folder) return array_files_add_file(args, path, slash != NULL ? slash + 1 : path, found);
  int n = scandir(path, &list, array_files_select, alphasort);
  for (int i = 0; i < n; i++) {
    char whole[2 * ARRAYS_PATH];
    snprintf(whole, sizeof whole, "%s/%s", path, list[i]->d_name);
    if (code == CLI_OK) code = array_files_add_file(args, whole, list[i]->d_name, found);
    free(list[i]);
  }
  if (n >= 0) free(list);
  return code;
}

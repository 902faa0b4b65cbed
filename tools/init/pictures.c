/* tools/init/pictures.c: lists class folders, and reads the sizes in the headers of files. */
#include "tools/init/pictures.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tenon/file_names.h"
#include "tools/cli/cli.h"

enum { PICTURES_MOST_EXAMINED = 4096 };

typedef struct pictures_size {
  long long width, height;
} pictures_size;

typedef struct pictures_sizes {
  pictures_size v[PICTURES_MOST_EXAMINED];
  int n, unread;
  char first_unread[PICTURES_PATH];
} pictures_sizes;

/* ---- one file ---- */

static long long pictures_number(const unsigned char *bytes, int n) {
  long long value = 0;
  for (int i = 0; i < n; i++) value = value * 256 + bytes[i];
  return value;
}

static bool pictures_read_png(FILE *file, pictures_size *size) {
  unsigned char head[16]; /* behind the signature: length, "IHDR", width, height */
  if (fread(head, 1, sizeof head, file) != sizeof head || memcmp(head + 4, "IHDR", 4) != 0) return false;
  *size = (pictures_size){pictures_number(head + 8, 4), pictures_number(head + 12, 4)};
  return true;
}

/* Segments up to the first frame header, which has the size: markers c0 to cf but for tables (c4, c8, cc). */
static bool pictures_read_jpeg(FILE *file, pictures_size *size) {
  unsigned char head[9];
  while (fread(head, 1, 4, file) == 4 && head[0] == 0xff) {
    int marker = head[1];
    long long length = pictures_number(head + 2, 2);
    bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (!frame && (length < 2 || fseek(file, (long)length - 2, SEEK_CUR) != 0)) return false;
    if (!frame) continue;
    if (fread(head + 4, 1, 5, file) != 5) return false;
    *size = (pictures_size){pictures_number(head + 7, 2), pictures_number(head + 5, 2)};
    return true;
  }
  return false;
}

static long long pictures_little(const unsigned char *bytes, int n) {
  long long value = 0;
  for (int i = n - 1; i >= 0; i--) value = value * 256 + bytes[i];
  return value;
}

/* The first 64 bytes: behind the heads of RIFF and chunk, a canvas (VP8X), a lossless or a lossy picture. */
static bool pictures_read_webp(FILE *file, pictures_size *size) {
  unsigned char head[30];
  if (fseek(file, 0, SEEK_SET) != 0 || fread(head, 1, sizeof head, file) != sizeof head) return false;
  long long lossless = pictures_little(head + 21, 4);
  if (memcmp(head + 8, "WEBPVP8X", 8) == 0)
    *size = (pictures_size){pictures_little(head + 24, 3) + 1, pictures_little(head + 27, 3) + 1};
  else if (memcmp(head + 8, "WEBPVP8L", 8) == 0)
    *size = (pictures_size){(lossless & 0x3fff) + 1, (lossless >> 14 & 0x3fff) + 1};
  else if (memcmp(head + 8, "WEBPVP8 ", 8) == 0)
    *size = (pictures_size){pictures_little(head + 26, 2) & 0x3fff, pictures_little(head + 28, 2) & 0x3fff};
  else
    return false;
  return true;
}

/* The property "ispe" of the first picture. */
static bool pictures_read_avif(FILE *file, pictures_size *size) {
  unsigned char head[4096];
  if (fseek(file, 0, SEEK_SET) != 0) return false;
  size_t n = fread(head, 1, sizeof head, file);
  for (size_t i = 0; i + 16 <= n; i++) {
    if (memcmp(head + i, "ispe", 4) != 0) continue;
    *size = (pictures_size){pictures_number(head + i + 8, 4), pictures_number(head + i + 12, 4)};
    return true;
  }
  return false;
}

/* Entries 256 and 257 of the first directory, 12 bytes each: tag, type (3: 16 bits), count, value. */
static bool pictures_read_tiff(FILE *file, bool big, pictures_size *size) {
  long long (*number)(const unsigned char *, int) = big ? pictures_number : pictures_little;
  unsigned char entry[12];
  if (fseek(file, 4, SEEK_SET) != 0 || fread(entry, 1, 4, file) != 4) return false;
  if (fseek(file, (long)number(entry, 4), SEEK_SET) != 0 || fread(entry, 1, 2, file) != 2) return false;
  for (long long left = number(entry, 2); left > 0 && fread(entry, 1, sizeof entry, file) == sizeof entry;
       left--) {
    long long tag = number(entry, 2), value = number(entry + 8, number(entry + 2, 2) == 3 ? 2 : 4);
    if (tag == 256) size->width = value;
    if (tag == 257) size->height = value;
  }
  return size->width > 0 && size->height > 0;
}

/* NULL for other kinds of files: a FIFO of this name would wait for a writer. */
static FILE *pictures_open(const char *path) {
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  FILE *file = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) ? fdopen(fd, "rb") : NULL;
  if (file == NULL && fd >= 0) close(fd);
  return file;
}

static bool pictures_read_header(FILE *file, pictures_size *size) {
  static const unsigned char png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  unsigned char magic[8];
  *size = (pictures_size){0, 0};
  bool read = fread(magic, 1, sizeof magic, file) == sizeof magic;
  if (read && magic[0] == 0xff && magic[1] == 0xd8)
    read = fseek(file, 2, SEEK_SET) == 0 && pictures_read_jpeg(file, size);
  else if (read && memcmp(magic, png, sizeof png) == 0)
    read = pictures_read_png(file, size);
  else if (read && memcmp(magic, "RIFF", 4) == 0)
    read = pictures_read_webp(file, size);
  else if (read && (memcmp(magic, "II*", 4) == 0 || memcmp(magic, "MM\0*", 4) == 0))
    read = pictures_read_tiff(file, magic[0] == 'M', size);
  else
    read = read && memcmp(magic + 4, "ftyp", 4) == 0 && pictures_read_avif(file, size);
  return read && size->width > 0 && size->height > 0;
}

static bool pictures_read_size(const char *path, pictures_size *size) {
  FILE *file = pictures_open(path);
  bool read = file != NULL && pictures_read_header(file, size);
  if (file != NULL) fclose(file);
  return read;
}

bool pictures_size_in(const void *bytes, size_t n, long long *width, long long *height) {
  pictures_size size;
  FILE *file = n > 0 ? fmemopen((void *)bytes, n, "rb") : NULL;
  bool read = file != NULL && pictures_read_header(file, &size);
  if (file != NULL) fclose(file);
  if (!read) return false;
  *width = size.width;
  *height = size.height;
  return true;
}

/* ---- folders ---- */

bool pictures_has_suffix(const char *name) { return name[0] != '.' && tn_name_is_picture(name); }

static bool pictures_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* False: the path is too long. */
static bool pictures_join(char path[PICTURES_PATH], const char *folder, const char *name) {
  int n = snprintf(path, PICTURES_PATH, "%s/%s", folder, name);
  return n >= 0 && n < PICTURES_PATH;
}

static void pictures_examine(const char *file, pictures_sizes *sizes) {
  if (pictures_read_size(file, &sizes->v[sizes->n]))
    sizes->n++;
  else if (sizes->unread++ == 0)
    snprintf(sizes->first_unread, sizeof sizes->first_unread, "%s", file);
}

/* The pictures of one class; `sizes` NULL: they are only counted. */
static long long pictures_list_class(const char *path, pictures_sizes *sizes) {
  DIR *folder = opendir(path);
  long long count = 0;
  for (struct dirent *entry; folder != NULL && (entry = readdir(folder));) {
    char file[PICTURES_PATH];
    if (!pictures_has_suffix(entry->d_name)) continue;
    count++;
    bool wanted = sizes != NULL && sizes->n < PICTURES_MOST_EXAMINED;
    if (wanted && pictures_join(file, path, entry->d_name)) pictures_examine(file, sizes);
  }
  if (folder != NULL) closedir(folder);
  return count;
}

static void pictures_list_part(const char *path, pictures_part *part, pictures_sizes *sizes) {
  DIR *folder = opendir(path);
  *part = (pictures_part){.there = folder != NULL};
  for (struct dirent *entry; folder != NULL && (entry = readdir(folder));) {
    char name[PICTURES_PATH];
    if (entry->d_name[0] == '.' || !pictures_join(name, path, entry->d_name) || !pictures_is_folder(name))
      continue;
    part->classes++;
    part->count += pictures_list_class(name, sizes);
  }
  if (folder != NULL) closedir(folder);
}

static void pictures_find_valid(const char *folder, pictures_part *part) {
  static const char *const names[] = {"valid", "val", "test"};
  for (int i = 0; i < 3 && !part->there; i++) {
    char path[PICTURES_PATH];
    if (pictures_join(path, folder, names[i])) pictures_list_part(path, part, NULL);
  }
}

/* ---- the whole ---- */

static long long pictures_shorter(pictures_size size) {
  return size.width < size.height ? size.width : size.height;
}

static int pictures_compare(const void *a, const void *b) {
  long long x = pictures_shorter(*(const pictures_size *)a), y = pictures_shorter(*(const pictures_size *)b);
  return (x > y) - (x < y);
}

static void pictures_judge_sizes(pictures_sizes *sizes, pictures *found) {
  qsort(sizes->v, (size_t)sizes->n, sizeof *sizes->v, pictures_compare);
  pictures_size middle = sizes->v[sizes->n / 2];
  found->width = middle.width;
  found->height = middle.height;
  found->same = sizes->n == found->train.count;
  for (int i = 0; i < sizes->n; i++)
    found->same = found->same && sizes->v[i].width == middle.width && sizes->v[i].height == middle.height;
}

static int pictures_check(const cli_args *args, const char *folder, const pictures *found, int examined) {
  if (found->train.classes >= 2 && found->train.count >= 2 && examined > 0) return CLI_OK;
  return cli_refuse(
      args, CLI_DATA,
      "%s: has %lld folder%s with %lld " TN_PICTURE_ENDINGS " files, %d of which can be read; expected "
      "a folder for each class, at least two, with such files (CLASS/FILE.jpg), or train/ with such folders; "
      "pictures of other kinds must be converted",
      folder, found->train.classes, found->train.classes == 1 ? "" : "s", found->train.count, examined);
}

int pictures_survey(const cli_args *args, const char *folder, pictures *found) {
  char train[PICTURES_PATH];
  pictures_sizes *sizes = calloc(1, sizeof *sizes);
  if (sizes == NULL) return cli_refuse(args, CLI_UNAVAILABLE, "no memory");
  *found = (pictures){.parts = false};
  found->parts = pictures_join(train, folder, "train") && pictures_is_folder(train);
  pictures_list_part(found->parts ? train : folder, &found->train, sizes);
  if (found->parts) pictures_find_valid(folder, &found->valid);
  int code = pictures_check(args, folder, found, sizes->n);
  if (code == CLI_OK) pictures_judge_sizes(sizes, found);
  found->unread = sizes->unread;
  memcpy(found->first_unread, sizes->first_unread, sizeof found->first_unread);
  free(sizes);
  return code;
}

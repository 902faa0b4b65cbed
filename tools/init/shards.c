/* tools/init/shards.c: a look at tar archives of samples, as WebDataset writes them: pictures and their
 * classes. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "tools/cli/cli.h"
#include "tools/init/init.h"

enum { SHARDS_BLOCK = 512, SHARDS_ARCHIVES = 256, SHARDS_EXAMINED = 64, SHARDS_LARGEST = 1 << 24 };

static bool shards_has_suffix(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot != NULL && name[0] != '.' && strcasecmp(dot, ".tar") == 0;
}

bool init_is_shards(const char *path, bool folder) {
  bool found = false;
  if (!folder) return shards_has_suffix(path);
  DIR *all = opendir(path);
  for (struct dirent *entry; all != NULL && !found && (entry = readdir(all));)
    found = shards_has_suffix(entry->d_name);
  if (all != NULL) closedir(all);
  return found;
}

/* ---- members ---- */

typedef struct shards_member {
  char ending[16]; /* in small letters, without the dot, or "" */
  long long bytes;
} shards_member;

/* The bytes of a member, as octal digits; -1: they are no number. */
static long long shards_size(const char *field) {
  char *end;
  long long size = strtoll(field, &end, 8);
  return end == field || size < 0 ? -1 : size;
}

/* The ending is all behind the first dot of the name's last part. */
static void shards_ending(const char *name, char ending[16]) {
  const char *slash = strrchr(name, '/'), *dot = strchr(slash != NULL ? slash + 1 : name, '.');
  snprintf(ending, 16, "%s", dot != NULL && strlen(dot + 1) < 16 ? dot + 1 : "");
  for (char *c = ending; *c != '\0'; c++) *c = (char)tolower((unsigned char)*c);
}

/* Reads a header; false: the archive ends. Links and headers of other kinds have no ending. */
static bool shards_next(FILE *tar, shards_member *m) {
  char head[SHARDS_BLOCK], name[101], size[13];
  if (fread(head, 1, sizeof head, tar) != sizeof head || head[0] == '\0') return false;
  memcpy(name, head, 100), name[100] = '\0';
  memcpy(size, head + 124, 12), size[12] = '\0';
  m->bytes = shards_size(size);
  shards_ending(head[156] == '0' || head[156] == '\0' ? name : "", m->ending);
  return m->bytes >= 0;
}

/* ---- samples ---- */

static bool shards_is_picture(const char *ending) {
  char name[24];
  snprintf(name, sizeof name, "x.%s", ending);
  return strchr(ending, '.') == NULL && pictures_has_suffix(name);
}

static void shards_note_size(pictures *found, const char *bytes, size_t n) {
  long long width, height;
  if (!pictures_size_in(bytes, n, &width, &height)) return;
  found->same = found->width == 0 || (found->same && found->width == width && found->height == height);
  found->width = width;
  found->height = height;
}

static void shards_note(pictures *found, const shards_member *m, const char *bytes, size_t n) {
  if (strcmp(m->ending, "cls") == 0) {
    long long class = strtoll(bytes, NULL, 10);
    if (class >= found->train.classes) found->train.classes = class + 1;
  } else if (shards_is_picture(m->ending)) {
    if (found->train.count++ == 0) snprintf(found->ending, sizeof found->ending, "%s", m->ending);
    if (found->train.count <= SHARDS_EXAMINED) shards_note_size(found, bytes, n);
  }
}

/* Reads the classes, and of the first pictures the headers. */
static void shards_look_at(FILE *tar, pictures *found) {
  shards_member m;
  while (shards_next(tar, &m)) {
    long long blocks = (m.bytes + SHARDS_BLOCK - 1) / SHARDS_BLOCK;
    bool reads =
        m.bytes < SHARDS_LARGEST && (strcmp(m.ending, "cls") == 0 || found->train.count < SHARDS_EXAMINED);
    char *bytes = reads ? calloc(1, (size_t)m.bytes + 1) : NULL;
    size_t n = bytes != NULL ? fread(bytes, 1, (size_t)m.bytes, tar) : 0;
    shards_note(found, &m, bytes != NULL ? bytes : "", n);
    free(bytes);
    if (fseeko(tar, blocks * SHARDS_BLOCK - (long long)n, SEEK_CUR) != 0) return;
  }
}

static bool shards_read_file(const char *path, pictures *found) {
  struct stat info;
  FILE *tar = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rbe") : NULL;
  if (tar == NULL) return false;
  shards_look_at(tar, found);
  fclose(tar);
  return true;
}

/* ---- archives ---- */

static bool shards_begins(const char *name, const char *word) {
  return strncasecmp(name, word, strlen(word)) == 0;
}

static const char *shards_part_of(const char *name) {
  static const char *const words[] = {"valid", "val", "test", "dev"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (shards_begins(name, words[i])) return words[i];
  return NULL;
}

/* Archives whose names begin with train and with val are the two parts; else a part of all samples is for
 * validation. The classes of the first archives are looked at. */
static void shards_read_folder(const char *given, const char *path, pictures *found) {
  char name[PICTURES_PATH];
  const char *valid = NULL;
  bool train = false;
  int n = 0;
  DIR *all = opendir(given);
  for (struct dirent *entry; all != NULL && (entry = readdir(all));) {
    const char *part = shards_part_of(entry->d_name);
    if (!shards_has_suffix(entry->d_name)) continue;
    if (part != NULL && (valid == NULL || strlen(part) > strlen(valid))) valid = part;
    train = train || shards_begins(entry->d_name, "train");
    if (part == NULL && n++ < SHARDS_ARCHIVES &&
        snprintf(name, sizeof name, "%s/%s", given, entry->d_name) < PICTURES_PATH)
      shards_read_file(name, found);
  }
  if (all != NULL) closedir(all);
  bool parts = train && valid != NULL;
  snprintf(found->files, sizeof found->files, "%.4000s/%s*.tar", path, parts ? "train" : "");
  if (parts) snprintf(found->valid_files, sizeof found->valid_files, "%.4000s/%s*.tar", path, valid);
  found->valid.there = parts;
}

int init_survey_shards(const cli_args *args, const char *given, const char *path, bool folder,
                       pictures *found) {
  *found = (pictures){.unread = 0};
  if (folder)
    shards_read_folder(given, path, found);
  else if (!shards_read_file(given, found))
    return cli_refuse(args, CLI_IO, "%s: cannot be read: %s", given, strerror(errno));
  else
    snprintf(found->files, sizeof found->files, "%.4000s", path);
  if (found->train.count > 0 && found->train.classes >= 2 && found->width > 0) return CLI_OK;
  return cli_refuse(
      args, CLI_DATA,
      "%s: has %lld pictures of %lld classes, expected samples of a picture and its class, at least two "
      "classes: 0001.jpg and 0001.cls; docs/guide/shards.md says how others are read",
      given, found->train.count, found->train.classes);
}

/* tests/fuzz/fuzz.c: see fuzz.h. */
#include "tests/fuzz/fuzz.h"
#include "core/plugin/handles.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_ASKED = 256 << 20 };

static void *counted(void *context, void *block, size_t bytes) {
  fuzz *f = context;
  if (bytes == 0) {
    f->live -= block != NULL;
    free(block);
    return NULL;
  }
  if (bytes > MOST_ASKED - f->asked) return NULL;
  void *grown = realloc(block, bytes);
  f->asked += bytes;
  f->live += block == NULL && grown != NULL;
  return grown;
}

void fuzz_open(fuzz *f) {
  memset(f, 0, sizeof *f);
  tn_error_record_init_root(&f->env, &f->record, &tn_host_api);
  f->record.allocator = (tn_allocator){f, counted};
}

void fuzz_close(fuzz *f) { fuzz_expect(f->live == 0, "memory is not given back"); }

void fuzz_expect(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "finding: %s\n", what);
  abort();
}

void fuzz_judge(fuzz *f, tn_status status) {
  if (status == TN_OK) return;
  fuzz_expect(status != TN_EINTERNAL, tn_error_text(f));
  fuzz_expect(tn_error_text(f)[0] != '\0', "a failure without a message");
}

int fuzz_file(const uint8_t *bytes, size_t size, char path[64]) {
  int file = memfd_create("fuzz", 0);
  size_t done = 0;
  while (file >= 0 && done < size) {
    ssize_t n = write(file, bytes + done, size - done);
    fuzz_expect(n > 0, "no memory for the input");
    done += (size_t)n;
  }
  fuzz_expect(file >= 0, "no file for the input");
  snprintf(path, 64, "/proc/self/fd/%d", file);
  return file;
}

void fuzz_file_end(int file) { close(file); }

void fuzz_folder_open(fuzz_folder *folder) {
  snprintf(folder->path, sizeof folder->path, "/tmp/tenon_fuzz_XXXXXX");
  fuzz_expect(mkdtemp(folder->path) != NULL, "no folder for the input");
}

void fuzz_folder_write(const fuzz_folder *folder, const char *name, const uint8_t *bytes, size_t size) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder->path, name);
  FILE *file = fopen(path, "wb");
  fuzz_expect(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0,
              "no file for the input");
}

void fuzz_folder_close(const fuzz_folder *folder) {
  DIR *entries = opendir(folder->path);
  fuzz_expect(entries != NULL, "the folder is gone");
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
    if (entry->d_name[0] != '.') unlinkat(dirfd(entries), entry->d_name, 0);
  closedir(entries);
  rmdir(folder->path);
}

char *fuzz_text(const uint8_t *bytes, size_t size) {
  char *text = malloc(size + 1);
  fuzz_expect(text != NULL, "no memory for the input");
  if (size > 0) memcpy(text, bytes, size);
  text[size] = '\0';
  return text;
}

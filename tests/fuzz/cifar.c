/* The binary files of CIFAR. The first byte chooses CIFAR-10 or CIFAR-100 and its labels; up to a line "===="
 * the rest is the names of the classes, behind it the pictures. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/source.h"

extern const tn_source cifar_source;

static char folder[] = "/tmp/fuzz_cifar_XXXXXX";

static void folder_write(const char *name, const uint8_t *bytes, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "wb");
  fuzz_expect(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0,
              "no file for the input");
}

static void folder_remove(const char *name) {
  char path[64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static const char line[] = "\n====\n";
  fuzz f;
  if (size == 0) return 0;
  int many = bytes[0] & 1, coarse = bytes[0] & 2;
  const char *data = many ? "train.bin" : "data_batch_1.bin";
  const char *names = !many ? "batches.meta.txt" : coarse ? "coarse_label_names.txt" : "fine_label_names.txt";
  const uint8_t *first = bytes + 1, *end = bytes + size,
                *border = memmem(first, size - 1, line, strlen(line));
  const uint8_t *pictures = border != NULL ? border + strlen(line) : first;
  strcpy(folder + strlen(folder) - 6, "XXXXXX");
  fuzz_expect(mkdtemp(folder) != NULL, "no folder for the input");
  folder_write(data, pictures, (size_t)(end - pictures));
  if (border != NULL) folder_write(names, first, (size_t)(border - first));
  fuzz_open(&f);
  fuzz_source(&f, &cifar_source,
              (const fuzz_option[]){{"folder", folder}, {"labels", coarse ? "coarse" : "fine"}}, 2);
  fuzz_close(&f);
  folder_remove(data);
  folder_remove(names);
  rmdir(folder);
  return 0;
}

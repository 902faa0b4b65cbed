/* The binary files of CIFAR. The first byte chooses CIFAR-10 or CIFAR-100 and its labels; up to a line "===="
 * the rest is the names of the classes, behind it the pictures. */
#include "tests/fuzz/source.h"

extern const tn_source cifar_source;

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
  fuzz_folder folder;
  fuzz_folder_open(&folder);
  fuzz_folder_write(&folder, data, pictures, (size_t)(end - pictures));
  if (border != NULL) fuzz_folder_write(&folder, names, first, (size_t)(border - first));
  fuzz_open(&f);
  fuzz_source(&f, &cifar_source,
              (const fuzz_option[]){{"folder", folder.path}, {"labels", coarse ? "coarse" : "fine"}}, 2);
  fuzz_close(&f);
  fuzz_folder_close(&folder);
  return 0;
}

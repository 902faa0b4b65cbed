/* replay FOLDER: runs a fuzz target on every file of a folder of seeds, and on damaged copies: truncated,
 * with flipped bits, with a duplicated part. It makes the targets tests on machines without a fuzzer. */
#include <dirent.h>
#include <stdio.h>

#include "tests/fuzz/fuzz.h"

enum { MOST_BYTES = 1 << 20, DAMAGES = 48 };

static uint8_t seed[MOST_BYTES], damaged[2 * MOST_BYTES];

static size_t read_seed(const char *path) {
  FILE *file = fopen(path, "rb");
  fuzz_expect(file != NULL, path);
  size_t n = fread(seed, 1, sizeof seed, file);
  fclose(file);
  return n;
}

/* Memory of exactly the size of the input, so that a sanitizer detects reads past its end. */
static void run(const uint8_t *bytes, size_t n) {
  uint8_t *copy = malloc(n > 0 ? n : 1);
  fuzz_expect(copy != NULL, "no memory");
  if (n > 0) memcpy(copy, bytes, n);
  LLVMFuzzerTestOneInput(copy, n);
  free(copy);
}

static uint32_t draw(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u; /* Numerical Recipes */
  return *state >> 8;
}

static void damage(size_t n, uint32_t number) {
  uint32_t state = number + 1;
  if (n == 0) return;
  size_t at = draw(&state) % n, piece = draw(&state) % (n - at) + 1;
  memcpy(damaged, seed, n);
  if (number % 3 == 0) {
    run(damaged, at);
  } else if (number % 3 == 1) {
    for (int i = 0; i < 4; i++) damaged[draw(&state) % n] ^= (uint8_t)(1u << draw(&state) % 8);
    run(damaged, n);
  } else {
    memcpy(damaged + at + piece, seed + at, n - at);
    run(damaged, n + piece);
  }
}

int main(int argc, char **argv) {
  int seeds = 0;
  DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
  if (folder == NULL) return 2;
  run(NULL, 0);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    char path[1024];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
    size_t n = read_seed(path);
    run(seed, n);
    for (uint32_t i = 0; i < DAMAGES; i++) damage(n, i);
    printf("case ok: %s and %d damaged copies\n", entry->d_name, DAMAGES);
    seeds++;
  }
  closedir(folder);
  return seeds == 0;
}

/* images_test FOLDER TABLE ARCH...: the images that nvcc made (FOLDER/tenon-cuda.sm_90.images) have the
 * kernels that NVRTC makes of the same files, by the table of docs/results/cuda_kernels.txt, and no others.
 * For architectures that the table lacks, its first architecture has the names. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/modules/ahead.h"

enum { MOST_KERNELS = 4096, MACHINE_CUDA = 190 };

typedef struct kernel {
  char arch[16], file[64], name[128];
  int found;
} kernel;

static kernel kernels[MOST_KERNELS];
static int n_kernels, failed;
static tn_cuda_ahead ahead;

static void fail(const char *what, const char *file, const char *name) {
  fprintf(stderr, "%s: %s: %s: %s\n", ahead.path, file, name, what);
  failed++;
}

static int read_table(const char *path) {
  char line[512];
  FILE *table = fopen(path, "r");
  while (table != NULL && fgets(line, sizeof line, table) != NULL && n_kernels < MOST_KERNELS) {
    kernel *k = &kernels[n_kernels];
    n_kernels += sscanf(line, "sm_%15s %63s %127s", k->arch, k->file, k->name) == 3;
  }
  if (table != NULL) fclose(table);
  return n_kernels;
}

static const char *arch_of_names(const char *arch) {
  for (int i = 0; i < n_kernels; i++)
    if (strcmp(kernels[i].arch, arch) == 0) return arch;
  return kernels[0].arch;
}

static void find_kernel(const char *arch, const char *file, const char *name) {
  for (int i = 0; i < n_kernels; i++) {
    kernel *k = &kernels[i];
    if (strcmp(k->arch, arch) == 0 && strcmp(k->file, file) == 0 && strcmp(k->name, name) == 0) {
      k->found++;
      return;
    }
  }
  fail("is not in the table", file, name);
}

/* The global functions of a cubin are its kernels. */
static void find_kernels(const char *arch, const char *file, const tn_cuda_image *image) {
  const char *bytes = image->bytes;
  const Elf64_Ehdr *header = image->bytes;
  if (image->n < sizeof *header || memcmp(bytes, ELFMAG, SELFMAG) != 0 || header->e_machine != MACHINE_CUDA) {
    fail("is no cubin", file, "the image");
    return;
  }
  const Elf64_Shdr *sections = (const void *)(bytes + header->e_shoff);
  for (int i = 0; i < header->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const Elf64_Sym *symbols = (const void *)(bytes + sections[i].sh_offset);
    const char *names = bytes + sections[sections[i].sh_link].sh_offset;
    for (size_t s = 0; s < sections[i].sh_size / sizeof *symbols; s++)
      if (ELF64_ST_TYPE(symbols[s].st_info) == STT_FUNC && ELF64_ST_BIND(symbols[s].st_info) == STB_GLOBAL)
        find_kernel(arch, file, names + symbols[s].st_name);
  }
}

static void check(const char *folder, const char *arch) {
  const char *named = arch_of_names(arch);
  if (tn_cuda_ahead_open(folder, atoi(arch), &ahead) != TN_CUDA_AHEAD_READY)
    fail("cannot be used", folder, arch);
  for (int i = 0; i < n_kernels; i++) kernels[i].found = 0;
  for (int i = 0; i < ahead.n; i++) {
    tn_cuda_image image;
    bool damaged;
    if (tn_cuda_ahead_read(&ahead, ahead.entries[i].name, &image, &damaged))
      find_kernels(named, ahead.entries[i].name, &image);
    else
      fail("is damaged", ahead.entries[i].name, "the image");
    free(image.bytes);
  }
  for (int i = 0; i < n_kernels; i++)
    if (strcmp(kernels[i].arch, named) == 0 && kernels[i].found != 1)
      fail("is not in the image", kernels[i].file, kernels[i].name);
}

int main(int argc, char **argv) {
  if (argc < 4 || read_table(argv[2]) == 0) return fprintf(stderr, "%s: wrong arguments\n", argv[0]), 2;
  for (int i = 3; i < argc; i++) check(argv[1], argv[i]);
  return failed > 0;
}

/* core/plugin/elf.c: checks that a shared object is complete. The dynamic linker maps the segments of the
 * program headers without comparing them with the file's length, so a truncated file ends the process with
 * SIGBUS. The linker reports other defects. */
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/plugin/loader.h"

static bool elf_read_at(int file, void *to, size_t bytes, uint64_t offset) {
  return offset <= INT64_MAX && pread(file, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* A 64-bit file on a 64-bit machine. The linker refuses others. */
static bool elf_is_native(const Elf64_Ehdr *head) {
  return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
         sizeof(void *) == 8;
}

/* Whether every segment to be mapped lies within the file. */
static bool elf_is_complete(int file, const Elf64_Ehdr *head, uint64_t bytes) {
  if (head->e_phentsize != sizeof(Elf64_Phdr)) return false;
  for (uint32_t i = 0; i < head->e_phnum; i++) {
    Elf64_Phdr part;
    uint64_t at = head->e_phoff + i * sizeof part;
    if (at < head->e_phoff || !elf_read_at(file, &part, sizeof part, at)) return false;
    if (part.p_type != PT_LOAD) continue;
    if (part.p_filesz > bytes || part.p_offset > bytes - part.p_filesz) return false;
  }
  return true;
}

tn_status tn_plugin_check_complete(const void *handle, const char *path) {
  Elf64_Ehdr head;
  struct stat info;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return TN_OK; /* dlopen reports the reason */
  bool cut = fstat(file, &info) == 0 && elf_read_at(file, &head, sizeof head, 0) && elf_is_native(&head) &&
             !elf_is_complete(file, &head, (uint64_t)info.st_size);
  close(file);
  if (!cut) return TN_OK;
  return tn_failf(
      handle, TN_EUNAVAILABLE,
      "%s: cannot be opened: the file is damaged or cut off, it has %lld bytes and announces more; "
      "build or copy it again",
      path, (long long)info.st_size);
}

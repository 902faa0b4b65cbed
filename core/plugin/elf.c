/* core/plugin/elf.c: whether a shared object is all there. The dynamic linker maps what a file announces and
 * does not look how long the file is: one that was cut off while it was copied would end the process with
 * SIGBUS. Everything else that can be wrong with a file the linker says itself. */
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/plugin/loader.h"

static bool read_at(int file, void *to, size_t bytes, uint64_t offset) {
  return offset <= INT64_MAX && pread(file, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Of this machine's own width; other ones the linker refuses. */
static bool is_elf(const Elf64_Ehdr *head) {
  return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
         sizeof(void *) == 8;
}

/* Whether the file holds all that is to be mapped. */
static bool is_whole(int file, const Elf64_Ehdr *head, uint64_t bytes) {
  if (head->e_phentsize != sizeof(Elf64_Phdr)) return false;
  for (uint32_t i = 0; i < head->e_phnum; i++) {
    Elf64_Phdr part;
    uint64_t at = head->e_phoff + i * sizeof part;
    if (at < head->e_phoff || !read_at(file, &part, sizeof part, at)) return false;
    if (part.p_type != PT_LOAD) continue;
    if (part.p_filesz > bytes || part.p_offset > bytes - part.p_filesz) return false;
  }
  return true;
}

tn_status tn_plugin_whole(const void *handle, const char *path) {
  Elf64_Ehdr head;
  struct stat info;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return TN_OK; /* the linker says why */
  bool cut = fstat(file, &info) == 0 && read_at(file, &head, sizeof head, 0) && is_elf(&head) &&
             !is_whole(file, &head, (uint64_t)info.st_size);
  close(file);
  if (!cut) return TN_OK;
  return tn_failf(
      handle, TN_EUNAVAILABLE,
      "%s: cannot be opened: the file is damaged or cut off, it has %lld bytes and announces more; "
      "build or copy it again",
      path, (long long)info.st_size);
}

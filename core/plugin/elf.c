/* core/plugin/elf.c: checks of a shared object without loading it, since loading runs its constructors.
 *
 * The dynamic linker maps the segments of the program headers without comparing them with the file's length,
 * so a truncated file would end the process with SIGBUS. It finds symbols by the dynamic segment, and so does
 * this file: the section headers may be missing. Every offset and count comes from the file and is checked.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/text/text.h"
#include "core/plugin/loader.h"

/* Larger tables are those of a damaged file. */
enum { ELF_MOST_SYMBOLS = 1 << 20, ELF_MOST_ENTRIES = 1 << 12 };

#define ELF_ENTRY_PREFIX "tn_plugin_v"

#if defined(__x86_64__)
enum { ELF_THIS_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { ELF_THIS_MACHINE = EM_AARCH64 };
#elif defined(__riscv)
enum { ELF_THIS_MACHINE = EM_RISCV };
#elif defined(__powerpc64__)
enum { ELF_THIS_MACHINE = EM_PPC64 };
#else
enum { ELF_THIS_MACHINE = EM_NONE }; /* every machine is left to the linker */
#endif

typedef struct elf_file {
  const void *handle;
  const char *path;
  int file;
  uint64_t bytes;
  Elf64_Ehdr head;
  Elf64_Phdr *parts; /* head.e_phnum of them */
  /* Of the dynamic segment, as addresses; 0: there is no such table. */
  uint64_t symbols, strings, hash, gnu_hash;
  uint64_t string_bytes;
} elf_file;

/* ---- reading ---- */

static tn_status elf_fail_damaged(const elf_file *elf) {
  return tn_failf(
      elf->handle, TN_EUNAVAILABLE,
      "%s: cannot be opened: the file is damaged or cut off, it has %lld bytes and announces more; "
      "build or copy it again",
      elf->path, (long long)elf->bytes);
}

static tn_status elf_read_at(const elf_file *elf, void *to, size_t bytes, uint64_t offset) {
  if (offset > elf->bytes || bytes > elf->bytes - offset) return elf_fail_damaged(elf);
  return pread(elf->file, to, bytes, (off_t)offset) == (ssize_t)bytes ? TN_OK : elf_fail_damaged(elf);
}

/* Reads bytes at an address of the loaded object. */
static tn_status elf_read_address(const elf_file *elf, void *to, size_t bytes, uint64_t address) {
  for (int32_t i = 0; i < elf->head.e_phnum; i++) {
    const Elf64_Phdr *part = &elf->parts[i];
    if (part->p_type != PT_LOAD || address < part->p_vaddr) continue;
    uint64_t within = address - part->p_vaddr;
    if (within <= part->p_filesz && bytes <= part->p_filesz - within)
      return elf_read_at(elf, to, bytes, part->p_offset + within);
  }
  return elf_fail_damaged(elf);
}

/* The same into new memory, for the caller to release. */
static tn_status elf_load_address(const elf_file *elf, uint64_t bytes, uint64_t address, void **to) {
  *to = NULL;
  if (bytes > elf->bytes) return elf_fail_damaged(elf);
  *to = tn_alloc(elf->handle, bytes + 1); /* a text at its end is ended by a zero */
  return *to != NULL ? elf_read_address(elf, *to, bytes, address) : TN_ENOMEM;
}

/* ---- the headers ---- */

static const char *elf_machine_name(uint16_t machine) {
  switch (machine) {
  case EM_X86_64: return "x86-64";
  case EM_AARCH64: return "aarch64";
  case EM_386: return "32-bit x86";
  case EM_ARM: return "32-bit arm";
  case EM_RISCV: return "riscv";
  case EM_PPC64: return "ppc64";
  case EM_S390: return "s390";
  default: return "another machine";
  }
}

static tn_status elf_check_kind(const elf_file *elf) {
  const Elf64_Ehdr *h = &elf->head;
  const char *name = elf_machine_name(h->e_machine);
  if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
    return tn_failf(elf->handle, TN_EUNAVAILABLE, "%s: cannot be opened: it is no ELF shared object",
                    elf->path);
  if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
    return tn_failf(elf->handle, TN_EUNAVAILABLE,
                    "%s: cannot be opened: built for a %s %s-endian machine, this is a 64-bit little-endian "
                    "one; build it for this machine",
                    elf->path, h->e_ident[EI_CLASS] == ELFCLASS64 ? "64-bit" : "32-bit",
                    h->e_ident[EI_DATA] == ELFDATA2LSB ? "little" : "big");
  if (ELF_THIS_MACHINE != EM_NONE && h->e_machine != ELF_THIS_MACHINE)
    return tn_failf(elf->handle, TN_EUNAVAILABLE,
                    "%s: cannot be opened: built for %s (machine %d), this is %s; build it for this machine",
                    elf->path, name, h->e_machine, elf_machine_name(ELF_THIS_MACHINE));
  if (h->e_type != ET_DYN)
    return tn_failf(elf->handle, TN_EUNAVAILABLE,
                    "%s: cannot be opened: it is no shared object; link it with -shared", elf->path);
  return h->e_phentsize == sizeof(Elf64_Phdr) ? TN_OK : elf_fail_damaged(elf);
}

/* Whether every segment to be mapped lies within the file. */
static tn_status elf_check_complete(const elf_file *elf) {
  for (int32_t i = 0; i < elf->head.e_phnum; i++) {
    const Elf64_Phdr *part = &elf->parts[i];
    if (part->p_type != PT_LOAD) continue;
    if (part->p_filesz > elf->bytes || part->p_offset > elf->bytes - part->p_filesz)
      return elf_fail_damaged(elf);
  }
  return TN_OK;
}

static void elf_note_entry(elf_file *elf, const Elf64_Dyn *entry) {
  switch (entry->d_tag) {
  case DT_SYMTAB: elf->symbols = entry->d_un.d_ptr; break;
  case DT_STRTAB: elf->strings = entry->d_un.d_ptr; break;
  case DT_STRSZ: elf->string_bytes = entry->d_un.d_val; break;
  case DT_HASH: elf->hash = entry->d_un.d_ptr; break;
  case DT_GNU_HASH: elf->gnu_hash = entry->d_un.d_ptr; break;
  default: break;
  }
}

static tn_status elf_read_dynamic(elf_file *elf) {
  const Elf64_Phdr *found = NULL;
  Elf64_Dyn entry = {.d_tag = DT_SYMTAB};
  for (int32_t i = 0; i < elf->head.e_phnum && found == NULL; i++)
    if (elf->parts[i].p_type == PT_DYNAMIC) found = &elf->parts[i];
  for (uint64_t i = 0; found != NULL && i < found->p_filesz / sizeof entry && entry.d_tag != DT_NULL; i++) {
    if (i >= ELF_MOST_ENTRIES) return elf_fail_damaged(elf);
    TN_TRY(elf_read_at(elf, &entry, sizeof entry, found->p_offset + i * sizeof entry));
    elf_note_entry(elf, &entry);
  }
  return TN_OK;
}

/* ---- symbols ---- */

/* In a GNU hash table the number of symbols is that behind the end of the longest chain. */
static tn_status elf_count_gnu_symbols(const elf_file *elf, uint64_t *count) {
  uint32_t head[4], last = 0, hash = 0; /* buckets, first symbol, words of the filter, shift */
  void *table;
  TN_TRY(elf_read_address(elf, head, sizeof head, elf->gnu_hash));
  uint64_t at = elf->gnu_hash + sizeof head + (uint64_t)head[2] * sizeof(uint64_t);
  uint64_t bytes = (uint64_t)head[0] * sizeof(uint32_t);
  tn_status status = elf_load_address(elf, bytes, at, &table);
  const uint32_t *buckets = table;
  for (uint32_t i = 0; status == TN_OK && i < head[0]; i++)
    if (buckets[i] > last) last = buckets[i];
  tn_release(elf->handle, table);
  *count = head[1];
  if (status != TN_OK || last < head[1]) return status;
  for (; last < ELF_MOST_SYMBOLS && (hash & 1) == 0; last++)
    TN_TRY(elf_read_address(elf, &hash, sizeof hash, at + bytes + (uint64_t)(last - head[1]) * sizeof hash));
  *count = last;
  return TN_OK;
}

static tn_status elf_count_symbols(const elf_file *elf, uint64_t *count) {
  uint32_t head[2]; /* buckets and symbols */
  *count = 0;
  if (elf->gnu_hash != 0) {
    TN_TRY(elf_count_gnu_symbols(elf, count));
  } else if (elf->hash != 0) {
    TN_TRY(elf_read_address(elf, head, sizeof head, elf->hash));
    *count = head[1];
  }
  return *count < ELF_MOST_SYMBOLS ? TN_OK : elf_fail_damaged(elf);
}

/* The number behind the prefix of an entry's name; -1: it is the name of something else. */
static int32_t elf_entry_major(const char *name) {
  size_t prefix = strlen(ELF_ENTRY_PREFIX), digits;
  if (!tn_text_starts(name, ELF_ENTRY_PREFIX)) return -1;
  digits = strspn(name + prefix, "0123456789");
  return digits > 0 && digits < 6 && name[prefix + digits] == '\0' ? (int32_t)strtol(name + prefix, NULL, 10)
                                                                   : -1;
}

/* Finds the entry of this host's interface, or else one of another. */
static int32_t elf_find_major(const elf_file *elf, const Elf64_Sym *symbols, uint64_t n,
                              const char *strings) {
  int32_t other = -1;
  for (uint64_t i = 0; i < n; i++) {
    if (symbols[i].st_shndx == SHN_UNDEF || symbols[i].st_name >= elf->string_bytes) continue;
    int32_t major = elf_entry_major(strings + symbols[i].st_name);
    if (major == TN_ABI_MAJOR) return major;
    if (major >= 0) other = major;
  }
  return other;
}

static tn_status elf_read_major(const elf_file *elf, int32_t *major) {
  uint64_t n = 0;
  void *symbols = NULL, *strings = NULL;
  *major = -1;
  if (elf->symbols == 0 || elf->strings == 0) return TN_OK;
  tn_status status = elf_count_symbols(elf, &n);
  if (status == TN_OK) status = elf_load_address(elf, n * sizeof(Elf64_Sym), elf->symbols, &symbols);
  if (status == TN_OK) status = elf_load_address(elf, elf->string_bytes, elf->strings, &strings);
  if (status == TN_OK) *major = elf_find_major(elf, symbols, n, strings);
  tn_release(elf->handle, symbols);
  tn_release(elf->handle, strings);
  return status;
}

static tn_status elf_check_major(const elf_file *elf) {
  int32_t major;
  TN_TRY(elf_read_major(elf, &major));
  if (major == TN_ABI_MAJOR) return TN_OK;
  if (major >= 0)
    return tn_failf(elf->handle, TN_EABI,
                    "%s: built for plugin interface %d, this host has %d; rebuild the plugin against the "
                    "headers of this Tenon, or use the Tenon that it was built for",
                    elf->path, major, TN_ABI_MAJOR);
  return tn_failf(elf->handle, TN_EABI,
                  "%s: not a Tenon plugin: symbol: found no %s, wanted the one that TN_PLUGIN(...) exports",
                  elf->path, TN_PLUGIN_SYMBOL);
}

/* ---- the file ---- */

static tn_status elf_check_file(elf_file *elf) {
  if (elf->bytes < sizeof elf->head)
    return tn_failf(elf->handle, TN_EUNAVAILABLE,
                    "%s: cannot be opened: it is no ELF shared object, it has %lld bytes", elf->path,
                    (long long)elf->bytes);
  TN_TRY(elf_read_at(elf, &elf->head, sizeof elf->head, 0));
  TN_TRY(elf_check_kind(elf));
  size_t bytes = (size_t)elf->head.e_phnum * sizeof *elf->parts;
  elf->parts = tn_alloc(elf->handle, bytes + 1);
  if (elf->parts == NULL) return TN_ENOMEM;
  TN_TRY(elf_read_at(elf, elf->parts, bytes, elf->head.e_phoff));
  TN_TRY(elf_check_complete(elf));
  TN_TRY(elf_read_dynamic(elf));
  return elf_check_major(elf);
}

tn_status tn_plugin_check_elf(const void *handle, const char *path) {
  elf_file elf = {.handle = handle, .path = path};
  struct stat info;
  elf.file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (elf.file < 0) return TN_OK; /* dlopen reports the reason */
  elf.bytes = fstat(elf.file, &info) == 0 && info.st_size > 0 ? (uint64_t)info.st_size : 0;
  tn_status status = elf_check_file(&elf);
  tn_release(handle, elf.parts);
  close(elf.file);
  return status;
}

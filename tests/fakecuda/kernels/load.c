#include "tests/fakecuda/kernels/load.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { LOAD_MACHINE = EM_X86_64 };
#else
enum { LOAD_MACHINE = EM_AARCH64 };
#endif
enum { LOAD_CUDA = 190 };
static const uint32_t load_fatbin = 0xba55ed50u, load_wrapper = 0x466243b1u;
static const char load_mark[] = "// fakecuda image: ";

/* Bytes that no part of the double made. */
static bool load_is_foreign(const void *image, char why[FAKE_TEXT]) {
  const Elf64_Ehdr *header = image;
  uint32_t word;
  memcpy(&word, image, sizeof word);
  const char *found = NULL;
  if (word == load_fatbin || word == load_wrapper) {
    found = "a fatbin of nvcc";
  } else if (memcmp(image, ELFMAG, SELFMAG) != 0) {
    found = "no ELF file";
  } else if (header->e_machine == LOAD_CUDA) {
    found = "a cubin for a GPU";
  } else if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_type != ET_DYN ||
             header->e_machine != LOAD_MACHINE) {
    found = "no shared object for this machine";
  }
  if (found) snprintf(why, FAKE_TEXT, "the image is %s, expected one of the double of NVRTC", found);
  return found != NULL;
}

static size_t load_elf_bytes(const void *image) {
  const Elf64_Ehdr *header = image;
  size_t bytes = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
  const Elf64_Phdr *segments = (const void *)((const char *)image + header->e_phoff);
  for (int i = 0; i < header->e_phnum; i++)
    if (segments[i].p_offset + segments[i].p_filesz > bytes)
      bytes = segments[i].p_offset + segments[i].p_filesz;
  return bytes;
}

/* PTX of the double: text with an image in hexadecimal digits. NULL: it is other text. The caller frees the
 * bytes. */
static void *load_decode_ptx(const char *text) {
  const char *from = strncmp(text, "//", 2) == 0 ? strstr(text, load_mark) : NULL;
  if (!from) return NULL;
  from += sizeof load_mark - 1;
  size_t n = strspn(from, "0123456789abcdef") / 2;
  unsigned char *bytes = n >= sizeof(Elf64_Ehdr) ? malloc(n) : NULL;
  for (size_t i = 0; bytes && i < n; i++) {
    const char pair[3] = {from[2 * i], from[2 * i + 1], 0};
    bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
  }
  return bytes;
}

/* A path of the file that no earlier call has returned: dlopen knows a library by its path, and descriptors
 * are reused. */
static void load_path(int file, char path[128]) {
  static atomic_uint counter;
  unsigned number = atomic_fetch_add(&counter, 1);
  int at = snprintf(path, 128, "/proc/self/fd");
  for (int bit = 0; bit < 32; bit++)
    at += snprintf(path + at, 128 - (size_t)at, "%s", number >> bit & 1 ? "/." : "//");
  snprintf(path + at, 128 - (size_t)at, "/%d", file);
}

static void *load_open(const void *image, size_t bytes, char why[FAKE_TEXT]) {
  int file = memfd_create("fakecuda", MFD_CLOEXEC);
  const char *from = image;
  for (size_t done = 0; file >= 0 && done < bytes;) {
    ssize_t n = write(file, from + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      close(file);
      file = -1;
    } else {
      done += (size_t)n;
    }
  }
  if (file < 0) {
    snprintf(why, FAKE_TEXT, "the image cannot be written to memory: %s", strerror(errno));
    return NULL;
  }
  char path[128];
  load_path(file, path);
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) snprintf(why, FAKE_TEXT, "the image cannot be loaded: %s", dlerror());
  close(file);
  return handle;
}

/* The places in thread-local storage that are poisoned before each block: all but the built-in variables and
 * the dynamic shared memory. */
static void load_find_shared(fake_module *module, const void *bytes) {
  const Elf64_Ehdr *header = bytes;
  const Elf64_Phdr *segments = (const void *)((const char *)bytes + header->e_phoff);
  size_t size = 0;
  for (int i = 0; i < header->e_phnum; i++)
    if (segments[i].p_type == PT_TLS) size = segments[i].p_memsz;
  fake_here *here;
  char *dynamic, *start = NULL;
  module->image->locate(&here, &dynamic);
  if (dlinfo(module->handle, RTLD_DI_TLS_DATA, &start) != 0 || !start) return;
  module->tls_to_here = (char *)here - start;
  ptrdiff_t holes[2][2] = {{(char *)here - start, (char *)(here + 1) - start},
                           {(ptrdiff_t)size, (ptrdiff_t)size}};
  if (dynamic)
    holes[1][0] = dynamic - start, holes[1][1] = dynamic - start + FAKE_DYNAMIC_BYTES + FAKE_CANARY_BYTES;
  int first = holes[0][0] > holes[1][0];
  ptrdiff_t edges[6] = {
      0, holes[first][0], holes[first][1], holes[!first][0], holes[!first][1], (ptrdiff_t)size};
  for (int i = 0; i < 6; i += 2)
    if (edges[i + 1] > edges[i])
      module->poisoned[module->n_poisoned++] = (load_range){edges[i], (size_t)(edges[i + 1] - edges[i])};
}

/* Whether a variable is local to a function: its name is _ZZ, the name of the function without _Z, E. */
static bool load_is_local_to(const char *variable, const char *function) {
  if (strncmp(variable, "_ZZ", 3) != 0) return false;
  char name[1024];
  int n = strncmp(function, "_Z", 2) == 0 ? snprintf(name, sizeof name, "%sE", function + 2)
                                          : snprintf(name, sizeof name, "%zu%sE", strlen(function), function);
  return n > 0 && (size_t)n < sizeof name && strncmp(variable + 3, name, (size_t)n) == 0;
}

/* Variables of a kernel count for it; those of other functions, and those outside functions, count for each
 * kernel. */
static void load_count_variable(fake_module *module, const char *name, size_t bytes) {
  fake_function *owner = NULL;
  for (int32_t i = 0; i < module->image->n_kernels && !owner; i++)
    if (load_is_local_to(name, module->functions[i].name)) owner = &module->functions[i];
  for (int32_t i = 0; i < module->image->n_kernels; i++)
    if (!owner || owner == &module->functions[i]) module->functions[i].shared_bytes += (uint32_t)bytes;
}

static void load_count_shared(fake_module *module, const void *bytes) {
  const Elf64_Ehdr *header = bytes;
  const Elf64_Shdr *sections = (const void *)((const char *)bytes + header->e_shoff);
  for (int i = 0; i < header->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const Elf64_Sym *symbols = (const void *)((const char *)bytes + sections[i].sh_offset);
    const char *names = (const char *)bytes + sections[sections[i].sh_link].sh_offset;
    for (size_t s = 0; s < sections[i].sh_size / sizeof *symbols; s++) {
      const char *name = names + symbols[s].st_name;
      if (ELF64_ST_TYPE(symbols[s].st_info) == STT_TLS && !strstr(name, "fakecuda_"))
        load_count_variable(module, name, symbols[s].st_size);
    }
  }
}

static void load_name_functions(fake_module *module) {
  for (int32_t i = 0; i < module->image->n_kernels; i++) {
    const fake_kernel *kernel = &module->image->kernels[i];
    const void *address;
    memcpy(&address, &kernel->kernel, sizeof address);
    Dl_info info;
    bool exported = dladdr(address, &info) && info.dli_sname && info.dli_saddr == address;
    module->functions[i] = (fake_function){
        .kernel = kernel, .module = module, .name = exported ? info.dli_sname : kernel->written};
  }
}

static fake_module *load_bytes(const void *bytes, char why[FAKE_TEXT]) {
  if (load_is_foreign(bytes, why)) return NULL;
  void *handle = load_open(bytes, load_elf_bytes(bytes), why);
  if (!handle) return NULL;
  const fake_image *image = dlsym(handle, "fakecuda_image");
  if (!image || image->magic != FAKE_IMAGE_MAGIC || image->version != FAKE_IMAGE_VERSION) {
    snprintf(why, FAKE_TEXT, "the image is a shared object, but none of this version of the double of NVRTC");
    dlclose(handle);
    return NULL;
  }
  fake_module *module = calloc(1, sizeof *module);
  if (module) module->functions = calloc((size_t)image->n_kernels + 1, sizeof *module->functions);
  if (!module || !module->functions) {
    snprintf(why, FAKE_TEXT, "no memory for the module");
    free(module);
    dlclose(handle);
    return NULL;
  }
  module->handle = handle;
  module->image = image;
  *image->runtime = &fake_block_runtime;
  load_name_functions(module);
  load_find_shared(module, bytes);
  load_count_shared(module, bytes);
  return module;
}

fake_module *fake_module_load(const void *image, char why[FAKE_TEXT]) {
  void *decoded = load_decode_ptx(image);
  fake_module *module = load_bytes(decoded ? decoded : image, why);
  free(decoded);
  return module;
}

void fake_module_unload(fake_module *module) {
  if (!module) return;
  dlclose(module->handle);
  free(module->functions);
  free(module);
}

const fake_function *fake_module_function(const fake_module *module, const char *name) {
  for (int32_t i = 0; i < module->image->n_kernels; i++)
    if (strcmp(module->functions[i].name, name) == 0) return &module->functions[i];
  return NULL;
}

int32_t fake_function_parameters(const fake_function *function) { return function->kernel->n_parameters; }

size_t fake_function_parameter_bytes(const fake_function *function, int32_t index) {
  return function->kernel->parameters[index].bytes;
}

size_t fake_function_parameter_offset(const fake_function *function, int32_t index) {
  return function->kernel->parameters[index].offset;
}

size_t fake_function_buffer_bytes(const fake_function *function) { return function->kernel->buffer_bytes; }
uint32_t fake_function_shared_bytes(const fake_function *function) { return function->shared_bytes; }
uint32_t fake_function_max_threads(const fake_function *function) {
  return (uint32_t)function->kernel->max_threads;
}

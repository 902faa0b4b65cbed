/* backends/cpu/properties.c: the processors as a device: name, memory, and estimates of their rates. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"

/* ---- files of the system ---- */

/* "model name : ..." of the first processor in /proc/cpuinfo; else "cpu". */
static void cpu_read_name(char *name, size_t size) {
  char line[256], *colon;
  snprintf(name, size, "cpu");
  FILE *file = fopen("/proc/cpuinfo", "re");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "model name", 10) != 0 || (colon = strchr(line, ':')) == NULL) continue;
    colon += 1 + strspn(colon + 1, " \t");
    colon[strcspn(colon, "\n")] = '\0';
    if (*colon != '\0') snprintf(name, size, "%s", colon);
    break;
  }
  fclose(file);
}

/* The number behind `word` at the start of a line; with "" that at the start of the file; 0: none. */
static int64_t cpu_read_number(const char *path, const char *word) {
  char line[256];
  long long value = 0;
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  while (value <= 0 && fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, word, strlen(word)) == 0 && sscanf(line + strlen(word), " %lld", &value) != 1)
      value = 0;
  fclose(file);
  return value > 0 ? value : 0;
}

/* ---- memory ---- */

/* The limit of a cgroup is the memory of a container. A cgroup without a limit has the word "max" in its
 * file. */
static void cpu_describe_memory(tn_device_properties *p) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  int64_t all = pages > 0 && page > 0 ? (int64_t)pages * page : 0;
  int64_t unused = cpu_read_number("/proc/meminfo", "MemAvailable:") * 1024;
  int64_t limit = cpu_read_number("/sys/fs/cgroup/memory.max", "");
  int64_t taken = cpu_read_number("/sys/fs/cgroup/memory.stat", "anon ");
  if (limit > 0 && (all == 0 || limit < all)) {
    int64_t room = limit > taken ? limit - taken : 1;
    all = limit;
    if (unused == 0 || room < unused) unused = room;
  }
  p->memory_bytes = all;
  p->free_bytes = unused;
}

static int64_t cpu_cache_bytes(void) {
  int64_t kib = cpu_read_number("/sys/devices/system/cpu/cpu0/cache/index3/size", "");
  if (kib == 0) kib = cpu_read_number("/sys/devices/system/cpu/cpu0/cache/index2/size", "");
  return kib * 1024;
}

/* ---- rates ---- */

typedef struct cpu_vectors {
  int32_t bits;
  double flops; /* f32 operations of a core in a cycle */
  bool bf16;    /* products of bf16 in twice the elements */
} cpu_vectors;

/* Processors with AVX-512 differ: two units of 512 bits or one. One is assumed. */
static cpu_vectors cpu_find_vectors(void) {
#if defined(__x86_64__) || defined(__i386__)
  bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (fma && __builtin_cpu_supports("avx512f"))
    return (cpu_vectors){512, 32, __builtin_cpu_supports("avx512bf16") != 0};
  return fma ? (cpu_vectors){256, 32, false} : (cpu_vectors){128, 8, false};
#else
  return (cpu_vectors){128, 16, false};
#endif
}

/* The greatest frequency; 3 GHz where the system does not name it. The present one, which changes with the
 * load, would change plans from run to run. */
static double cpu_hertz(void) {
  int64_t khz = cpu_read_number("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "");
  return khz > 0 ? (double)khz * 1e3 : 3e9;
}

/* 10 GB/s for each thread, up to 200: the memory of a socket has so much. Products of 16-bit floats without
 * instructions for them convert their operands, at half the rate. */
static void cpu_estimate_rates(int32_t threads, const cpu_vectors *vectors, tn_device_properties *p) {
  double flops = threads * cpu_hertz() * vectors->flops;
  p->bytes_per_s = threads < 20 ? threads * 1e10 : 2e11;
  p->vector_flops_per_s = flops;
  p->matrix_flops_per_s[TN_F32] = flops;
  p->matrix_flops_per_s[TN_F64] = flops / 2;
  p->matrix_flops_per_s[TN_F16] = flops / 2;
  p->matrix_flops_per_s[TN_BF16] = vectors->bf16 ? 2 * flops : flops / 2;
  p->launch_s = 1e-6; /* waking the team */
}

void tn_cpu_properties_fill(int32_t threads, char *text, size_t text_bytes,
                            tn_device_properties *properties) {
  cpu_vectors vectors = cpu_find_vectors();
  *properties = (tn_device_properties){.struct_size = (uint32_t)sizeof *properties,
                                       .host_addressable = 1,
                                       .threads = threads,
                                       .processors = threads,
                                       .cache_bytes = cpu_cache_bytes(),
                                       .details = text};
  cpu_read_name(properties->name, sizeof properties->name);
  cpu_describe_memory(properties);
  cpu_estimate_rates(threads, &vectors, properties);
  snprintf(text, text_bytes, "{\"vector_bits\": %d, \"bf16\": %s}", (int)vectors.bits,
           vectors.bf16 ? "true" : "false");
}

/* backends/cuda/properties.c: the properties of a device, from the driver's attributes. */
#include <stdio.h>
#include <stdlib.h>

#include "backends/cuda/objects.h"

/* Attributes by the names that cuDNN's description of a device has, in the JSON that kernels may read; cuDNN
 * ignores the others. */
typedef struct property_name {
  const char *name;
  CUdevice_attribute attribute;
} property_name;

static const property_name property_names[] = {
    {"multiProcessorCount", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {"warpSize", CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {"regsPerBlock", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {"maxRegistersPerSM", CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {"maxSharedMemoryPerBlock", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {"maxSharedMemoryPerBlockOptin", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {"maxSharedMemoryPerSM", CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    {"reservedSharedMemoryPerBlock", CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK},
    {"maxCtasPerSM", CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {"maxThreadsPerBlock", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {"maxThreadsPerSM", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {"pciDeviceId", CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
    {"isTccDriver", CU_DEVICE_ATTRIBUTE_TCC_DRIVER},
    {"supportCoopLaunch", CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    {"smClockRateKHz", CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
    {"memClockRateKHz", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
    {"memBusWidth", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {"l2CacheSize", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
};

/* Operations a clock and multiprocessor: f32 without matrix units; dense products of f16 on them. Those of
 * tf32 are half as many (NVIDIA's white papers of each generation). */
typedef struct arch_rates {
  int32_t arch;
  double vector, matrix;
} arch_rates;

static const arch_rates rates_by_arch[] = {{75, 128, 1024}, {80, 128, 2048}, {86, 256, 1024},
                                           {89, 256, 2048}, {90, 256, 4096}, {100, 256, 8192},
                                           {120, 256, 2048}};

static arch_rates property_rates(int32_t arch) {
  arch_rates found = rates_by_arch[0];
  for (size_t i = 0; i < sizeof rates_by_arch / sizeof *rates_by_arch; i++)
    if (rates_by_arch[i].arch <= arch) found = rates_by_arch[i];
  return found;
}

static tn_status property_read(tn_env *env, const tn_cuda_libraries *l, CUdevice device,
                               CUdevice_attribute attribute, int32_t *value) {
  int v = 0;
  tn_status status = TN_CU(env, l, cuDeviceGetAttribute, &v, attribute, device);
  *value = v;
  return status;
}

/* Memory moves twice a clock. */
static tn_status property_read_rates(tn_env *env, const tn_cuda_libraries *l, CUdevice device,
                                     tn_device_properties *p) {
  int32_t clock = 0, memory_clock = 0, bits = 0, cache = 0;
  tn_status status = property_read(env, l, device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &clock);
  if (status == TN_OK)
    status = property_read(env, l, device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &memory_clock);
  if (status == TN_OK)
    status = property_read(env, l, device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &bits);
  if (status == TN_OK) status = property_read(env, l, device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &cache);
  arch_rates rates = property_rates(p->arch);
  double clocks = 1e3 * clock * p->processors;
  p->bytes_per_s = 2e3 * memory_clock * bits / 8;
  p->vector_flops_per_s = rates.vector * clocks;
  p->cache_bytes = cache;
  p->matrix_flops_per_s[TN_F16] = p->matrix_flops_per_s[TN_BF16] = rates.matrix * clocks;
  p->matrix_flops_per_s[TN_F32] = rates.vector * clocks;
  p->launch_s = 2e-6;
  return status;
}

/* One line of a file in the system's folder of a PCI device, as a number; 0: the file cannot be read. */
static double property_read_pci(const char *folder, const char *name) {
  char path[128], line[64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "re");
  if (file == NULL) return 0;
  double number = fgets(line, sizeof line, file) != NULL ? strtod(line, NULL) : 0;
  fclose(file);
  return number;
}

/* The part of the rate of the wires that is left for data where both directions are busy. */
static const double pci_efficiency = 0.8;

/* The rate of the slot: "16.0 GT/s PCIe" and 16 lanes, each of which carries a bit a transfer. */
static double property_link(const tn_cuda_libraries *l, CUdevice device) {
  int domain = 0, bus = 0, slot = 0;
  char folder[64];
  if (l->driver.cuDeviceGetAttribute(&domain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, device) != CUDA_SUCCESS ||
      l->driver.cuDeviceGetAttribute(&bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device) != CUDA_SUCCESS ||
      l->driver.cuDeviceGetAttribute(&slot, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, device) != CUDA_SUCCESS ||
      bus == 0)
    return 0;
  snprintf(folder, sizeof folder, "/sys/bus/pci/devices/%04x:%02x:%02x.0", domain, bus, slot);
  double transfers = 1e9 * property_read_pci(folder, "max_link_speed");
  return pci_efficiency * transfers * property_read_pci(folder, "current_link_width") / 8;
}

/* ", "name": [x, y, z]" of three attributes that follow each other. */
static tn_status property_write_sizes(tn_env *env, tn_cuda_backend_object *b, CUdevice device,
                                      const char *name, CUdevice_attribute first, size_t *n) {
  int32_t size[3];
  for (int32_t i = 0; i < 3; i++) {
    tn_status status =
        property_read(env, &b->libraries, device, (CUdevice_attribute)((int32_t)first + i), &size[i]);
    if (status != TN_OK) return status;
  }
  *n += (size_t)snprintf(b->details + *n, sizeof b->details - *n, ", \"%s\": [%d, %d, %d]", name, size[0],
                         size[1], size[2]);
  return TN_OK;
}

/* Names of devices have no characters that JSON escapes. */
static tn_status property_write_details(tn_env *env, tn_cuda_backend_object *b, CUdevice device,
                                        tn_device_properties *p) {
  size_t n = (size_t)snprintf(b->details, sizeof b->details,
                              "{\"deviceName\": \"%s\", \"totalGlobalMem\": %lld, \"cudaDeviceId\": %d, "
                              "\"deviceVer\": %d, \"driverVer\": %d",
                              p->name, (long long)p->memory_bytes, (int)device, p->arch * 10,
                              b->libraries.driver_version);
  tn_status written =
      property_write_sizes(env, b, device, "maxGridSize", CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &n);
  if (written == TN_OK)
    written = property_write_sizes(env, b, device, "maxBlockSize", CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &n);
  if (written != TN_OK) return written;
  for (size_t i = 0; i < sizeof property_names / sizeof *property_names; i++) {
    int32_t value;
    TN_TRY(property_read(env, &b->libraries, device, property_names[i].attribute, &value));
    n += (size_t)snprintf(b->details + n, sizeof b->details - n, ", \"%s\": %d", property_names[i].name,
                          value);
  }
  snprintf(b->details + n, sizeof b->details - n, "}");
  p->details = b->details;
  return TN_OK;
}

tn_status tn_cuda_read_limits(tn_env *env, const tn_cuda_libraries *libraries, CUdevice device,
                              tn_cuda_limits *limits) {
  int32_t major = 0, minor = 0;
  tn_status status =
      property_read(env, libraries, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major);
  if (status == TN_OK)
    status = property_read(env, libraries, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor);
  if (status == TN_OK)
    status =
        property_read(env, libraries, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &limits->processors);
  if (status == TN_OK)
    status = property_read(env, libraries, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                           &limits->shared_bytes);
  limits->arch = 10 * major + minor;
  return status;
}

tn_status tn_cuda_properties(tn_env *env, void *backend, int32_t index, tn_device_properties *properties) {
  tn_cuda_backend_object *b = backend;
  const tn_cuda_libraries *l = &b->libraries;
  CUdevice device;
  size_t bytes = 0;
  tn_cuda_limits limits;
  tn_status status = TN_CU(env, l, cuDeviceGet, &device, index);
  if (status == TN_OK) status = tn_cuda_read_limits(env, l, device, &limits);
  if (status == TN_OK) status = TN_CU(env, l, cuDeviceTotalMem, &bytes, device);
  if (status == TN_OK)
    status = TN_CU(env, l, cuDeviceGetName, properties->name, (int)sizeof properties->name, device);
  if (status != TN_OK) return status;
  properties->threads = 1;
  properties->arch = limits.arch;
  properties->processors = limits.processors;
  properties->memory_bytes = (int64_t)bytes;
  properties->link_bytes_per_s = b->options->link > 0 ? b->options->link : property_link(l, device);
  status = property_read_rates(env, l, device, properties);
  return status == TN_OK ? property_write_details(env, b, device, properties) : status;
}

/* tests/fakecuda/driver/devices.c: the devices and their attributes: those of an H200, as far as a program
 * asks for them (tests/devices/made_up_h200.json has the same processors, cache and bytes per second). */
#include <stdio.h>
#include <string.h>

#include "tests/fakecuda/driver/driver.h"

static CUresult device_check(const fake_call *call, CUdevice device, const void *place) {
  if (place == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the result");
  int n = fake_settings_get()->devices;
  if (device >= 0 && device < n) return CUDA_SUCCESS;
  return fake_refuse(call, CUDA_ERROR_INVALID_DEVICE, "device %d of %d", device, n);
}

static CUresult device_count(const fake_call *call, int *count) {
  if (count == NULL) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "no place for the result");
  *count = fake_settings_get()->devices;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDeviceGetCount(int *count) { FAKE_CALL(FAKE_INITIALIZED, device_count(&call, count)); }

static CUresult device_get(const fake_call *call, CUdevice *device, int ordinal) {
  CUresult code = device_check(call, ordinal, device);
  if (code == CUDA_SUCCESS) *device = ordinal;
  return code;
}

FAKE_API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  FAKE_CALL(FAKE_INITIALIZED, device_get(&call, device, ordinal));
}

static CUresult device_name(const fake_call *call, char *name, int size, CUdevice device) {
  CUresult code = device_check(call, device, name);
  if (code != CUDA_SUCCESS) return code;
  if (size < 1) return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "a place of %d bytes", size);
  snprintf(name, (size_t)size, "double of an H200 (fakecuda)");
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
  FAKE_CALL(FAKE_INITIALIZED, device_name(&call, name, size, device));
}

static CUresult device_uuid(const fake_call *call, CUuuid *uuid, CUdevice device) {
  CUresult code = device_check(call, device, uuid);
  if (code != CUDA_SUCCESS) return code;
  memcpy(uuid->bytes, "fakecuda-device", sizeof uuid->bytes);
  uuid->bytes[15] = (char)fake_settings_get()->visible[device];
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
  FAKE_CALL(FAKE_INITIALIZED, device_uuid(&call, uuid, device));
}

static CUresult device_memory(const fake_call *call, size_t *bytes, CUdevice device) {
  CUresult code = device_check(call, device, bytes);
  if (code == CUDA_SUCCESS) *bytes = (size_t)fake_settings_get()->memory;
  return code;
}

FAKE_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  FAKE_CALL(FAKE_INITIALIZED, device_memory(&call, bytes, device));
}

/* ---- attributes ---- */

static const struct {
  CUdevice_attribute which;
  int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0},
    {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
    {CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6016},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, 0},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 32768000},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 0},
};

static CUresult device_attribute(const fake_call *call, int *value, CUdevice_attribute which,
                                 CUdevice device) {
  CUresult code = device_check(call, device, value);
  if (code != CUDA_SUCCESS) return code;
  int arch = fake_settings_get()->arch;
  switch (which) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return *value = arch / 10, CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return *value = arch % 10, CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return *value = 1 + fake_settings_get()->visible[device], CUDA_SUCCESS;
  default: break;
  }
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    if (attributes[i].which == which) return *value = attributes[i].value, CUDA_SUCCESS;
  return fake_refuse(call, CUDA_ERROR_INVALID_VALUE, "the double has no attribute %d", (int)which);
}

FAKE_API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
  FAKE_CALL(FAKE_INITIALIZED, device_attribute(&call, value, which, device));
}

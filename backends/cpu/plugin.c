/* backends/cpu/plugin.c: the descriptor: the backend `cpu` and the kernels of its family. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/kernels.h"

#define ITEM(name) &tn_cpu_##name.item,

TN_PLUGIN(cpu, "0.1.0", "MIT", TN_CPU_KERNELS(ITEM) & tn_cpu_backend.item)

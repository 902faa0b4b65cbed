/* backends/cpu/plugin.c: the descriptor: the backend `cpu` and the kernels of its family. */
#include "backends/cpu/cpu.h"

#include "backends/cpu/items.h"

TN_PLUGIN(cpu, "0.1.0", "MIT", ITEMS, &tn_cpu_backend.item)

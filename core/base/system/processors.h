/* core/base/system/processors.h: the processors that this process may use, and lists of processors such as
 * "0-3,8". */
#pragma once

#include <stdbool.h>

#include "core/base/text/text.h"

/* Processor numbers are below this limit, the capacity of cpu_set_t. */
enum { TN_MOST_PROCESSORS = 1024 };

typedef struct tn_processors {
  int32_t n;
  int64_t v[TN_MOST_PROCESSORS];
} tn_processors;

/* Parses "0-3,8", in the order of the text. False: the text is not such a list, or the list exceeds the
 * struct. */
bool tn_processors_parse(tn_processors *processors, const char *text);
/* Prints the list in the same form, with ascending runs as ranges. */
void tn_processors_print(tn_text *text, const tn_processors *processors);

/* The processors in the calling thread's affinity mask, ascending. False: the system does not report it. */
bool tn_processors_allowed(tn_processors *processors);

/* Reorders an ascending list: first one processor of each physical core, then the others (hyperthreads),
 * so that the first entries share as few cores as possible. `folder` replaces /sys/devices/system/cpu if
 * it is not NULL. Without topology files there the order stays the same. */
void tn_processors_spread(tn_processors *processors, const char *folder);

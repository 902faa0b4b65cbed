/* core/base/processors.h: which processors this process may use, and lists of them as people write them. */
#ifndef TN_CORE_BASE_PROCESSORS_H
#define TN_CORE_BASE_PROCESSORS_H

#include <stdbool.h>

#include "core/base/text.h"

/* Numbers from 0 below this; what the C library's sets hold. */
enum { TN_MOST_PROCESSORS = 1024 };

typedef struct tn_processors {
  int32_t n;
  int64_t v[TN_MOST_PROCESSORS];
} tn_processors;

/* "0-3,8", in the order of the text. False: it is no such list, or longer than the struct. */
bool tn_processors_read(tn_processors *processors, const char *text);
/* The same text; the shortest for a list that rises. */
void tn_processors_print(tn_text *text, const tn_processors *processors);

/* Those of the calling thread's affinity mask, rising. False: the system does not tell. */
bool tn_processors_allowed(tn_processors *processors);

/* Rearranges a list that rises: first one of each physical core, then the others (hyperthreads), so that the
 * first few share as little as possible. Where the system does not tell (NULL: of /sys/devices/system/cpu),
 * nothing changes. */
void tn_processors_spread(tn_processors *processors, const char *folder);

#endif

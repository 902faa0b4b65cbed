/* tests/fakenccl/entry.h: the name of the entry point that runs on this thread. */
#ifndef TN_TESTS_FAKENCCL_ENTRY_H
#define TN_TESTS_FAKENCCL_ENTRY_H

void fakenccl_entry_set(const char *name);
const char *fakenccl_entry(void);

#endif

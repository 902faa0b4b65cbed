/* tests/unit/backends/mpi/rig.h: a host of the communicator `mpi` that counts blocks. MPI is begun once in a
 * process, so each case runs in a child of its own. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tenon/plugin/communicator.h"
#include "tests/unit/backends/mpi/fake.h"

extern const tn_communicator *rig_kind;
extern tn_env rig_env;
extern char rig_text[512]; /* the last message */

/* Opens rank 0 of fake.ranks ranks. The timeout is short. */
tn_status rig_open(void **communicator);
/* Whether an address lies in a block of the host that has not been freed. */
bool rig_holds(const void *address);

/* Runs `body` in a child, which fails where an assertion of RIG_CHECK does. */
void rig_run(void (*body)(void));
void rig_fail(int line, const char *what);
#define RIG_CHECK(x)                                                                                         \
  do {                                                                                                       \
    if (!(x)) rig_fail(__LINE__, #x);                                                                        \
  } while (0)

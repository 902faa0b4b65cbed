/* core/conformance/device/fixture.h: a device with blocks of its memory, staging memory and events, for the
 * cases that test the device itself. */
#pragma once

#include "core/exec/device/device.h"
#include "core/plugin/handles.h"

enum { TN_FIXTURE_BLOCK = 1 << 18, TN_FIXTURE_BLOCKS = 4, TN_FIXTURE_EVENTS = 3, TN_FIXTURE_LAUNCHES = 5 };

typedef struct tn_device_fixture {
  tn_device *device;
  const tn_backend *backend;
  tn_env *env;
  char *device_block[TN_FIXTURE_BLOCKS];
  char *host_block[TN_FIXTURE_BLOCKS]; /* staging */
  void *events[TN_FIXTURE_EVENTS];
  tn_launch_host launches[TN_FIXTURE_LAUNCHES]; /* valid until all streams have been waited for */
  tn_view views[3];
  const char *wrong;   /* the first expectation that failed; NULL: all hold */
  const char *lacking; /* the reason why a case cannot be tried; NULL: it was */
} tn_device_fixture;

/* tn_device_fixture_close frees a fixture whose opening failed, too. */
tn_status tn_device_fixture_open(tn_device_fixture *f);
void tn_device_fixture_close(tn_device_fixture *f);

/* A pattern of bytes that depends on the seed. */
void tn_device_fixture_write(char *at, int64_t bytes, int seed);
bool tn_device_fixture_holds(const char *at, int64_t bytes, int seed);

/* Enqueues a copy on the stream of a role. */
tn_status tn_device_fixture_enqueue_copy(const tn_device_fixture *f, int32_t role, int32_t direction,
                                         void *to, const void *from, uint64_t bytes);
/* Copies on the compute stream and waits. */
tn_status tn_device_fixture_copy(const tn_device_fixture *f, int32_t direction, void *to, const void *from,
                                 uint64_t bytes);
/* Keeps the first expectation that fails. */
void tn_device_fixture_expect(tn_device_fixture *f, bool holds_true, const char *wrong);

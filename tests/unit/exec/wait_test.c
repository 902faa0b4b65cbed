/* Waits of the host for a device that is one of several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/system/system.h"
#include "core/exec/collective.h"
#include "core/plugin/handles.h"

static int polls, asked, given_up, records, waits; /* calls */
static int done_at, fails_at;                      /* the call that answers so; 0: none */

static tn_status event_done(tn_env *env, void *event, int32_t *done) {
  (void)env, (void)event;
  *done = ++polls == done_at;
  return TN_OK;
}

static tn_status event_wait(tn_env *env, void *event) { return (void)env, (void)event, waits++, TN_OK; }
static tn_status stream_wait(tn_env *env, void *stream) { return (void)env, (void)stream, waits++, TN_OK; }

static tn_status event_record(tn_env *env, void *event, void *stream) {
  return (void)env, (void)event, (void)stream, records++, TN_OK;
}

static tn_status status(tn_env *env, void *communicator) {
  (void)communicator;
  if (++asked != fails_at) return TN_OK;
  return tn_failf(env, TN_ECOMM, "rank 3 did not come");
}

static void give_up(tn_env *env, void *communicator) { (void)env, (void)communicator, given_up++; }

static const tn_communicator kind = {.status = status, .abort = give_up};
static tn_backend backend;
static tn_comm comm;
static tn_device device;
static tn_env env;
static tn_error_record record;

/* A device of a group, whose backend can be polled or not. */
static void begin(bool can_be_polled, int done, int fails) {
  static int event;
  polls = asked = given_up = records = waits = 0;
  done_at = done;
  fails_at = fails;
  tn_error_record_init_root(&env, &record, &tn_host_api);
  backend = (tn_backend){.event_wait = event_wait,
                         .event_record = event_record,
                         .stream_wait = stream_wait,
                         .event_done = can_be_polled ? event_done : NULL};
  device = (tn_device){.backend = &backend, .process = getpid()};
  tn_error_record_init(&device.env, &device.record, &env);
  comm = (tn_comm){.kind = &kind, .device = &device, .event = can_be_polled ? &event : NULL};
  tn_error_record_init(&comm.env, &comm.record, &env);
  device.comm = &comm;
}

static void a_wait_asks_until_the_event_is_done(void **state) {
  (void)state;
  begin(true, 4, 0);
  assert_int_equal(tn_device_wait_event(&device, NULL), TN_OK);
  assert_int_equal(polls, 4);
  assert_int_equal(asked, 4);
  assert_int_equal(waits + given_up, 0);
  begin(true, 2, 0);
  assert_int_equal(tn_device_wait_stream(&device, NULL), TN_OK);
  assert_int_equal(records, 1);
  assert_int_equal(polls, 2);
  assert_int_equal(waits, 1); /* for its own failures */
}

static void an_event_that_never_ends_ends_with_the_status(void **state) {
  (void)state;
  begin(true, 0, 5);
  assert_int_equal(tn_device_wait_event(&device, NULL), TN_ECOMM);
  assert_non_null(strstr(tn_error_text(&device.env), "rank 3 did not come"));
  assert_int_equal(given_up, 1);
  begin(true, 0, 5);
  assert_int_equal(tn_device_wait_stream(&device, NULL), TN_ECOMM);
  assert_int_equal(waits, 0);
}

/* The collectives were given up, and so their event is done. */
static void a_done_event_of_a_failed_group_is_no_success(void **state) {
  (void)state;
  begin(true, 3, 3);
  assert_int_equal(tn_device_wait_event(&device, NULL), TN_ECOMM);
  assert_int_equal(polls, 3);
  begin(false, 0, 1);
  assert_int_equal(tn_device_wait_event(&device, NULL), TN_ECOMM);
  assert_int_equal(waits, 1);
  begin(false, 0, 1);
  assert_int_equal(tn_device_wait_stream(&device, NULL), TN_ECOMM);
}

static void a_device_alone_blocks(void **state) {
  (void)state;
  begin(true, 1, 1);
  device.comm = NULL;
  assert_int_equal(tn_device_wait_event(&device, NULL), TN_OK);
  assert_int_equal(tn_device_wait_stream(&device, NULL), TN_OK);
  assert_int_equal(waits, 2);
  assert_int_equal(polls + asked, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_wait_asks_until_the_event_is_done),
      cmocka_unit_test(an_event_that_never_ends_ends_with_the_status),
      cmocka_unit_test(a_done_event_of_a_failed_group_is_no_success),
      cmocka_unit_test(a_device_alone_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

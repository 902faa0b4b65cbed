/* Event files: checksums, framing and the bytes of the messages. */
#include "tests/support/folder.h"

#include "core/formats/events.h"

static test_env B;
static folder F;

static int set_up(void **state) {
  (void)state;
  test_env_start(&B);
  folder_make(&F);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  folder_remove(&F);
  return B.live == 0 ? 0 : -1;
}

/* The examples of RFC 3720, appendix B.4. */
static void checksums_are_those_of_the_rfc(void **state) {
  (void)state;
  unsigned char bytes[32];
  memset(bytes, 0, 32);
  assert_int_equal(tn_crc32c(0, bytes, 32), 0x8A9136AA);
  memset(bytes, 0xFF, 32);
  assert_int_equal(tn_crc32c(0, bytes, 32), 0x62A8AB43);
  for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)i;
  assert_int_equal(tn_crc32c(0, bytes, 32), 0x46DD794E);
  assert_int_equal(tn_crc32c(0, "123456789", 9), 0xE3069283);
  assert_int_equal(tn_crc32c(tn_crc32c(0, "1234", 4), "56789", 5), 0xE3069283);
  assert_int_equal(tn_crc32c(0, "", 0), 0);
}

static void masking_rotates_and_adds(void **state) {
  (void)state;
  uint32_t crc = tn_crc32c(0, "foo", 3);
  assert_int_equal(tn_crc32c_masked("foo", 3), ((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

static uint64_t little_endian(const unsigned char *bytes, int n) {
  uint64_t value = 0;
  while (n-- > 0) value = value << 8 | bytes[n];
  return value;
}

/* The message of the record at *at, its checksums checked; moves *at to the next one. */
static const unsigned char *next_record(const unsigned char *bytes, size_t n, size_t *at, size_t *length) {
  const unsigned char *record = bytes + *at;
  assert_true(n - *at >= 16);
  *length = (size_t)little_endian(record, 8);
  assert_true(*length <= n - *at - 16);
  assert_int_equal(little_endian(record + 8, 4), tn_crc32c_masked(record, 8));
  assert_int_equal(little_endian(record + 12 + *length, 4), tn_crc32c_masked(record + 12, *length));
  *at += 16 + *length;
  return record + 12;
}

static size_t read_bytes(unsigned char *bytes, size_t capacity) {
  FILE *file = fopen(folder_path(&F, "events.out.tfevents.1"), "rb");
  assert_non_null(file);
  size_t n = fread(bytes, 1, capacity, file);
  fclose(file);
  return n;
}

static void a_file_is_a_version_and_then_scalars(void **state) {
  (void)state;
  static const char version[] = "\x09\0\0\0\0\0\0\xf8\x3f\x1a\x0d"
                                "brain.Event:2";
  static const char scalar[] =
      "\x09\0\0\0\0\0\0\0\x40\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\x80\x3e";
  unsigned char bytes[256];
  tn_events *events;
  assert_ok(&B, tn_events_create(&B, folder_path(&F, "events.out.tfevents.1"), 1.5, &events));
  assert_ok(&B, tn_events_scalar(events, "loss", 300, 2.0, 0.25));
  size_t n = read_bytes(bytes, sizeof(bytes)), at = 0, length;
  const unsigned char *message = next_record(bytes, n, &at, &length);
  assert_int_equal(length, sizeof(version) - 1);
  assert_memory_equal(message, version, length);
  message = next_record(bytes, n, &at, &length);
  assert_int_equal(length, sizeof(scalar) - 1);
  assert_memory_equal(message, scalar, length);
  assert_int_equal(at, n);
  assert_ok(&B, tn_events_close(events));
}

static void extreme_values_are_written(void **state) {
  (void)state;
  static unsigned char bytes[1024];
  char tag[300];
  tn_events *events;
  memset(tag, 'x', sizeof(tag) - 1);
  tag[sizeof(tag) - 1] = '\0';
  assert_ok(&B, tn_events_create(&B, folder_path(&F, "events.out.tfevents.1"), 0, &events));
  assert_ok(&B, tn_events_scalar(events, "", 0, 0, 1e300));
  assert_ok(&B, tn_events_scalar(events, tag, INT64_MAX, 1e12, -0.0));
  assert_ok(&B, tn_events_scalar(events, "negative", -1, 0, 0.0 / 1.0));
  assert_ok(&B, tn_events_close(events));
  size_t n = read_bytes(bytes, sizeof(bytes)), at = 0, length;
  for (int i = 0; i < 4; i++) next_record(bytes, n, &at, &length);
  assert_int_equal(at, n);
}

static void an_existing_file_is_left_alone(void **state) {
  (void)state;
  tn_events *events;
  folder_write(&F, "events.out.tfevents.1", "x", 1);
  assert_error(&B, tn_events_create(&B, folder_path(&F, "events.out.tfevents.1"), 0, &events), TN_EIO,
               "cannot be created: File exists");
  assert_null(events);
  assert_ok(&B, tn_events_close(NULL));
}

static void a_full_disk_is_an_error_that_stays(void **state) {
  (void)state;
  tn_events *events;
  if (access("/dev/full", W_OK) != 0) skip();
  assert_ok(&B, tn_events_create(&B, folder_path(&F, "events.out.tfevents.1"), 0, &events));
  int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  assert_int_equal(full >= 0, 1);
  /* Redirects the file descriptor, unknown to the test, to a full disk. */
  for (int fd = 3; fd < full; fd++) {
    char link[64], path[600];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n > 0 && strncmp(path, F.path, strlen(F.path)) == 0) dup2(full, fd);
  }
  assert_error(&B, tn_events_scalar(events, "loss", 0, 0, 0), TN_EIO, "No space left");
  assert_error(&B, tn_events_scalar(events, "loss", 1, 0, 0), TN_EIO, "an earlier failure");
  assert_ok(&B, tn_events_close(events));
  close(full);
}

static tn_status write_one(void) {
  tn_events *events;
  unlink(folder_path(&F, "events.out.tfevents.1"));
  TN_TRY(tn_events_create(&B, F.shown, 1.5, &events));
  tn_status status = tn_events_scalar(events, "loss", 3, 2.0, 0.25);
  tn_status closed = tn_events_close(events);
  return status != TN_OK ? status : closed;
}

static void running_out_of_memory_anywhere_is_an_error_and_no_leak(void **state) {
  (void)state;
  tn_status status = TN_ENOMEM;
  for (long left = 0; left < 60 && status != TN_OK; left++) {
    test_env_allow(&B, left);
    status = write_one();
    test_env_allow(&B, -1);
    assert_true(status == TN_OK || status == TN_ENOMEM);
    assert_int_equal(B.live, 0);
  }
  assert_int_equal(status, TN_OK);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      CASE(checksums_are_those_of_the_rfc),
      CASE(masking_rotates_and_adds),
      CASE(a_file_is_a_version_and_then_scalars),
      CASE(extreme_values_are_written),
      CASE(an_existing_file_is_left_alone),
      CASE(a_full_disk_is_an_error_that_stays),
      CASE(running_out_of_memory_anywhere_is_an_error_and_no_leak),
  };
  return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}

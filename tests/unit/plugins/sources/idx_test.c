#include <zlib.h>

#include <sys/stat.h>

#include "tests/unit/plugins/sources/probe.h"

extern const tn_source idx_source;

static char *folder;

static int start(void **state) {
  (void)state;
  folder = make_folder();
  return 0;
}

static int stop(void **state) {
  (void)state;
  remove_folder(folder);
  return 0;
}

/* Two images of 2 x 3 with labels 7 and 2. */
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0,  0,  0,  2,  0,  0,
                                 0, 3, 1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 2};

static void put(const char *name, const uint8_t *bytes, size_t count) {
  write_file(in_folder(folder, name), bytes, count);
}

static void put_gz(const char *name, const uint8_t *bytes, size_t count) {
  gzFile file = gzopen(in_folder(folder, name), "wb");
  assert_int_equal(gzwrite(file, bytes, (unsigned)count), count);
  gzclose(file);
}

static void check_samples(int32_t split) {
  probe p;
  if (probe_open(&p, &idx_source, PAIRS("folder", folder), split) != TN_OK) fail_msg("%s", probe_error(&p));
  assert_int_equal(p.description.count, 2);
  const tn_field *field = p.description.fields;
  assert_true(field[0].type.rank == 3 && field[0].type.dims[0] == 1 && field[0].type.dims[1] == 2);
  assert_int_equal(field[1].classes, 8);
  assert_int_equal(probe_read(&p, 1, 0), TN_OK);
  assert_memory_equal(p.value[0], images + 22, 6);
  assert_int_equal(*(int32_t *)p.value[1], 2);
  probe_expect_class(&p, 1, 2);
  probe_close(&p);
}

static void the_usual_names_are_found_plain_and_gzipped(void **state) {
  (void)state;
  put("train-images-idx3-ubyte", images, sizeof(images));
  put_gz("train-labels-idx1-ubyte.gz", labels, sizeof(labels));
  check_samples(TN_SPLIT_TRAIN);
  put_gz("t10k-images.idx3-ubyte.gz", images, sizeof(images));
  put("t10k-labels.idx1-ubyte", labels, sizeof(labels));
  check_samples(TN_SPLIT_VALID);
}

static void files_may_be_named(void **state) {
  (void)state;
  static const uint8_t wide[] = {0, 0, 12, 1, 0, 0, 0, 2, 0, 0, 1, 0, 0, 0, 0, 5}; /* i32 labels 256 and 5 */
  probe p;
  put("x", images, sizeof(images));
  put("y", wide, sizeof(wide));
  const char *const *options = PAIRS("images", in_folder(folder, "x"), "labels", in_folder(folder, "y"));
  assert_int_equal(probe_open(&p, &idx_source, options, TN_SPLIT_VALID), TN_OK);
  assert_int_equal(p.description.fields[1].classes, 257);
  assert_int_equal(probe_read(&p, 0, 0), TN_OK);
  assert_int_equal(*(int32_t *)p.value[1], 256);
  probe_expect_class(&p, 0, 256);
  probe_close(&p);
}

static void missing_files_are_named(void **state) {
  (void)state;
  probe_refused(&idx_source, NO_PAIRS, TN_SPLIT_TRAIN, TN_EINVAL, "neither images nor folder");
  probe_refused(&idx_source, PAIRS("folder", folder), TN_SPLIT_VALID, TN_EUNAVAILABLE,
                "t10k-images-idx3-ubyte");
  probe_refused(&idx_source, PAIRS("images", in_folder(folder, "none")), TN_SPLIT_TRAIN, TN_EIO,
                "none: cannot open");
  assert_int_equal(mkfifo(in_folder(folder, "fifo"), 0666), 0);
  probe_refused(&idx_source, PAIRS("images", in_folder(folder, "fifo")), TN_SPLIT_TRAIN, TN_EINVAL,
                "fifo: is not a file of data but a FIFO");
}

/* Opens with `bytes` as the images. */
static void refused(const uint8_t *bytes, size_t count, const char *text) {
  put("images", bytes, count);
  put("labels", labels, sizeof(labels));
  probe_refused(&idx_source,
                PAIRS("images", in_folder(folder, "images"), "labels", in_folder(folder, "labels")),
                TN_SPLIT_TRAIN, TN_EINVAL, text);
}

static void broken_files_are_refused_with_their_path(void **state) {
  (void)state;
  uint8_t bad[sizeof(images) + 1];
#define WITH(at, value) (memcpy(bad, images, sizeof(images)), bad[at] = (value), bad)
  refused(images, 0, "images: ends after 0 of 4 bytes of the header");
  refused(images, 9, "images: ends after 1 of 4 bytes of the header");
  refused(images, sizeof(images) - 1, "images: ends after 11 of 12 bytes of elements");
  refused(WITH(sizeof(images), 9), sizeof(bad), "images: has more than the 12 bytes");
  refused(WITH(0, 'P'), sizeof(images), "images: begins with 50 00");
  refused(WITH(2, 0x0D), sizeof(images), "images: has elements of type 0x0d");
  refused(WITH(3, 9), sizeof(images), "images: has 9 dimensions");
  refused(WITH(3, 1), sizeof(images), "images: has more than the");
  refused(WITH(4, 255), sizeof(images),
          "images: its header declares more elements than a file of 28 bytes can hold");
  refused(WITH(6, 1), sizeof(images), "images: ends after 12 of");
  refused(WITH(7, 1), sizeof(images), "images: has more than the");
#undef WITH
  memset(bad, 255, sizeof(bad));
  memcpy(bad, images, 4);
  refused(bad, sizeof(bad), "images: its header declares more elements than");
}

static void images_and_labels_must_agree(void **state) {
  (void)state;
  static const uint8_t three[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1};
  put("images", images, sizeof(images));
  put("labels", three, sizeof(three));
  const char *x = in_folder(folder, "images"), *y = in_folder(folder, "labels");
  probe_refused(&idx_source, PAIRS("images", x, "labels", y), TN_SPLIT_TRAIN, TN_EINVAL,
                "has 3 labels for 2 images");
  probe_refused(&idx_source, PAIRS("images", y, "labels", x), TN_SPLIT_TRAIN, TN_EINVAL,
                "is not a file of images");
  probe_refused(&idx_source, PAIRS("images", x, "labels", x), TN_SPLIT_TRAIN, TN_EINVAL,
                "is not a file of labels");
  put("labels", labels, sizeof(labels));
  probe_refused(&idx_source, PAIRS("images", x, "labels", y, "classes", "7"), TN_SPLIT_TRAIN, TN_EINVAL,
                "label 7 of image 0 is out of range, expected 0 to 6");
}

static void damaged_gzip_data_is_refused(void **state) {
  (void)state;
  uint8_t packed[256];
  put_gz("good.gz", images, sizeof(images));
  FILE *file = fopen(in_folder(folder, "good.gz"), "rb");
  size_t count = fread(packed, 1, sizeof(packed), file);
  fclose(file);
  packed[count - 6] ^= 0x55; /* in the checksum */
  refused(packed, count, "images: damaged gzip data");
  packed[14] ^= 0xFF;
  refused(packed, count, "images: ");
}

static void refused_memory_is_survived(void **state) {
  (void)state;
  put_gz("images", images, sizeof(images));
  put("labels", labels, sizeof(labels));
  probe_starve(&idx_source,
               PAIRS("images", in_folder(folder, "images"), "labels", in_folder(folder, "labels")));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void) {
  const struct CMUnitTest tests[] = {
      CASE(the_usual_names_are_found_plain_and_gzipped),
      CASE(files_may_be_named),
      CASE(missing_files_are_named),
      CASE(broken_files_are_refused_with_their_path),
      CASE(images_and_labels_must_agree),
      CASE(damaged_gzip_data_is_refused),
      CASE(refused_memory_is_survived),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* `tenon init`: the configuration that it writes trains at once. */
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"

static void says(const char *text) {
  if (strstr(program_err, text) == NULL) fail_msg("expected '%s', it said: %s", text, program_err);
}

static void has(const char *file, const char *text) {
  if (strstr(file_read(file, NULL), text) == NULL)
    fail_msg("%s lacks '%s':\n%s", file, text, file_read(file, NULL));
}

static void lacks(const char *file, const char *text) {
  if (strstr(file_read(file, NULL), text) != NULL) fail_msg("%s has '%s'", file, text);
}

/* ---- PNG files of stored blocks ---- */

static uint32_t crc(const unsigned char *bytes, size_t n) {
  uint32_t c = 0xffffffffu;
  for (size_t i = 0; i < n; i++) {
    c ^= bytes[i];
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
  }
  return c ^ 0xffffffffu;
}

static size_t big(unsigned char *at, uint32_t value) {
  for (int i = 0; i < 4; i++) at[i] = (unsigned char)(value >> (24 - 8 * i));
  return 4;
}

static size_t chunk(unsigned char *at, const char *kind, const unsigned char *data, uint32_t n) {
  big(at, n);
  memcpy(at + 4, kind, 4);
  memcpy(at + 8, data, n);
  big(at + 8 + n, crc(at + 4, n + 4));
  return n + 12;
}

/* Rows of grey-blue whose shade is that of the class. */
static void write_png(const char *path, int width, int height, int shade) {
  static unsigned char out[1 << 17], rows[1 << 16], head[13];
  size_t n = 2, all = (size_t)height * (1 + 3 * (size_t)width);
  uint32_t a = 1, b = 0;
  assert_true(all < 65000);
  memcpy(rows, "\x78\x01", 2);
  unsigned char *block = rows + n;
  block[0] = 1;
  block[1] = (unsigned char)(all & 0xff), block[2] = (unsigned char)(all >> 8);
  block[3] = (unsigned char)~block[1], block[4] = (unsigned char)~block[2];
  for (size_t i = 0; i < all; i++) {
    unsigned char v = i % (1 + 3 * (size_t)width) == 0 ? 0 : (unsigned char)(shade + (int)(i % 17));
    block[5 + i] = v;
    a = (a + v) % 65521, b = (b + a) % 65521;
  }
  n += 5 + all;
  n += big(rows + n, b << 16 | a);
  big(head, (uint32_t)width), big(head + 4, (uint32_t)height);
  memcpy(head + 8, "\x08\x02\0\0\0", 5);
  size_t size = 8;
  memcpy(out, "\x89PNG\r\n\x1a\n", 8);
  size += chunk(out + size, "IHDR", head, 13);
  size += chunk(out + size, "IDAT", rows, (uint32_t)n);
  size += chunk(out + size, "IEND", head, 0);
  file_write_bytes(path, out, size);
}

/* FOLDER/cats and FOLDER/dogs with n pictures each; every third is larger by `more`. */
static void write_classes(const char *folder, int n, int side, int more) {
  static const char *const classes[] = {"cats", "dogs"};
  mkdir(folder, 0777);
  for (int k = 0; k < 2; k++) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, classes[k]);
    assert_int_equal(mkdir(path, 0777), 0);
    for (int i = 0; i < n; i++) {
      snprintf(path, sizeof path, "%s/%s/%d.png", folder, classes[k], i);
      write_png(path, side + (i % 3 == 2 ? more : 0), side, 40 + 120 * k);
    }
  }
}

/* ---- pictures ---- */

static void small_pictures_with_parts_train_at_their_size(void **state) {
  (void)state;
  assert_int_equal(mkdir("my pets", 0777), 0);
  write_classes("my pets/train", 20, 32, 0);
  write_classes("my pets/val", 3, 32, 0);
  file_write("my pets/train/cats/notes.txt", "no picture");
  mkdir("photos", 0777);
  assert_int_equal(rename("my pets", "photos/my pets"), 0);
  assert_int_equal(symlink("photos/my pets", "pets"), 0);
  const json_t *r = program_json(0, "init pets --output pets.ini");
  assert_string_equal(program_text(r, "kind"), "images");
  assert_int_equal(program_number(r, "classes"), 2);
  assert_int_equal(program_number(r, "size"), 32);
  assert_int_equal(program_number(r, "batch"), 4);
  has("pets.ini", "name = my_pets\n");
  has("pets.ini", "random_crop(32, padding=4), random_flip");
  has("pets.ini", "fc:     linear(2)");
  lacks("pets.ini", "size = 0");
  r = program_json(0, "train pets.ini --set run.max_steps=1");
  assert_int_equal(program_number(r, "steps"), 1);
  assert_true(program_number(r, "valid.loss") > 0);
}

/* Pictures of several sizes in a folder without parts: they are resized, from the folder itself. */
static void pictures_of_other_sizes_are_resized(void **state) {
  (void)state;
  write_classes("shapes", 6, 60, 11);
  const json_t *r = program_json(0, "init shapes");
  assert_int_equal(program_number(r, "size"), 64);
  has("shapes.ini", "subfolder = .\nsplit = 0.1\n");
  has("shapes.ini", "size = 0");
  has("shapes.ini", "random_resized_crop(64");
  r = program_json(0, "train shapes.ini --set run.max_steps=1");
  assert_int_equal(program_number(r, "steps"), 1);
  assert_true(program_number(r, "valid.loss") > 0);
}

/* The size of a JPEG lies in its frame header, behind other segments. */
static void sizes_of_jpegs_are_read(void **state) {
  (void)state;
  static const char jpeg[] = "\xff\xd8\xff\xe0\0\x04xx\xff\xc4\0\x03x\xff\xc2\0\x11\x08\0\xf0\x01\x40\x03";
  mkdir("big", 0777), mkdir("big/a", 0777), mkdir("big/b", 0777);
  for (int i = 0; i < 4; i++) {
    char path[32];
    snprintf(path, sizeof path, "big/%c/%d.%s", i % 2 ? 'a' : 'b', i, i < 2 ? "jpg" : "JPEG");
    file_write_bytes(path, jpeg, sizeof jpeg - 1);
  }
  assert_int_equal(program_number(program_json(0, "init big"), "size"), 128);
  has("big.ini", "of about 320 x 240 pixels");
  assert_int_equal(program_run("config check big.ini"), 0);
}

/* ---- text ---- */

static void a_text_trains(void **state) {
  (void)state;
  char text[4001];
  for (int i = 0; i < 4000; i++) text[i] = "abcdefghij \n"[(i * 7 + i / 13) % 12];
  text[4000] = '\0';
  file_write("poem.txt", text);
  const json_t *r = program_json(0, "init poem.txt");
  assert_string_equal(program_text(r, "kind"), "text");
  assert_int_equal(program_number(r, "characters"), 12);
  has("poem.ini", "embedding(12, 64");
  r = program_json(0, "train poem.ini --set run.max_steps=1");
  assert_int_equal(program_number(r, "steps"), 1);
  assert_true(program_number(r, "valid.loss") > 0);
}

static void a_file_that_is_not_utf8_is_bytes_and_short_ones_get_short_windows(void **state) {
  (void)state;
  char bytes[300];
  for (int i = 0; i < 300; i++) bytes[i] = (char)(i * 37);
  file_write_bytes("song.mid", bytes, sizeof bytes);
  const json_t *r = program_json(0, "init song.mid");
  assert_int_equal(program_number(r, "bytes"), 256);
  has("song.ini", "level = bytes");
  assert_int_equal(program_number(program_json(0, "train song.ini --set run.max_steps=1"), "steps"), 1);
}

/* ---- refusals ---- */

static void nothing_is_overwritten(void **state) {
  (void)state;
  write_classes("shapes", 2, 32, 0);
  file_write("shapes.ini", "mine");
  assert_int_equal(program_run("init shapes"), 65);
  says("exists, and is not overwritten");
  assert_string_equal(file_read("shapes.ini", NULL), "mine");
  assert_int_equal(program_run("init shapes --output new.ini"), 0);
  assert_true(file_exists("new.ini"));
}

static void what_it_cannot_learn_from_is_refused(void **state) {
  (void)state;
  assert_int_equal(program_run("init nowhere"), 74);
  mkdir("empty", 0777);
  assert_int_equal(program_run("init empty"), 65);
  says("expected a folder for each class");
  file_write("short.txt", "too short");
  assert_int_equal(program_run("init short.txt"), 65);
  says("expected at least 200");
  write_classes("a#b", 2, 32, 0);
  assert_int_equal(program_run("init a#b"), 65);
  says("cannot hold");
  assert_false(file_exists("empty.ini"));
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(small_pictures_with_parts_train_at_their_size),
      IN_FOLDER(pictures_of_other_sizes_are_resized),
      IN_FOLDER(sizes_of_jpegs_are_read),
      IN_FOLDER(a_text_trains),
      IN_FOLDER(a_file_that_is_not_utf8_is_bytes_and_short_ones_get_short_windows),
      IN_FOLDER(nothing_is_overwritten),
      IN_FOLDER(what_it_cannot_learn_from_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

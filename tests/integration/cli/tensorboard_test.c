/* `[run] observers = tensorboard`: the event file that training writes, read by a reader of its own and,
 * where it is installed for `python3`, by TensorBoard. */
#include <dirent.h>
#include <stdlib.h>

#include "configs.h"
#include "program.h"

enum { MOST = 512 };

/* A record of an event file. */
typedef struct event {
  int64_t step;
  int restart;
  char tag[64];
  double value;  /* of a histogram: how many numbers it has */
  double counts; /* of a histogram: the sum of its buckets */
  int width, height, channels;
  char plugin[16], data[32]; /* of a picture or text: the first bytes */
} event;
static event events[MOST];
static int n_events;

/* ---- the reader ---- */

/* CRC-32C as RFC 3720 defines it, masked as TFRecords are. */
static uint32_t masked_checksum(const unsigned char *p, size_t n) {
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < 8 * n; i++) {
    uint32_t bit = (crc ^ (uint32_t)(p[i / 8] >> i % 8)) & 1;
    crc = crc >> 1 ^ (bit ? 0x82F63B78u : 0);
  }
  crc ^= 0xffffffffu;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static uint64_t little_endian(const unsigned char *bytes, int n) {
  uint64_t value = 0;
  while (n-- > 0) value = value << 8 | bytes[n];
  return value;
}

static uint64_t varint(const unsigned char *p, size_t *at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    unsigned char byte = p[(*at)++];
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

static void read_fields(event *e, const unsigned char *p, size_t n, int depth);

static double number(const unsigned char *p) {
  uint64_t bits = little_endian(p, 8);
  double value;
  memcpy(&value, &bits, 8);
  return value;
}

static void keep(char *to, size_t room, const unsigned char *p, size_t n) {
  memcpy(to, p, n < room ? n : room - 1);
}

/* Depth 0: Event, 1: Summary, 2: Value, 3: SessionLog, 4: HistogramProto, 5: Image, 6: TensorProto, 7:
 * SummaryMetadata, 8: PluginData. */
static void read_bytes(event *e, unsigned field, const unsigned char *p, size_t n, int depth) {
  if (depth == 0 && field == 5) read_fields(e, p, n, 1);
  if (depth == 0 && field == 7) read_fields(e, p, n, 3);
  if (depth == 1 && field == 1) read_fields(e, p, n, 2);
  if (depth == 2 && field == 5) read_fields(e, p, n, 4);
  if (depth == 2 && field == 4) read_fields(e, p, n, 5);
  if (depth == 2 && field == 8) read_fields(e, p, n, 6);
  if (depth == 2 && field == 9) read_fields(e, p, n, 7);
  if (depth == 7 && field == 1) read_fields(e, p, n, 8);
  if (depth == 8 && field == 1) keep(e->plugin, sizeof e->plugin, p, n);
  if ((depth == 5 && field == 4) || (depth == 6 && field == 8)) keep(e->data, sizeof e->data, p, n);
  for (size_t i = 0; depth == 4 && field == 7 && i + 8 <= n; i += 8) e->counts += number(p + i);
  if (depth == 2 && field == 1) {
    assert_true(n < sizeof e->tag);
    memcpy(e->tag, p, n);
  }
}

static void read_fields(event *e, const unsigned char *p, size_t n, int depth) {
  for (size_t at = 0; at < n;) {
    unsigned key = (unsigned)varint(p, &at), field = key >> 3;
    if ((key & 7) == 0) {
      uint64_t value = varint(p, &at);
      if (depth == 0 && field == 2) e->step = (int64_t)value;
      if (depth == 3 && field == 1) e->restart = value == 1;
      if (depth == 5 && field == 1) e->height = (int)value;
      if (depth == 5 && field == 2) e->width = (int)value;
      if (depth == 5 && field == 3) e->channels = (int)value;
    } else if ((key & 7) == 2) {
      size_t length = (size_t)varint(p, &at);
      read_bytes(e, field, p + at, length, depth);
      at += length;
    } else if ((key & 7) == 5) {
      uint32_t bits = (uint32_t)little_endian(p + at, 4);
      float value;
      memcpy(&value, &bits, 4);
      if (depth == 2 && field == 2) e->value = (double)value;
      at += 4;
    } else {
      assert_int_equal(key & 7, 1);
      if (depth == 4 && field == 3) e->value = number(p + at);
      at += 8;
    }
    assert_true(at <= n);
  }
}

static void read_events(const char *path) {
  size_t n, at = 0;
  const unsigned char *p = (const unsigned char *)file_read(path, &n);
  for (n_events = 0; at < n; n_events++) {
    assert_true(n - at > 16 && n_events < MOST);
    size_t length = (size_t)little_endian(p + at, 8);
    assert_true(length <= n - at - 16);
    assert_int_equal(little_endian(p + at + 8, 4), masked_checksum(p + at, 8));
    assert_int_equal(little_endian(p + at + 12 + length, 4), masked_checksum(p + at + 12, length));
    events[n_events] = (event){0};
    read_fields(&events[n_events], p + at + 12, length, 0);
    at += 16 + length;
  }
}

/* The newest event file of a folder; how many there are. */
static int event_files(const char *folder, char path[600]) {
  DIR *dir = opendir(folder);
  int n = 0;
  char newest[300] = "";
  assert_non_null(dir);
  for (struct dirent *one; (one = readdir(dir)) != NULL;) {
    if (strncmp(one->d_name, "events.out.tfevents.", 20) != 0) continue;
    if (strcmp(one->d_name, newest) > 0) snprintf(newest, sizeof newest, "%s", one->d_name);
    n++;
  }
  closedir(dir);
  snprintf(path, 600, "%s/%s", folder, newest);
  return n;
}

static int count(const char *tag) {
  int n = 0;
  for (int i = 0; i < n_events; i++) n += strcmp(events[i].tag, tag) == 0;
  return n;
}

static double value_at(const char *tag, int64_t step) {
  for (int i = 0; i < n_events; i++)
    if (strcmp(events[i].tag, tag) == 0 && events[i].step == step) return events[i].value;
  fail_msg("%s has no value at step %lld", tag, (long long)step);
  return 0;
}

/* ---- tests ---- */

static void the_file_has_the_values_of_the_run(void **state) {
  (void)state;
  char path[600];
  file_write("noise.ini", noise_ini);
  const json_t *r = program_json(0, "train noise.ini --set run.observers=tensorboard");
  assert_int_equal(event_files("runs/noise", path), 1);
  read_events(path);
  assert_int_equal(events[1].restart, 1);
  assert_int_equal(events[1].step, 0);
  assert_int_equal(count("train/loss"), 2); /* every tenth of 20 steps */
  assert_int_equal(count("lr"), 2);
  assert_int_equal(count("epoch/loss"), 2);
  assert_int_equal(count("valid/accuracy"), 2);
  assert_true(value_at("epoch", 20) == 2);
  assert_true(value_at("valid/loss", 20) == (double)(float)program_number(r, "valid.loss"));
  assert_true(value_at("epoch/accuracy", 20) == (double)(float)program_number(r, "train.accuracy"));
}

/* fc1 has 36 * 16 + 16 numbers, fc2 16 * 4 + 4. */
static void a_watched_step_has_histograms(void **state) {
  (void)state;
  char path[600];
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.observers=tensorboard --set run.watch=5 "
                               "--set run.watch_histograms=yes"),
                   0);
  event_files("runs/noise", path);
  read_events(path);
  assert_int_equal(count("gradient_norm/all"), 4);
  assert_int_equal(count("update_ratio/fc2"), 4);
  assert_int_equal(count("gradients/fc1"), 4);
  assert_true(value_at("gradients/fc1", 15) == 592 && value_at("weights/fc2", 20) == 68);
  for (int i = 0; i < n_events; i++)
    if (strstr(events[i].tag, "gradients/") != NULL) assert_true(events[i].counts == events[i].value);
}

static void samples_are_pictures_and_texts(void **state) {
  (void)state;
  char path[600];
  int pictures = 0, texts = 0;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.observers=tensorboard --set run.samples=3"), 0);
  event_files("runs/noise", path);
  read_events(path);
  for (int i = 0; i < n_events; i++) {
    const event *e = &events[i];
    if (e->data[0] == '\0') continue;
    assert_true(e->step == 10 || e->step == 20);
    texts += strcmp(e->plugin, "text") == 0;
    if (strcmp(e->tag, "samples/table") == 0) {
      assert_memory_equal(e->data, "| sample | label (target) |", 27);
      continue;
    }
    assert_true(e->width == 6 && e->height == 6 && e->channels == 3);
    assert_memory_equal(e->data, "\x89PNG\r\n\x1A\n", 8);
    pictures++;
  }
  assert_int_equal(pictures, 6);
  assert_int_equal(texts, 2);
  assert_int_equal(count("samples/2"), 2);
}

static void every_is_the_distance_of_the_steps(void **state) {
  (void)state;
  char path[600];
  file_write("noise.ini", noise_ini);
  assert_int_equal(
      program_run("train noise.ini --set run.observers=tensorboard --set observer.tensorboard.every=3"), 0);
  event_files("runs/noise", path);
  read_events(path);
  assert_int_equal(count("train/loss"), 6);
  value_at("train/loss", 18);
  assert_int_equal(
      program_run("train noise.ini --set run.observers=tensorboard --set observer.tensorboard.every=0"), 65);
}

/* The file of the earlier process stays; the new one says from which step on it is out of date. */
static void a_resumed_run_writes_another_file(void **state) {
  (void)state;
  char path[600];
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.observers=tensorboard --set run.epochs=1"), 0);
  assert_int_equal(program_run("train noise.ini --set run.observers=tensorboard --resume runs/noise"), 0);
  assert_int_equal(event_files("runs/noise", path), 2);
  read_events(path);
  assert_int_equal(events[1].restart, 1);
  assert_int_equal(events[1].step, 11);
  assert_int_equal(count("train/loss"), 1);
  value_at("train/loss", 20);
}

static void without_a_run_folder_nothing_is_written(void **state) {
  (void)state;
  file_write("noise.ini", noise_ini);
  assert_int_equal(program_run("train noise.ini --set run.observers=tensorboard --set run.output="), 0);
  assert_false(file_exists("runs"));
}

static void tensorboard_reads_the_file(void **state) {
  (void)state;
  static const char script[] =
      "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
      "a = EventAccumulator('runs/noise'); a.Reload()\n"
      "assert sorted(t for t in a.Tags()['scalars'] if 'norm' not in t and 'ratio' not in t) == ['epoch', "
      "'epoch/accuracy', 'epoch/cross_entropy', "
      "'epoch/loss', "
      "'lr', 'samples_per_s', 'train/accuracy', 'train/cross_entropy', 'train/loss', 'valid/accuracy', "
      "'valid/cross_entropy', 'valid/loss'], a.Tags()\n"
      "assert [e.step for e in a.Scalars('train/loss')] == [10, 20]\n"
      "assert [e.step for e in a.Scalars('valid/loss')] == [10, 20]\n"
      "h = a.Histograms('weights/fc1')[0].histogram_value\n"
      "assert sum(h.bucket) == h.num == 592 and h.bucket_limit[-1] >= h.max > 0 > h.min\n"
      "i = a.Images('samples/1')\n"
      "assert [e.step for e in i] == [10, 20] and i[0].width == i[0].height == 6\n"
      "assert i[0].encoded_image_string[:4] == b'\\x89PNG'\n"
      "t = a.Tensors('samples/table')\n"
      "assert [e.step for e in t] == [10, 20]\n"
      "assert t[1].tensor_proto.string_val[0].startswith(b'| sample | label (target) |')\n"
      "assert 'samples/table' in a.PluginTagToContent('text')\n";
  if (system("python3 -c 'import tensorboard' 2>/dev/null") != 0) {
    print_message("skipped: python3 has no tensorboard (pip install tensorboard)\n");
    skip();
  }
  file_write("noise.ini", noise_ini);
  file_write("read.py", script);
#define WATCHED                                                                                              \
  "train noise.ini --set run.observers=tensorboard --set run.watch=20 --set run.watch_histograms=yes "       \
  "--set run.samples=2 "
  assert_int_equal(program_run(WATCHED "--set run.epochs=1"), 0);
  assert_int_equal(program_run(WATCHED "--resume runs/noise"), 0);
  assert_int_equal(system("python3 read.py"), 0);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(the_file_has_the_values_of_the_run), CASE(every_is_the_distance_of_the_steps),
      CASE(a_resumed_run_writes_another_file),  CASE(without_a_run_folder_nothing_is_written),
      CASE(tensorboard_reads_the_file),         CASE(a_watched_step_has_histograms),
      CASE(samples_are_pictures_and_texts),
  };
  return cmocka_run_group_tests_name("tensorboard", tests, NULL, NULL);
}

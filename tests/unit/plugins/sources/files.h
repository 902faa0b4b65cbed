/* tests/unit/plugins/sources/files.h: small data sets of each format, of n samples that differ from each
 * other. */
#pragma once

#include <sys/stat.h>

#include <png.h>

#include "tests/unit/plugins/sources/probe.h"

/* Bytes in the order in which they are added. */
typedef struct byte_list {
  uint8_t v[1 << 17];
  size_t n;
} byte_list;

static inline void add(byte_list *b, const void *from, size_t n) {
  assert_true(b->n + n <= sizeof b->v);
  memcpy(b->v + b->n, from, n);
  b->n += n;
}

static inline void add_text(byte_list *b, const char *text) { add(b, text, strlen(text)); }

static inline void add_little(byte_list *b, uint32_t value, int size) {
  for (int i = 0; i < size; i++) add(b, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

static inline void add_big(byte_list *b, uint32_t value, int size) {
  for (int i = size; i-- > 0;) add(b, &(uint8_t){(uint8_t)(value >> 8 * i)}, 1);
}

static inline void write_bytes(const char *path, byte_list *b) {
  write_file(path, b->v, b->n);
  b->n = 0;
}

static byte_list file_bytes;

/* A .npy file of f32[n, 2]. */
static inline void add_rows(byte_list *b, int n, int first) {
  char header[128];
  int used =
      snprintf(header, sizeof header, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 2), }", n);
  while ((10 + used + 1) % 64 != 0) header[used++] = ' ';
  header[used++] = '\n';
  add(b, "\x93NUMPY\x01\x00", 8);
  add_little(b, (uint32_t)used, 2);
  add(b, header, (size_t)used);
  for (int i = 0; i < 2 * n; i++) add(b, &(float){(float)(first + i)}, sizeof(float));
}

static inline void write_rows(const char *path, int n) {
  add_rows(&file_bytes, n, 0);
  write_bytes(path, &file_bytes);
}

static inline void make_classes(const char *folder) {
  mkdir(in_folder(folder, "no"), 0777);
  mkdir(in_folder(folder, "yes"), 0777);
}

/* n WAV files in each of two class folders, of 80 frames at 8000 a second. */
static inline void write_sounds(const char *folder, int n) {
  make_classes(folder);
  for (int i = 0; i < 2 * n; i++) {
    char name[32];
    byte_list *b = &file_bytes;
    add_text(b, "RIFF");
    add_little(b, 160 + 36, 4);
    add_text(b, "WAVEfmt ");
    add_little(b, 16, 4);
    add_little(b, 1, 2); /* PCM */
    add_little(b, 1, 2);
    add_little(b, 8000, 4);
    add_little(b, 16000, 4);
    add_little(b, 2, 2);
    add_little(b, 16, 2);
    add_text(b, "data");
    add_little(b, 160, 4);
    for (int k = 0; k < 80; k++) add_little(b, (uint32_t)(100 * i + k), 2);
    snprintf(name, sizeof name, "%s/%d.wav", i % 2 == 0 ? "no" : "yes", i);
    write_bytes(in_folder(folder, name), b);
  }
}

/* Records of CIFAR-10. */
static inline void write_cifar(const char *path, int n) {
  for (int i = 0; i < n; i++) {
    add(&file_bytes, &(uint8_t){(uint8_t)(i % 10)}, 1);
    for (int k = 0; k < 3072; k++) add(&file_bytes, &(uint8_t){(uint8_t)(i + k)}, 1);
  }
  write_bytes(path, &file_bytes);
}

/* n images of 2 x 3 with labels 0 to 3. */
static inline void write_idx(const char *folder, int n) {
  byte_list *b = &file_bytes;
  add_big(b, 0x803, 4);
  add_big(b, (uint32_t)n, 4);
  add_big(b, 2, 4);
  add_big(b, 3, 4);
  for (int i = 0; i < 6 * n; i++) add(b, &(uint8_t){(uint8_t)i}, 1);
  write_bytes(in_folder(folder, "train-images-idx3-ubyte"), b);
  add_big(b, 0x801, 4);
  add_big(b, (uint32_t)n, 4);
  for (int i = 0; i < n; i++) add(b, &(uint8_t){(uint8_t)(i % 4)}, 1);
  write_bytes(in_folder(folder, "train-labels-idx1-ubyte"), b);
}

/* n pictures of 4 x 3 in a class folder; the shade begins with `first`. */
static inline void write_class(const char *folder, const char *class_name, int n, int first) {
  mkdir(in_folder(folder, class_name), 0777);
  for (int i = 0; i < n; i++) {
    char name[64];
    uint8_t pixels[3 * 4 * 3];
    png_image image = {.version = PNG_IMAGE_VERSION, .width = 4, .height = 3, .format = PNG_FORMAT_RGB};
    for (size_t k = 0; k < sizeof pixels; k++) pixels[k] = (uint8_t)(first + i);
    snprintf(name, sizeof name, "%s/%d.png", class_name, i);
    assert_true(png_image_write_to_file(&image, in_folder(folder, name), 0, pixels, 0, NULL));
  }
}

/* n in each of two class folders. */
static inline void write_pictures(const char *folder, int n) {
  write_class(folder, "no", n, 0);
  write_class(folder, "yes", n, 100);
}

/* ---- tar archives ---- */

static inline void add_member(byte_list *b, const char *name, const void *content, size_t n) {
  char block[512] = "";
  unsigned sum = 0;
  snprintf(block, 100, "%s", name);
  snprintf(block + 124, 12, "%011zo", n);
  memset(block + 148, ' ', 8);
  block[156] = '0';
  memcpy(block + 257, "ustar", 6);
  memcpy(block + 263, "00", 2);
  for (int i = 0; i < 512; i++) sum += (unsigned char)block[i];
  snprintf(block + 148, 8, "%06o", sum);
  add(b, block, sizeof block);
  add(b, content, n);
  static const char zeros[512];
  add(b, zeros, (512 - n % 512) % 512);
}

static inline void add_text_member(byte_list *b, const char *name, const char *text) {
  add_member(b, name, text, strlen(text));
}

/* Samples of shards: NUMBER.json {"x": [NUMBER, 1]} and NUMBER.cls NUMBER % 3. */
static inline void add_shard_sample(byte_list *b, int number) {
  char name[32], text[32];
  snprintf(name, sizeof name, "%03d.json", number);
  snprintf(text, sizeof text, "{\"x\": [%d, 1]}", number);
  add_text_member(b, name, text);
  snprintf(name, sizeof name, "%03d.cls", number);
  snprintf(text, sizeof text, "%d", number % 3);
  add_text_member(b, name, text);
}

/* Three archives s-0.tar to s-2.tar. */
static inline void write_shards(const char *folder, int n) {
  for (int file = 0; file < 3; file++) {
    char name[32];
    for (int i = file * n / 3; i < (file + 1) * n / 3; i++) add_shard_sample(&file_bytes, i);
    snprintf(name, sizeof name, "s-%d.tar", file);
    write_bytes(in_folder(folder, name), &file_bytes);
  }
}

/* ---- texts ---- */

static inline void write_table(const char *path, int n) {
  add_text(&file_bytes, "a,b,c\n");
  for (int i = 0; i < n; i++) {
    char line[64];
    snprintf(line, sizeof line, "%d,%d,%s\n", i, i * i, i % 2 == 0 ? "even" : "odd");
    add_text(&file_bytes, line);
  }
  write_bytes(path, &file_bytes);
}

static inline void write_text(const char *path, int n) {
  for (int i = 0; i < n; i++) add(&file_bytes, &(char){(char)('a' + i * i % 23)}, 1);
  write_bytes(path, &file_bytes);
}

/* Tokens as nanoGPT writes them. */
static inline void write_tokens(const char *path, int n) {
  for (int i = 0; i < n; i++) add_little(&file_bytes, (uint32_t)(i * i % 1000), 2);
  write_bytes(path, &file_bytes);
}

/* `tenon init`: the configuration that it writes trains at once. */
#include <stdlib.h>
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
  has("pets.ini", "name = pets\n");
  has("pets.ini", "random_crop(32, padding=4), random_flip");
  has("pets.ini", "fc:     linear(2)");
  lacks("pets.ini", "size = 0");
  r = program_json(0, "train pets.ini --set run.max_steps=1");
  assert_int_equal(program_number(r, "steps"), 1);
  assert_true(program_number(r, "valid.loss") > 0);
}

/* ---- fine-tuning ---- */

/* A file of weights with these tensors of zeros, names and shapes as JSON text: "\"fc.bias\": [10]". */
typedef struct zeros {
  char header[1 << 15];
  size_t n, bytes;
} zeros;

static void add_tensor(zeros *z, const char *name, int rank, const int *dims) {
  size_t bytes = sizeof(float);
  char shape[64] = "";
  for (int i = 0, at = 0; i < rank; i++) {
    bytes *= (size_t)dims[i];
    at += snprintf(shape + at, sizeof shape - (size_t)at, "%s%d", i ? ", " : "", dims[i]);
  }
  z->n += (size_t)snprintf(z->header + z->n, sizeof z->header - z->n,
                           "%s\"%s\": {\"dtype\": \"F32\", \"shape\": [%s], \"data_offsets\": [%zu, %zu]}",
                           z->n > 1 ? ", " : "", name, shape, z->bytes, z->bytes + bytes);
  assert_true(z->n < sizeof z->header);
  z->bytes += bytes;
}

static void add_norm(zeros *z, const char *name, int channels) {
  static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
  for (int i = 0; i < 4; i++) {
    char path[128];
    snprintf(path, sizeof path, "%s.%s", name, parts[i]);
    add_tensor(z, path, 1, &channels);
  }
}

static void add_conv(zeros *z, const char *name, int out, int in, int kernel) {
  char path[128];
  snprintf(path, sizeof path, "%s.weight", name);
  add_tensor(z, path, 4, (const int[]){out, in, kernel, kernel});
}

/* ResNet-18, or with bottlenecks ResNet-26: two blocks a stage. */
static void add_block(zeros *z, const char *name, int planes, int in, int bottleneck) {
  char path[3][64], down[64], norm[64];
  int out = bottleneck ? 4 * planes : planes;
  for (int i = 0; i < 3; i++) snprintf(path[i], sizeof path[i], "%s.conv%d", name, i + 1);
  add_conv(z, path[0], planes, in, bottleneck ? 1 : 3);
  add_conv(z, path[1], planes, planes, 3);
  if (bottleneck) add_conv(z, path[2], out, planes, 1);
  for (int i = 0; i < 2 + bottleneck; i++) {
    snprintf(norm, sizeof norm, "%s.bn%d", name, i + 1);
    add_norm(z, norm, i == 2 ? out : planes);
  }
  if (in == out) return;
  snprintf(down, sizeof down, "%s.downsample.0", name);
  snprintf(norm, sizeof norm, "%s.downsample.1", name);
  add_conv(z, down, out, in, 1);
  add_norm(z, norm, out);
}

static void write_resnet(const char *path, int bottleneck) {
  static zeros z;
  int in = 64;
  z.n = (size_t)snprintf(z.header, sizeof z.header, "{");
  z.bytes = 0;
  add_conv(&z, "conv1", 64, 3, 7);
  add_norm(&z, "bn1", 64);
  for (int stage = 0; stage < 4; stage++)
    for (int block = 0; block < 2; block++) {
      char name[32];
      snprintf(name, sizeof name, "layer%d.%d", stage + 1, block);
      add_block(&z, name, 64 << stage, in, bottleneck);
      in = (64 << stage) * (bottleneck ? 4 : 1);
    }
  add_tensor(&z, "fc.weight", 2, (const int[]){1000, in});
  add_tensor(&z, "fc.bias", 1, (const int[]){1000});
  z.n += (size_t)snprintf(z.header + z.n, sizeof z.header - z.n, "}");
  char *bytes = calloc(1, 8 + z.n + z.bytes);
  uint64_t length = z.n;
  memcpy(bytes, &length, 8);
  memcpy(bytes + 8, z.header, z.n);
  file_write_bytes(path, bytes, 8 + z.n + z.bytes);
  free(bytes);
}

static void a_resnet_of_torchvision_is_fine_tuned(void **state) {
  (void)state;
  write_classes("pets", 6, 60, 11);
  write_resnet("resnet.safetensors", 0);
  const json_t *r = program_json(0, "init pets --weights resnet.safetensors");
  assert_int_equal(program_number(r, "size"), 224);
  has("pets.ini", "[weights]\nfile = resnet.safetensors\nskip = fc.*\n");
  has("pets.ini", "layer2: residual(128, stride=2), residual(128)\n");
  has("pets.ini", "freeze = 2\n");
  r = program_json(0, "train pets.ini --set run.max_steps=1 --set data.batch=2");
  assert_int_equal(program_number(r, "steps"), 1);
  write_resnet("bottlenecks.safetensors", 1);
  assert_int_equal(program_run("init pets --weights bottlenecks.safetensors --output deep.ini"), 0);
  r = program_json(0, "train deep.ini --set run.max_steps=1 --set data.batch=2");
  assert_int_equal(program_number(r, "steps"), 1);
}

static void other_weights_are_refused(void **state) {
  (void)state;
  write_classes("pets", 2, 40, 0);
  file_write("text.txt", "To be or not to be, that is the question.\n");
  file_write("broken.safetensors", "no tensors");
  static zeros z;
  z.n = (size_t)snprintf(z.header, sizeof z.header, "{");
  add_tensor(&z, "fc.bias", 1, (const int[]){3});
  z.n += (size_t)snprintf(z.header + z.n, sizeof z.header - z.n, "}");
  char bytes[512] = {0};
  memcpy(bytes, &(uint64_t){z.n}, 8);
  memcpy(bytes + 8, z.header, z.n);
  file_write_bytes("other.safetensors", bytes, 8 + z.n + z.bytes);
  assert_int_equal(program_run("init pets --weights other.safetensors"), 65);
  says("other.safetensors: is no ResNet with the names of torchvision");
  assert_int_equal(program_run("init pets --weights broken.safetensors"), 65);
  assert_int_equal(program_run("init pets --weights none.safetensors"), 74);
  assert_int_equal(program_run("init text.txt --weights other.safetensors"), 2);
  says("--weights: expected with a folder of pictures");
  assert_false(file_exists("pets.ini"));
}

/* ---- pictures ---- */

/* Pictures of several sizes in a folder without parts: they are resized, from the folder itself. */
static void pictures_of_other_sizes_are_resized(void **state) {
  (void)state;
  write_classes("shapes", 6, 60, 11);
  file_write("shapes/dogs/broken.jpg", "");
  const json_t *r = program_json(0, "init shapes");
  assert_int_equal(program_number(r, "size"), 64);
  has("shapes.ini", "subfolder = .\nsplit = 0.1\n");
  has("shapes.ini", "size = 0");
  has("shapes.ini", "random_resized_crop(64");
  has("shapes.ini", "resize(64) makes the shorter side");
  has("shapes.ini", "resize([64, 64]) makes all 64 x 64.\n");
  says(
      "warning: 1 file cannot be read as a picture, such as shapes/dogs/broken.jpg; training reads the next");
  has("shapes.ini", "corrupt = skip\n");
  file_write("shapes/cats/notes.txt", "no picture");
  r = program_json(0, "train shapes.ini --set run.max_steps=1");
  assert_int_equal(program_number(r, "steps"), 1);
  assert_true(program_number(r, "valid.loss") > 0);
  const char *warning = strstr(
      program_err, "shapes/cats/notes.txt: is no .jpg, .png, .webp, .tiff or .avif file and is skipped");
  assert_non_null(warning);
  assert_null(strstr(warning + 1, "shapes/cats/notes.txt")); /* once, not for both parts */
  file_write("shapes/cats/labels.csv", "no picture");
  assert_int_equal(program_run("train shapes.ini --set run.max_steps=1"), 0);
  says("shapes: 2 entries of class folders are no .jpg, .png, .webp, .tiff or .avif files and are skipped, "
       "such "
       "as cats/");
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
  has("song.ini", "tokenizer = bytes");
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

/* Beginnings of pictures of 700 x 300 and 600 x 400; the rest is not read. */
static void headers_of_all_formats_are_read(void **state) {
  (void)state;
  static const unsigned char webp[30] = {'R', 'I', 'F', 'F', 0, 0, 0, 0, 'W', 'E',  'B', 'P', 'V',  'P', '8',
                                         'X', 10,  0,   0,   0, 0, 0, 0, 0,   0xBB, 2,   0,   0x2B, 1,   0};
  static const unsigned char tiff[] = {'M', 'M', 0,    42, 0, 0, 0, 8, 0, 2, 1, 0, 0, 3, 0, 0, 0,
                                       1,   2,   0xBC, 0,  0, 1, 1, 0, 4, 0, 0, 0, 1, 0, 0, 1, 0x2C};
  static const unsigned char avif[] = {0, 0, 0, 28, 'f', 't', 'y', 'p',  'a', 'v', 'i', 'f',
                                       0, 0, 0, 0,  0,   0,   0,   20,   'i', 's', 'p', 'e',
                                       0, 0, 0, 0,  0,   0,   2,   0x58, 0,   0,   1,   0x90};
  static const unsigned char lossy[30] = {'R', 'I', 'F', 'F',  0,   0,    0,    0, 'W',  'E',
                                          'B', 'P', 'V', 'P',  '8', ' ',  10,   0, 0,    0,
                                          0,   0,   0,   0x9D, 1,   0x2A, 0x58, 2, 0x90, 1};
  mkdir("headers", 0777), mkdir("headers/a", 0777), mkdir("headers/b", 0777);
  file_write_bytes("headers/a/1.webp", webp, sizeof webp);
  file_write_bytes("headers/a/2.tif", tiff, sizeof tiff);
  file_write_bytes("headers/b/3.avif", avif, sizeof avif);
  file_write_bytes("headers/b/4.webp", lossy, sizeof lossy);
  assert_int_equal(program_run("init headers"), 0);
  size_t n;
  char *text = file_read("headers.ini", &n);
  if (strstr(text, "from 4 pictures, most of about 600 x 400 pixels") == NULL) fail_msg("%s", text);
}

static void what_it_cannot_learn_from_is_refused(void **state) {
  (void)state;
  assert_int_equal(program_run("init nowhere"), 74);
  mkdir("empty", 0777);
  assert_int_equal(program_run("init empty"), 65);
  says("expected a folder for each class");
  write_classes("of", 2, 32, 0);
  mkdir("of/sorts", 0777), rename("of/cats", "of/sorts/cats"), rename("of/dogs", "of/sorts/dogs");
  file_write("of/sorts/cats/a.bmp", "BM");
  assert_int_equal(program_run("init of"), 65);
  says("has 1 folder with 0 .jpg, .png, .webp, .tiff or .avif files");
  says("pictures of other kinds must be converted");
  file_write("short.txt", "too short");
  assert_int_equal(program_run("init short.txt"), 65);
  says("expected at least 200");
  write_classes("a#b", 2, 32, 0);
  assert_int_equal(program_run("init a#b"), 65);
  says("cannot hold");
  write_classes("a\x1b[31mb", 2, 32, 0);
  assert_int_equal(program_run("init a\x1b[31mb --output red.ini"), 65);
  says("cannot hold");
  assert_false(file_exists("red.ini"));
  assert_false(file_exists("empty.ini"));
}

/* Among the first pictures, whose sizes are read. */
static void a_fifo_among_the_pictures_is_passed_over(void **state) {
  (void)state;
  write_classes("shapes", 2, 32, 0);
  assert_int_equal(mkfifo("shapes/cats/0.png.jpg", 0666), 0);
  assert_int_equal(program_run("init shapes"), 0);
  says("0.png.jpg");
}

/* ---- sounds, archives and tables of files ---- */

/* A tone of a tenth of a second: 800 numbers of 16 bits. */
static void write_tone(const char *path, int period) {
  unsigned char wav[44 + 1600] =
      "RIFF\x64\x06\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"
      "data\x40\x06\0";
  for (int i = 0; i < 800; i++) wav[45 + 2 * i] = (unsigned char)(i / period % 2 ? 0x20 : 0xE0);
  file_write_bytes(path, wav, sizeof wav);
}

static void write_words(void) {
  char path[64];
  mkdir("words", 0777), mkdir("words/no", 0777), mkdir("words/yes", 0777);
  for (int i = 0; i < 24; i++) {
    snprintf(path, sizeof path, "words/%s/%d.wav", i % 2 ? "yes" : "no", i);
    write_tone(path, i % 2 ? 4 : 40);
  }
}

static void a_folder_of_sounds_trains(void **state) {
  (void)state;
  write_words();
  const json_t *r = program_json(0, "init words");
  assert_string_equal(program_text(r, "kind"), "sounds");
  assert_int_equal(program_number(r, "classes"), 2);
  has("words.ini", "rate = 8000\nseconds = 0.1\n");
  has("words.ini", "inputs = sound: f32[40, 11]");
  r = program_json(0, "train words.ini --set run.epochs=2 --set run.name=words");
  assert_true(program_number(r, "train.loss") > 0);
  mkdir("one", 0777), mkdir("one/class", 0777);
  write_tone("one/class/a.wav", 4);
  assert_int_equal(program_run("init one"), 65);
  says("has 1 folder with sounds, expected a folder for each class, at least two");
}

static void add_member(FILE *tar, const char *name, const void *bytes, size_t n) {
  char block[512] = "";
  unsigned sum = 0;
  snprintf(block, 100, "%s", name);
  snprintf(block + 124, 12, "%011o", (unsigned)n);
  memset(block + 148, ' ', 8);
  block[156] = '0';
  for (int i = 0; i < 512; i++) sum += (unsigned char)block[i];
  snprintf(block + 148, 8, "%06o", sum);
  fwrite(block, 1, sizeof block, tar);
  fwrite(bytes, 1, n, tar);
  memset(block, 0, sizeof block);
  fwrite(block, 1, (512 - n % 512) % 512, tar);
}

static void an_archive_of_samples_trains(void **state) {
  (void)state;
  char name[64];
  FILE *tar = fopen("birds.tar", "wb");
  for (int i = 0; i < 40; i++) {
    size_t n;
    write_png("one.png", 32, 32, 40 + 120 * (i % 2));
    const char *png = file_read("one.png", &n);
    snprintf(name, sizeof name, "birds/%03d.png", i);
    add_member(tar, name, png, n);
    snprintf(name, sizeof name, "birds/%03d.cls", i);
    add_member(tar, name, i % 2 ? "1" : "0", 1);
  }
  fwrite((char[1024]){0}, 1, 1024, tar);
  fclose(tar);
  const json_t *r = program_json(0, "init birds.tar");
  assert_string_equal(program_text(r, "kind"), "shards");
  assert_int_equal(program_number(r, "classes"), 2);
  has("birds.ini",
      "source = shards\nfiles = birds.tar\ninputs = image: png\ntargets = label: cls\nclasses = 2\n");
  has("birds.ini", "40 pictures, most of about 32 x 32 pixels");
  r = program_json(0, "train birds.ini --set run.epochs=1");
  assert_true(program_number(r, "train.loss") > 0);
  file_write("empty.tar", "");
  assert_int_equal(program_run("init empty.tar"), 65);
  says("has 0 pictures of 0 classes, expected samples of a picture and its class");
}

static void a_table_of_pictures_and_sounds_trains(void **state) {
  (void)state;
  char text[4096] = "photo,word,size,label\n", name[32];
  size_t used = strlen(text);
  write_words();
  mkdir("pics", 0777);
  for (int i = 0; i < 24; i++) {
    snprintf(name, sizeof name, "pics/%d.png", i);
    write_png(name, 20, 24, 40 + 120 * (i % 2));
    used += (size_t)snprintf(text + used, sizeof text - used, "%s,words/%s/%d.wav,%d.5,%s\n", name,
                             i % 2 ? "yes" : "no", i, i, i % 2 ? "yes" : "no");
  }
  file_write("files.csv", text);
  assert_int_equal(program_run("init files.csv"), 0);
  has("files.ini", "photo: image(photo)");
  has("files.ini", "word: audio(word, rate=8000, seconds=0.1)");
  has("files.ini", "resize([64, 64]), to_float <- photo");
  const json_t *r = program_json(0, "train files.ini --set run.epochs=2");
  assert_true(program_number(r, "train.loss") > 0);
}

static void lines_of_json_train(void **state) {
  (void)state;
  char text[8192] = "";
  size_t used = 0;
  for (int i = 0; i < 40; i++)
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "{\"text\": \"the film number %d is %s\", \"label\": %d}\n", i,
                             i % 2 ? "very good" : "rather bad", i % 2);
  file_write("films.jsonl", text);
  assert_int_equal(program_run("init films.jsonl"), 0);
  has("films.ini", "text: text(text, length=256)");
  has("films.ini", "targets = label: category(label, classes=0|1)");
  const json_t *r = program_json(0, "train films.ini --set run.epochs=1");
  assert_true(program_number(r, "train.loss") > 0);
  for (used = 0; used < 2000;)
    used += (size_t)snprintf(text + used, sizeof text - used, "{\"a\": %zu, \"y\": %zu.5}\n", used * 7 % 31,
                             used);
  file_write("numbers.ndjson", text);
  assert_int_equal(program_run("init numbers.ndjson"), 0);
  has("numbers.ini", "numbers: numbers(a, missing=median, standardize=yes)");
}

/* ---- the zoo ---- */

static void models_of_the_zoo_are_listed(void **state) {
  (void)state;
  const json_t *models = json_object_get(program_json(0, "init zoo:"), "models");
  assert_true(json_array_size(models) > 50);
  assert_string_equal(program_text(json_array_get(models, 0), "name"), "alexnet");
  assert_int_equal(program_run("init zoo:"), 0);
  assert_non_null(strstr(program_out, "resnet50                 ResNet-50 (He"));
  assert_null(strstr(program_out, "parts"));
}

static void a_model_of_the_zoo_is_one_file(void **state) {
  (void)state;
  const json_t *result = program_json(0, "init zoo:resnet18");
  assert_string_equal(program_text(result, "file"), "resnet18.ini");
  lacks("resnet18.ini", "include");
  lacks("resnet18.ini", "[weights]");
  result = program_json(0, "plan resnet18.ini");
  assert_int_equal((int)program_number(result, "parameters"), 11689512);
  program_json(65, "init zoo:resnet18");
  says("resnet18.ini: exists, and is not overwritten");
}

/* A section that a model has beside one of its parts would be refused. */
static void no_section_is_written_twice(void **state) {
  (void)state;
  json_t *models = json_deep_copy(json_object_get(program_json(0, "init zoo:"), "models"));
  size_t i;
  json_t *model;
  json_array_foreach(models, i, model) {
    const char *name = program_text(model, "name");
    char file[128], header[64];
    program_expect(program_run("init zoo:%s", name), 0);
    snprintf(file, sizeof file, "%s.ini", name);
    const char *text = file_read(file, NULL);
    for (const char *at = text; (at = strstr(at, "\n[")) != NULL; at++) {
      snprintf(header, sizeof header, "%.*s", (int)strcspn(at + 1, "]") + 2, at);
      if (strstr(at + 1, header) != NULL) fail_msg("%s has %s twice", file, header + 1);
    }
  }
  json_decref(models);
}

/* Of a file without its weights the names of published files are comments. */
static void names_of_published_weights_are_kept(void **state) {
  (void)state;
  file_write("w.safetensors", "");
  program_json(0, "init zoo:resnet18 --weights w.safetensors");
  has("resnet18.ini", "\n[weights]\nfile = w.safetensors\n");
  program_json(0, "init zoo:vit_b_16 --weights w.safetensors");
  has("vit_b_16.ini", "\n[weights]\nfile = w.safetensors\nrename = *.in_proj_weight -> ");
  program_json(0, "init zoo:regnet_x_400mf --output r.ini");
  has("r.ini", "\n# [weights]\n# rename = trunk_output.block1");
  has("r.ini", "\n#          trunk_output.block4.block4-*.* -> trunk_output.block4.*.*\n");
  program_json(0, "config check r.ini");
  program_json(74, "init zoo:resnet34 --weights runs/none --output other/r.ini");
}

static void other_names_of_the_zoo_are_told_the_near_ones(void **state) {
  (void)state;
  program_json(2, "init zoo:resnt50");
  says("the zoo has no model 'resnt50'; near it: resnet50; `tenon init zoo:` lists them");
  program_json(2, "init zoo:mobilenet");
  says("near it: mobilenet_v2, mobilenet_v3_large, mobilenet_v3_small;");
  program_json(2, "init zoo:parts/resnet");
  says("the zoo has no model 'parts/resnet'; `tenon");
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, program_open, program_close)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(small_pictures_with_parts_train_at_their_size),
      IN_FOLDER(a_resnet_of_torchvision_is_fine_tuned),
      IN_FOLDER(other_weights_are_refused),
      IN_FOLDER(pictures_of_other_sizes_are_resized),
      IN_FOLDER(sizes_of_jpegs_are_read),
      IN_FOLDER(a_text_trains),
      IN_FOLDER(a_file_that_is_not_utf8_is_bytes_and_short_ones_get_short_windows),
      IN_FOLDER(nothing_is_overwritten),
      IN_FOLDER(headers_of_all_formats_are_read),
      IN_FOLDER(what_it_cannot_learn_from_is_refused),
      IN_FOLDER(a_fifo_among_the_pictures_is_passed_over),
      IN_FOLDER(a_folder_of_sounds_trains),
      IN_FOLDER(an_archive_of_samples_trains),
      IN_FOLDER(a_table_of_pictures_and_sounds_trains),
      IN_FOLDER(lines_of_json_train),
      IN_FOLDER(models_of_the_zoo_are_listed),
      IN_FOLDER(a_model_of_the_zoo_is_one_file),
      IN_FOLDER(no_section_is_written_twice),
      IN_FOLDER(names_of_published_weights_are_kept),
      IN_FOLDER(other_names_of_the_zoo_are_told_the_near_ones),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

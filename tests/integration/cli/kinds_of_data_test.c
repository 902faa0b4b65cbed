/* The recipes of docs/guide/recipes.md, each as it stands there: a training on a few samples, its evaluation,
 * and predictions by the run folder alone, when the data are gone. */
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "npy_files.h"

/* ---- data ---- */

/* The same numbers in every run, from 0 to below n. */
static uint32_t drawn;
static int draw(int n) {
  drawn = drawn * 1664525u + 1013904223u;
  return (int)((uint64_t)(drawn >> 8) * (uint64_t)n >> 24);
}

static void add(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(FILE *file, const char *format, ...) {
  va_list list;
  va_start(list, format);
  assert_true(vfprintf(file, format, list) >= 0);
  va_end(list);
}

static FILE *begin(const char *path) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  return file;
}

/* A price of 2 for each unit of area, and 30 more in the north; some areas are missing. */
static void write_houses(void) {
  static const char *const districts[] = {"north", "south", "west"};
  FILE *file = begin("houses.csv");
  add(file, "area,rooms,district,price\n");
  for (int i = 0; i < 90; i++) {
    int area = 40 + draw(100), district = draw(3);
    if (i % 30 == 7)
      add(file, ",");
    else
      add(file, "%d,", area);
    add(file, "%d,%s,%d\n", 1 + draw(5), districts[district], 100 + 2 * area + 30 * (district == 0));
  }
  fclose(file);
  file_write("new/houses.csv", "district,rooms,area\nnorth,3,100\nsouth,3,50\neast,3,\n");
}

/* Survival follows the sex. */
static void write_passengers(void) {
  FILE *file = begin("passengers.csv");
  add(file, "name,sex,age,fare,survived\n");
  for (int i = 0; i < 80; i++) {
    int male = draw(2);
    add(file, "\"P, %d\",%s,", i, i % 20 == 3 ? "" : male ? "male" : "female");
    if (i % 9 != 5) add(file, "%d", 20 + draw(40));
    add(file, ",%.2f,%s\n", draw(60) / 4.0, male ? "no" : "yes");
  }
  fclose(file);
  file_write("new/passengers.csv", "sex,age,fare\nfemale,30,\nmale,,8\n");
}

/* A picture of side x side in one color, but for a square in another. */
static void write_square(const char *path, int side, const uint8_t color[3], int x, int y, int n,
                         const uint8_t in[3]) {
  uint8_t pixels[3 * 40 * 40];
  assert_true(side <= 40);
  for (int i = 0; i < side * side; i++) {
    int inside = i % side >= x && i % side < x + n && i / side >= y && i / side < y + n;
    memcpy(pixels + 3 * i, inside ? in : color, 3);
  }
  png_image image = {.version = PNG_IMAGE_VERSION,
                     .width = (unsigned)side,
                     .height = (unsigned)side,
                     .format = PNG_FORMAT_RGB};
  assert_true(png_image_write_to_file(&image, path, 0, pixels, 0, NULL));
}

static void write_label_picture(const char *path, int which) {
  const uint8_t color[] = {which & 1 ? 220 : 30, which & 2 ? 220 : 30, which & 4 ? 220 : 30};
  write_square(path, 20 + draw(8), color, 0, 0, 0, color);
}

/* A label for each color that is bright. */
static void write_photos(void) {
  static const char *const names[] = {"",     "red",      "green",      "red green",
                                      "blue", "red blue", "green blue", "red green blue"};
  FILE *file = begin("photos.csv");
  add(file, "photo,labels\n");
  mkdir("photos", 0777);
  for (int i = 0; i < 48; i++) {
    char path[32];
    snprintf(path, sizeof path, "photos/%d.png", i);
    write_label_picture(path, i % 8);
    add(file, "%s,%s\n", path, names[i % 8]);
  }
  fclose(file);
  write_label_picture("new/a.png", 3);
  write_label_picture("new/b.png", 4);
}

static void write_cell(const char *picture, const char *mask) {
  static const uint8_t dark[] = {40, 60, 50}, bright[] = {200, 90, 180}, none[] = {0, 0, 0},
                       one[] = {1, 1, 1};
  int x = draw(20), y = draw(20), n = 8 + draw(8);
  write_square(picture, 32, dark, x, y, n, bright);
  if (mask != NULL) write_square(mask, 32, none, x, y, n, one);
}

static void write_cells(void) {
  FILE *file = begin("cells.csv");
  add(file, "picture,mask\n");
  for (int i = 0; i < 16; i++) {
    char picture[32], mask[32];
    snprintf(picture, sizeof picture, "p%d.png", i);
    snprintf(mask, sizeof mask, "m%d.png", i);
    write_cell(picture, mask);
    add(file, "%s,%s\n", picture, mask);
  }
  fclose(file);
  write_cell("new/one.png", NULL);
  write_cell("new/two.png", NULL);
}

/* Pairs that belong together differ little. */
static void write_pairs(void) {
  enum { N = 120 };
  float a[8 * N], b[8 * N];
  int32_t same[N];
  for (int i = 0; i < N; i++) {
    same[i] = draw(2);
    for (int k = 0; k < 8; k++) {
      a[8 * i + k] = (float)draw(200) / 100 - 1;
      b[8 * i + k] = same[i] ? a[8 * i + k] + (float)draw(20) / 100 - 0.1f : (float)draw(200) / 100 - 1;
    }
  }
  write_npy("left.npy", N, "8", a, 8 * N);
  write_npy("right.npy", N, "8", b, 8 * N);
  write_array("same.npy", "<i4", N, "", same, sizeof same);
  write_npy("new/left.npy", 2, "8", a, 16);
  write_npy("new/right.npy", 2, "8",
            (const float[16]){a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], 9, -9, 9, -9, 9, -9, 9, -9},
            16);
}

/* In units of its own. */
static double load_at(int time) { return 300 + 50 * sin(time * 0.31); }

static void write_rows(const char *path, int from, int n) {
  FILE *file = begin(path);
  add(file, "load,temperature,time\n");
  for (int i = n - 1; i >= 0; i--) /* the latest first */
    add(file, "%.4f,%.3f,%d\n", load_at(from + i), 20 + 5 * sin((from + i) * 0.5), 3600 * (from + i));
  fclose(file);
}

static void write_sensors(void) {
  write_rows("sensors.csv", 0, 240);
  write_rows("new/now.csv", 500, 24);
}

/* Half a second of a tone, mono, 16 bits. */
static void write_tone(const char *path, double pitch, int rate) {
  uint8_t bytes[44 + 2 * 8000];
  int n = rate / 2;
  const uint32_t numbers[] = {36 + 2 * (uint32_t)n, 16,          1 | 1 << 16, (uint32_t)rate,
                              2 * (uint32_t)rate,   2 | 16 << 16};
  memcpy(bytes, "RIFF    WAVEfmt ", 16);
  memcpy(bytes + 4, &numbers[0], 4);
  memcpy(bytes + 16, &numbers[1], 20);
  memcpy(bytes + 36, "data", 4);
  memcpy(bytes + 40, &(uint32_t){2 * (uint32_t)n}, 4);
  for (int i = 0; i < n; i++) {
    int16_t sample = (int16_t)(8000 * sin(2 * M_PI * pitch * i / rate) + draw(400));
    memcpy(bytes + 44 + 2 * i, &sample, 2);
  }
  file_write_bytes(path, bytes, 44 + 2 * (size_t)n);
}

static void write_words(void) {
  mkdir("words", 0777);
  mkdir("words/high", 0777);
  mkdir("words/low", 0777);
  for (int i = 0; i < 24; i++) {
    char path[32];
    snprintf(path, sizeof path, "words/%s/%d.wav", i % 2 ? "high" : "low", i);
    write_tone(path, i % 2 ? 1500 + 20 * i : 200 + 10 * i, 8000);
  }
  write_tone("new/a.wav", 1600, 8000);
  write_tone("new/b.wav", 300, 16000); /* of another rate */
}

static void copy_tokenizer(const char *from, const char *to) {
  size_t n;
  const char *json = file_read(from, &n);
  file_write_bytes(to, json, n);
}

static void write_reviews(void) {
  static const char *const good[] = {"good", "fine", "great"}, *const bad[] = {"bad", "poor", "awful"},
                           *const things[] = {"the film", "this book", "a play"};
  FILE *file = begin("reviews.csv");
  add(file, "text,label\n");
  for (int i = 0; i < 48; i++)
    add(file, "\"%s is %s, I think\",%s\n", things[draw(3)], (i % 2 ? good : bad)[draw(3)],
        i % 2 ? "good" : "bad");
  fclose(file);
  copy_tokenizer(TOKENIZERS "/bert.json", "tokenizer.json");
  file_write("new/reviews.csv", "text\nThe play is great\nawful book\n");
}

/* The weights to fine-tune are those of a short training on another text. */
static void write_novel(void) {
  FILE *file = begin("novel.txt");
  for (int i = 0; i < 500; i++) add(file, "The quick fox %s. ", draw(2) ? "runs on" : "sleeps");
  fclose(file);
  file_write("new/prompt.txt", "The quick");
  mkdir("gpt2", 0777);
  copy_tokenizer(TOKENIZERS "/gpt2.json", "gpt2/tokenizer.json");
  program_json(
      0, "train novel.ini --output before --set run.epochs=1 --set run.max_steps=2 --set weights.file=");
  assert_int_equal(rename("before/novel/checkpoints/last/model.safetensors", "gpt2/model.safetensors"), 0);
}

static void add_member(FILE *tar, const char *name, const void *bytes, size_t n) {
  char header[512] = "";
  unsigned sum = 8 * ' ';
  snprintf(header, 100, "%s", name);
  snprintf(header + 100, 8, "0000644");
  snprintf(header + 124, 12, "%011zo", n);
  memcpy(header + 257, "ustar\00000", 8);
  header[156] = '0';
  for (size_t i = 0; i < sizeof header; i++) sum += (unsigned char)header[i];
  snprintf(header + 148, 8, "%06o", sum);
  header[155] = ' ';
  assert_int_equal(fwrite(header, 1, sizeof header, tar), sizeof header);
  assert_int_equal(fwrite(bytes, 1, n, tar), n);
  for (; n % 512 != 0; n++) fputc(0, tar);
}

static void write_color_picture(const char *path, int red) {
  const uint8_t color[] = {red ? 200 : 20, 60, red ? 20 : 200}, other[] = {90, 90, 90};
  write_square(path, 16, color, draw(10), draw(10), 5, other);
}

static void write_archives(void) {
  for (int k = 0; k < 2; k++) {
    char path[32];
    snprintf(path, sizeof path, "train-00%d.tar", k);
    FILE *tar = begin(path);
    for (int i = 0; i < 20; i++) {
      size_t n;
      write_color_picture("picture.png", i % 2);
      const char *picture = file_read("picture.png", &n);
      snprintf(path, sizeof path, "%04d.png", i);
      add_member(tar, path, picture, n);
      snprintf(path, sizeof path, "%04d.cls", i);
      add_member(tar, path, i % 2 ? "1" : "0", 1);
    }
    for (int i = 0; i < 1024; i++) fputc(0, tar);
    fclose(tar);
  }
  write_color_picture("new/red.png", 1);
  write_color_picture("new/blue.png", 0);
}

/* ---- predictions ---- */

static const json_t *prediction(const json_t *r, size_t i) {
  const json_t *one = json_array_get(program_member(r, "predictions"), i);
  assert_non_null(one);
  return one;
}

static void is_class(const json_t *r, size_t i, const char *expected) {
  const json_t *top = json_array_get(program_member(prediction(r, i), "top"), 0);
  const char *name = json_string_value(json_object_get(top, "name"));
  char number[24];
  snprintf(number, sizeof number, "%lld", (long long)json_integer_value(json_object_get(top, "class")));
  assert_string_equal(name != NULL ? name : number, expected);
}

static void check_houses(void) {
  const json_t *r = program_json(0, "predict run --input new/houses.csv --output prices.csv");
  (void)r;
  const char *text = file_read("prices.csv", NULL), *first = strstr(text, "houses.csv:2,"),
             *second = strstr(text, "houses.csv:3,");
  assert_ptr_equal(strstr(text, "input,price\n"), text);
  assert_non_null(first);
  assert_non_null(second);
  assert_true(fabs(strtod(first + 13, NULL) - 330) < 25);
  assert_true(fabs(strtod(second + 13, NULL) - 200) < 25);
  assert_non_null(strstr(text, "houses.csv:4,"));
}

static void check_passengers(void) {
  const json_t *r = program_json(0, "predict run --input new/passengers.csv");
  is_class(r, 0, "yes");
  is_class(r, 1, "no");
}

static void check_photos(void) {
  const json_t *r = program_json(0, "predict run --input new"), *top;
  top = program_member(prediction(r, 0), "top");
  assert_int_equal(json_array_size(top), 3);
  for (size_t k = 0; k < 3; k++) /* red and green, not blue */
    assert_int_equal(program_number(json_array_get(top, k), "probability") > 0.5, k < 2);
  assert_string_equal(program_text(json_array_get(top, 2), "name"), "blue");
  program_json(0, "predict run --input new --output labels.csv");
  const char *text = file_read("labels.csv", NULL);
  assert_ptr_equal(strstr(text, "input,labels,blue,green,red\nnew/a.png,green|red,"), text);
  assert_non_null(strstr(text, "\nnew/b.png,blue,"));
}

/* Reads a PNG as RGB. */
static void read_picture(const char *path, unsigned side, uint8_t *pixels) {
  png_image image = {.version = PNG_IMAGE_VERSION};
  assert_true(png_image_begin_read_from_file(&image, path));
  assert_int_equal(image.width, side);
  assert_int_equal(image.height, side);
  assert_int_equal((image.format & PNG_FORMAT_FLAG_COLORMAP) != 0, strncmp(path, "masks/", 6) == 0);
  image.format = PNG_FORMAT_RGB;
  assert_true(png_image_finish_read(&image, NULL, pixels, 0, NULL));
}

/* Masks are those of the bright squares. */
static void check_cells(void) {
  static uint8_t mask[3 * 32 * 32], over[3 * 32 * 32], picture[3 * 32 * 32];
  const json_t *r = program_json(0, "predict run --input new --output masks/ --show over");
  assert_string_equal(program_text(prediction(r, 0), "mask"), "masks/one.png");
  assert_string_equal(program_text(prediction(r, 1), "shown"), "over/two.png");
  const json_t *areas = program_member(prediction(r, 0), "areas");
  read_picture("masks/one.png", 32, mask);
  read_picture("over/one.png", 32, over);
  read_picture("new/one.png", 32, picture);
  int right = 0, bright = 0;
  for (int i = 0; i < 32 * 32; i++) {
    int found = mask[3 * i] == 128; /* the color of class 1 is dark red */
    assert_true(found || mask[3 * i] == 0);
    right += found == (picture[3 * i] == 200);
    bright += found;
    /* the darkest number of the picture is drawn black, the brightest white, and half of it is the mask's
     * color */
    if (picture[3 * i] == 200) assert_true(abs(over[3 * i + 1] - (found ? 40 : 80)) <= 1);
  }
  assert_true(right > 32 * 32 - 40);
  assert_int_equal(json_array_size(areas), 2);
  assert_true(fabs(program_number(json_array_get(areas, 1), "part") - bright / 1024.0) < 1e-9);
  assert_int_equal(program_run("predict run --input new --top 1"), 0);
  assert_non_null(strstr(program_out, "new/one.png   0 "));
  /* such masks are data of training */
  file_write("again.csv", "picture,mask\nnew/one.png,masks/one.png\nnew/two.png,masks/two.png\n");
  r = program_json(0,
                   "eval cells_gone/cells.ini --weights run --set data.file=again.csv --set data.split=0.5 "
                   "--set data.batch=1");
  assert_true(program_number(r, "jaccard") > 0.99);
}

static void check_pairs(void) {
  const json_t *r =
      program_json(0, "predict run --input a=new/left.npy --input b=new/right.npy --output y.csv");
  is_class(r, 0, "1");
  is_class(r, 1, "0");
}

static void check_sensors(void) {
  const json_t *r = program_json(0, "predict run --input new/now.csv");
  assert_int_equal(json_array_size(program_member(r, "predictions")), 1);
  assert_true(fabs(program_number(prediction(r, 0), "values.y") - load_at(524)) < 15);
}

static void check_words(void) {
  const json_t *r = program_json(0, "predict run --input new");
  is_class(r, 0, "high");
  is_class(r, 1, "low");
}

static void check_reviews(void) {
  const json_t *r = program_json(0, "predict run --input new/reviews.csv");
  is_class(r, 0, "good");
  is_class(r, 1, "bad");
}

static void check_novel(void) {
  const json_t *r = program_json(0, "predict run --input new/prompt.txt");
  is_class(r, 0, " fox");
  r = program_json(0, "generate run --prompt The --tokens 12 --temperature 0");
  assert_non_null(strstr(program_text(r, "text"), "fox"));
}

static void check_archives(void) {
  const json_t *r = program_json(0, "predict run --input new/red.png --input new/blue.png");
  is_class(r, 0, "1");
  is_class(r, 1, "0");
}

/* ---- the recipes ---- */

typedef struct recipe {
  const char *name;
  void (*write)(void);
  const char *metric; /* of validation */
  double from, to;    /* where it has to be */
  void (*check)(void);
} recipe;

static const recipe recipes[] = {
    {"houses", write_houses, "r2", 0.9, 1, check_houses},
    {"passengers", write_passengers, "accuracy", 0.85, 1, check_passengers},
    {"photos", write_photos, "auroc", 0.95, 1, check_photos},
    {"cells", write_cells, "jaccard", 0.9, 1, check_cells},
    {"pairs", write_pairs, "accuracy", 0.85, 1, check_pairs},
    {"sensors", write_sensors, "r2", 0.9, 1, check_sensors},
    {"words", write_words, "accuracy", 1, 1, check_words},
    {"reviews", write_reviews, "accuracy", 0.9, 1, check_reviews},
    {"novel", write_novel, "perplexity", 1, 3, check_novel},
    {"archives", write_archives, "accuracy", 1, 1, check_archives},
};

/* The block of the guide that has this name of a run. */
static void write_configuration(const char *name) {
  char line[64], path[64];
  snprintf(line, sizeof line, "```ini\n[run]\nname = %s\n", name);
  snprintf(path, sizeof path, "%s.ini", name);
  char *text = file_read(GUIDE "/recipes.md", NULL), *from = strstr(text, line);
  assert_non_null(from);
  char *end = strstr(from + 3, "```");
  assert_non_null(end);
  file_write_bytes(path, from + 7, (size_t)(end - from) - 7);
}

static void move(const char *from, const char *name, const char *what) {
  char path[96];
  snprintf(path, sizeof path, "%s_%s", name, what);
  assert_int_equal(rename(from, path), 0);
}

/* In a folder of its own; then the run folder and the new files alone. */
static void train_recipe(const recipe *r) {
  char path[96];
  drawn = 1;
  mkdir(r->name, 0777);
  assert_int_equal(chdir(r->name), 0);
  mkdir("new", 0777);
  write_configuration(r->name);
  r->write();
  const json_t *result = program_json(0, "train %s.ini", r->name);
  snprintf(path, sizeof path, "valid.%s", r->metric);
  double value = program_number(result, path);
  if (!(value >= r->from && value <= r->to)) fail_msg("%s: %s is %g", r->name, r->metric, value);
  result = program_json(0, "eval %s.ini --weights runs/%s/checkpoints/last", r->name, r->name);
  assert_true(fabs(program_number(result, r->metric) - value) < 1e-4);
  snprintf(path, sizeof path, "runs/%s", r->name);
  assert_int_equal(rename(path, "../run"), 0);
  assert_int_equal(rename("new", "../new"), 0);
  assert_int_equal(chdir(".."), 0);
}

static void recipes_train_and_predict_from_their_run_folders(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
    const recipe *r = &recipes[i];
    train_recipe(r);
    move(r->name, r->name, "gone");
    r->check();
    move("run", r->name, "run");
    move("new", r->name, "new");
  }
}

/* No recipe of the guide is left out. */
static void every_configuration_of_the_guide_is_tried(void **state) {
  (void)state;
  size_t n = 0;
  for (const char *at = file_read(GUIDE "/recipes.md", NULL); (at = strstr(at, "```ini\n")) != NULL; at++)
    n++;
  assert_int_equal(n, sizeof recipes / sizeof *recipes);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, program_open, program_close)
  const struct CMUnitTest tests[] = {
      CASE(every_configuration_of_the_guide_is_tried),
      CASE(recipes_train_and_predict_from_their_run_folders),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

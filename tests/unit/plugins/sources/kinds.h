/* tests/unit/plugins/sources/kinds.h: the ways in which sources read, with data of 21 samples or more, so
 * that the last batch of 8 is short. */
#pragma once

#include <sys/stat.h>

#include "tests/unit/plugins/sources/files.h"
#include "tests/unit/plugins/sources/loading.h"

extern const tn_source arrays_source, audio_folder_source, cifar_source, concat_source, digits_source,
    idx_source, image_folder_source, random_source, shards_source, table_source, text_source, tokens_source,
    zip_source;

static char *folder;
/* The sample that gets a wrong value, by its number; -1: no sample. */
static int damaged = -1;

static inline void pack(const char *name) {
  char command[1200];
  snprintf(command, sizeof command, "gzip -n -f %s", in_folder(folder, name));
  assert_int_equal(system(command), 0);
}

/* ---- data ---- */

static inline void prepare_arrays(void) { write_rows(in_folder(folder, "x.npy"), 21); }
static inline void prepare_sounds(void) { write_sounds(folder, 11); }
static inline void prepare_cifar(void) { write_cifar(in_folder(folder, "data_batch_1.bin"), 21); }
static inline void prepare_idx(void) { write_idx(folder, 21); }
static inline void prepare_pictures(void) { write_pictures(folder, 11); }
static inline void prepare_table(void) { write_table(in_folder(folder, "t.csv"), 21); }
static inline void prepare_series(void) { write_table(in_folder(folder, "t.csv"), 24); }
static inline void prepare_text(void) { write_text(in_folder(folder, "t.txt"), 21 * 8 + 1); }
static inline void prepare_nothing(void) {}

/* Of 8 tokens each; one that is too large is in the middle of its window. */
static inline void prepare_tokens(void) {
  write_tokens(in_folder(folder, "t.bin"), 21 * 8 + 1);
  if (damaged < 0) return;
  FILE *file = fopen(in_folder(folder, "t.bin"), "r+b");
  assert_non_null(file);
  assert_int_equal(fseek(file, 2L * (8 * damaged + 3), SEEK_SET), 0);
  assert_int_equal(fwrite("\xff\xff", 1, 2, file), 2);
  fclose(file);
}

/* Pairs of i64 without a header; a damaged one does not fit i32. */
static inline void prepare_raw(void) {
  for (int i = 0; i < 21; i++)
    for (int k = 0; k < 2; k++)
      add(&file_bytes, &(int64_t){i == damaged ? INT64_MAX : i + k}, sizeof(int64_t));
  write_bytes(in_folder(folder, "x.raw"), &file_bytes);
}

static inline void prepare_packed_table(void) {
  prepare_table();
  pack("t.csv");
}

/* A tokenizer of the letters of write_text, and of "ab". */
static inline void prepare_tokenizer(void) {
  char json[400] = "{\"model\":{\"type\":\"Pieces\",\"pieces\":[\"ab\"";
  for (char c = 'a'; c <= 'w'; c++) snprintf(json + strlen(json), sizeof json - strlen(json), ",\"%c\"", c);
  strcat(json, "]}}");
  write_file(in_folder(folder, "t.json"), json, strlen(json));
}

static inline void prepare_pieces(void) {
  prepare_text();
  prepare_tokenizer();
}

/* Sentences of a table; a damaged one has a letter that the tokenizer lacks. */
static inline void prepare_sentences(void) {
  prepare_tokenizer();
  add_text(&file_bytes, "t\n");
  for (int i = 0; i < 21; i++) {
    char line[32];
    snprintf(line, sizeof line, "ab%c%s\n", 'a' + i, i == damaged ? "z" : "");
    add_text(&file_bytes, line);
  }
  write_bytes(in_folder(folder, "t.csv"), &file_bytes);
}

/* A picture, a sound and an array for each row. */
static inline void prepare_files(void) {
  write_class(folder, "c", 21, 0);
  write_sounds(folder, 11);
  for (int i = 0; i < 21; i++) {
    char name[32];
    snprintf(name, sizeof name, "c/%d.npy", i);
    add_rows(&file_bytes, 2, i);
    write_bytes(in_folder(folder, name), &file_bytes);
  }
}

static inline void prepare_cells(void) {
  prepare_files();
  add_text(&file_bytes, "p,s,a,y\n");
  for (int i = 0; i < 21; i++) {
    char line[100];
    snprintf(line, sizeof line, "c/%d.png,%s/%d.wav,c/%d.npy,%d\n", i, i % 2 == 0 ? "no" : "yes", i, i,
             i % 3);
    add_text(&file_bytes, line);
  }
  write_bytes(in_folder(folder, "t.csv"), &file_bytes);
}

static inline void prepare_lines(void) {
  prepare_files();
  for (int i = 0; i < 21; i++) {
    char line[100];
    snprintf(line, sizeof line, "{\"p\": \"c/%d.png\", \"y\": %d.5}\n", i, i);
    add_text(&file_bytes, line);
  }
  write_bytes(in_folder(folder, "t.jsonl"), &file_bytes);
}

/* ---- archives ---- */

static inline void prepare_shards(void) {
  write_shards(folder, 21);
  if (damaged < 0) return;
  for (int i = 7; i < 14; i++) {
    if (i != damaged) add_shard_sample(&file_bytes, i);
    if (i == damaged) add_text_member(&file_bytes, "009.json", "{\"x\": [9, ");
    if (i == damaged) add_text_member(&file_bytes, "009.cls", "0");
  }
  write_bytes(in_folder(folder, "s-1.tar"), &file_bytes);
}

static inline void prepare_packed(void) {
  prepare_shards();
  for (int i = 0; i < 3; i++) {
    char name[16];
    snprintf(name, sizeof name, "s-%d.tar", i);
    pack(name);
  }
}

/* NUMBER.npy, NUMBER.txt and NUMBER.cls in m.tar; a damaged array is cut. */
static inline void prepare_members(void) {
  static byte_list array;
  for (int i = 0; i < 21; i++) {
    char name[32], text[32];
    array.n = 0;
    add_rows(&array, 2, i);
    snprintf(name, sizeof name, "%03d.npy", i);
    add_member(&file_bytes, name, array.v, i == damaged ? 20 : array.n);
    snprintf(name, sizeof name, "%03d.txt", i);
    snprintf(text, sizeof text, "text %d", i);
    add_text_member(&file_bytes, name, text);
    snprintf(name, sizeof name, "%03d.cls", i);
    snprintf(text, sizeof text, "%d\n", i % 3);
    add_text_member(&file_bytes, name, text);
  }
  write_bytes(in_folder(folder, "m.tar"), &file_bytes);
}

static inline void prepare_packed_members(void) {
  prepare_members();
  pack("m.tar");
}

/* ---- sources that join others ---- */

static inline void prepare_joined(void) {
  write_idx(folder, 21);
  add_part("a", &idx_source, PAIRS("folder", folder));
  add_part("b", &random_source, PAIRS("shape", "[1, 2, 3]", "classes", "7", "samples", "21"));
}

/* Both with images and labels of the same type. */
static inline void prepare_alike(void) {
  write_pictures(folder, 5);
  add_part("a", &image_folder_source, PAIRS("folder", folder, "subfolder", ".", "split", "0.2"));
  add_part("b", &image_folder_source, PAIRS("folder", folder, "subfolder", "."));
}

static inline void prepare_beside(void) {
  write_pictures(folder, 11);
  write_table(in_folder(folder, "t.csv"), 22);
  add_part("a", &table_source, PAIRS("file", in_folder(folder, "t.csv"), "inputs", "x: numbers(a, b)"));
  add_part("b", &image_folder_source, PAIRS("folder", folder, "subfolder", "."));
}

/* ---- the ways ---- */

typedef struct kind {
  const char *name;
  const tn_source *source;
  void (*prepare)(void);
  const char *const *options; /* "@" begins a path in the folder */
  int64_t epoch;              /* of endless ones */
} kind;

#define KIND_OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define MEMBER_FIELDS                                                                                        \
  "inputs", "x: npy, w: txt, t: tokens(txt)", "tokenizer", "bytes", "length", "8", "classes", "[3]"

static const kind kinds[] = {
    {"digits", &digits_source, prepare_nothing, (const char *const[]){NULL}, 21},
    {"random", &random_source, prepare_nothing, KIND_OPTIONS("shape", "[3]", "samples", "21"), 0},
    {"idx", &idx_source, prepare_idx, KIND_OPTIONS("folder", "@"), 0},
    {"pictures", &image_folder_source, prepare_pictures, KIND_OPTIONS("folder", "@", "subfolder", "."), 0},
    {"cifar", &cifar_source, prepare_cifar, KIND_OPTIONS("folder", "@"), 0},
    {"text", &text_source, prepare_text, KIND_OPTIONS("file", "@/t.txt", "tokens", "8", "split", "0"), 0},
    {"pieces", &text_source, prepare_pieces,
     KIND_OPTIONS("file", "@/t.txt", "tokens", "8", "stride", "5", "split", "0", "tokenizer", "@/t.json"), 0},
    {"table", &table_source, prepare_table,
     KIND_OPTIONS("file", "@/t.csv", "inputs", "x: numbers(a, b, standardize=yes)", "targets",
                  "y: category(c)"),
     0},
    {"packed table", &table_source, prepare_packed_table,
     KIND_OPTIONS("file", "@/t.csv.gz", "inputs", "x: numbers(a, b)", "targets", "y: category(c)"), 0},
    {"windows", &table_source, prepare_series,
     KIND_OPTIONS("file", "@/t.csv", "window", "3", "inputs", "x: numbers(a, b)", "targets", "y: number(a)"),
     0},
    {"weights", &table_source, prepare_table,
     KIND_OPTIONS("file", "@/t.csv", "weight", "b", "inputs", "x: number(a)", "targets", "y: category(c)"),
     0},
    {"sentences", &table_source, prepare_sentences,
     KIND_OPTIONS("file", "@/t.csv", "inputs", "t: tokens(t, tokenizer=t.json, length=4)"), 0},
    {"cells", &table_source, prepare_cells,
     KIND_OPTIONS("file", "@/t.csv", "inputs",
                  "image: image(p), sound: audio(s, rate=8000, seconds=0.01), x: array(a)", "targets",
                  "y: category(y)"),
     0},
    {"lines", &table_source, prepare_lines,
     KIND_OPTIONS("file", "@/t.jsonl", "inputs", "image: image(p)", "targets", "y: number(y)"), 0},
    {"arrays", &arrays_source, prepare_arrays, KIND_OPTIONS("folder", "@", "inputs", "x: x.npy"), 0},
    {"raw", &arrays_source, prepare_raw, KIND_OPTIONS("folder", "@", "inputs", "x: x.raw i64[2] as i32"), 0},
    {"tokens", &tokens_source, prepare_tokens,
     KIND_OPTIONS("folder", "@", "files", "t.bin", "tokens", "8", "classes", "1000"), 0},
    {"documents", &tokens_source, prepare_tokens,
     KIND_OPTIONS("folder", "@", "files", "t.bin", "tokens", "8", "document", "0"), 0},
    {"shards", &shards_source, prepare_shards,
     KIND_OPTIONS("files", "@/s-{0..2}.tar", "inputs", "x: json(x)"), 0},
    {"packed shards", &shards_source, prepare_packed,
     KIND_OPTIONS("files", "@/s-{0..2}.tar.gz", "inputs", "x: json(x)", "classes", "[3]", "shuffle_buffer",
                  "6"),
     21},
    {"members", &shards_source, prepare_members, KIND_OPTIONS("files", "@/m.tar", MEMBER_FIELDS), 0},
    {"packed members", &shards_source, prepare_packed_members,
     KIND_OPTIONS("files", "@/m.tar.gz", MEMBER_FIELDS, "shuffle_buffer", "1"), 21},
    {"sounds", &audio_folder_source, prepare_sounds, KIND_OPTIONS("folder", "@", "seconds", "0.01"), 0},
    {"concat", &concat_source, prepare_alike, KIND_OPTIONS("sources", "a, b"), 0},
    {"weighted concat", &concat_source, prepare_alike,
     KIND_OPTIONS("sources", "a, b", "weights", "[0.2, 0.8]"), 0},
    {"zip", &zip_source, prepare_joined,
     KIND_OPTIONS("sources", "a, b", "inputs", "x: a.image, y: b.image", "targets", "label: a.label"), 0},
    {"beside", &zip_source, prepare_beside,
     KIND_OPTIONS("sources", "a, b", "inputs", "x: a.x, image: b.image", "targets", "label: b.label"), 0},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static inline const kind *kind_named(const char *name) {
  for (int i = 0; i < N_KINDS; i++)
    if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
  fail_msg("no kind is called %s", name);
  return NULL;
}

static inline const void *kind_options(const kind *k) {
  static const char *pairs[24];
  int n = 0;
  for (; k->options[n] != NULL; n++) {
    const char *text = k->options[n];
    pairs[n] = text[0] == '@' ? in_folder(folder, text + 1 + (text[1] == '/')) : text;
  }
  pairs[n] = NULL;
  return options_of(&k->source->item, pairs);
}

/* Makes the folder and the data. */
static inline void kind_begin(const kind *k) {
  folder = make_folder();
  begin_loading();
  k->prepare();
}

static inline void kind_end(void) {
  end_loading();
  remove_folder(folder);
}

#include "core/records/folders/read_samples.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file/file.h"
#include "core/base/text/base64.h"
#include "core/base/text/text.h"
#include "core/base/vec.h"

/* The bytes of a file, and of the files on a page, which end with the first validation that goes beyond. */
enum { SAMPLE_FILE = 16 << 20, SAMPLE_PAGE = 4 << 20 };

typedef TN_VEC(int64_t) sample_steps;

static int sample_compare_steps(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static tn_status sample_list_steps(const void *handle, const char *folder, sample_steps *steps) {
  DIR *dir = opendir(folder);
  tn_status status = TN_OK;
  for (struct dirent *one; status == TN_OK && dir != NULL && (one = readdir(dir)) != NULL;) {
    long long step;
    if (sscanf(one->d_name, "step-%lld", &step) == 1) status = tn_vec_push(handle, steps, (int64_t)step);
  }
  if (dir != NULL) closedir(dir);
  if (steps->n > 0) qsort(steps->v, steps->n, sizeof *steps->v, sample_compare_steps);
  return status;
}

static json_t *sample_picture(const void *handle, const char *bytes, size_t n) {
  static const char head[] = "data:image/png;base64,";
  char *text = tn_alloc(handle, sizeof head + tn_base64_length(n));
  if (text == NULL) return NULL;
  memcpy(text, head, sizeof head - 1);
  tn_base64(bytes, n, text + sizeof head - 1);
  json_t *json = json_string(text);
  tn_release(handle, text);
  return json;
}

/* "0.png" and "table.md"; other files are not those of the observer. */
static tn_status sample_add_file(const void *handle, const char *folder, const char *name, json_t *validation,
                                 size_t *total) {
  bool picture = tn_text_ends(name, ".png"), text = tn_text_ends(name, ".md");
  char *bytes = NULL, base[256];
  size_t n = 0;
  if (!picture && !text) return TN_OK;
  char *path = tn_path_join(handle, folder, name);
  if (path == NULL) return TN_ENOMEM;
  tn_status status = tn_file_read(handle, path, SAMPLE_FILE, &bytes, &n);
  tn_release(handle, path);
  if (status == TN_ENOMEM) return status;
  snprintf(base, sizeof base, "%.*s", (int)(strrchr(name, '.') - name), name);
  json_t *value = bytes == NULL ? NULL : picture ? sample_picture(handle, bytes, n) : json_stringn(bytes, n);
  if (value != NULL)
    json_object_set_new(json_object_get(validation, picture ? "pictures" : "texts"), base, value);
  tn_release(handle, bytes);
  *total += n;
  return TN_OK;
}

static tn_status sample_read_step(const void *handle, const char *folder, int64_t step, json_t *validation,
                                  size_t *total) {
  char name[32];
  snprintf(name, sizeof name, "step-%08lld", (long long)step);
  char *path = tn_path_join(handle, folder, name);
  DIR *dir = path != NULL ? opendir(path) : NULL;
  tn_status status = path != NULL ? TN_OK : TN_ENOMEM;
  for (struct dirent *one; status == TN_OK && dir != NULL && (one = readdir(dir)) != NULL;)
    status = sample_add_file(handle, path, one->d_name, validation, total);
  if (dir != NULL) closedir(dir);
  tn_release(handle, path);
  return status;
}

static tn_status sample_read_steps(const void *handle, const char *folder, const sample_steps *steps,
                                   json_t *list) {
  size_t total = 0;
  for (size_t i = steps->n; i > 0 && total < SAMPLE_PAGE; i--) {
    json_t *validation =
        json_pack("{s:I, s:{}, s:{}}", "step", (json_int_t)steps->v[i - 1], "texts", "pictures");
    if (validation == NULL || json_array_insert_new(list, 0, validation) != 0) return TN_ENOMEM;
    TN_TRY(sample_read_step(handle, folder, steps->v[i - 1], validation, &total));
  }
  return TN_OK;
}

tn_status tn_run_samples_read(const void *handle, const char *folder, json_t **samples) {
  char *path = tn_path_join(handle, folder, "samples");
  sample_steps steps = {0};
  *samples = json_array();
  tn_status status = path != NULL && *samples != NULL ? sample_list_steps(handle, path, &steps) : TN_ENOMEM;
  if (status == TN_OK) status = sample_read_steps(handle, path, &steps, *samples);
  tn_vec_free(handle, &steps);
  tn_release(handle, path);
  return status;
}

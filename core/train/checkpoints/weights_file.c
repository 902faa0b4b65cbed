#include "core/train/checkpoints/weights_file.h"

#include <sys/stat.h>

#include "core/base/file.h"
#include "core/base/text.h"
#include "core/train/checkpoints/run_folder.h"

/* Below a folder, the best first. */
static const char *const weights_places[] = {"model.safetensors", "checkpoints/best/model.safetensors",
                                             "checkpoints/last/model.safetensors", "best/model.safetensors",
                                             "last/model.safetensors"};

static tn_status weights_find_in(tn_run *run, const char *folder, char **path) {
  for (size_t i = 0; i < sizeof weights_places / sizeof *weights_places; i++) {
    *path = tn_path_join(&run->env, folder, weights_places[i]);
    if (*path == NULL) return TN_ENOMEM;
    if (tn_file_exists(*path)) return TN_OK;
    tn_release(&run->env, *path);
    *path = NULL;
  }
  return TN_OK;
}

static tn_status weights_find_newest(tn_run *run, char **path) {
  const char *resume = run->resume;
  char *folder = NULL;
  run->resume = "auto";
  tn_status status = tn_run_folder_find(run, &folder);
  run->resume = resume;
  if (status == TN_OK && folder != NULL) status = weights_find_in(run, folder, path);
  tn_release(&run->env, folder);
  return status;
}

tn_status tn_weights_find(tn_run *run, const char *given, char **path) {
  struct stat info;
  *path = NULL;
  if (*given == '\0') return weights_find_newest(run, path);
  if (stat(given, &info) != 0 || !S_ISDIR(info.st_mode)) {
    *path = tn_strdup(&run->env, given);
    return *path != NULL ? TN_OK : TN_ENOMEM;
  }
  TN_TRY(weights_find_in(run, given, path));
  if (*path != NULL) return TN_OK;
  return tn_failf(&run->env, TN_EINVAL,
                  "%s: is a folder without weights; expected a run folder, the folder of a checkpoint, or a "
                  ".safetensors file",
                  given);
}

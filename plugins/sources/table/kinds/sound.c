/* plugins/sources/table/kinds/sound.c: a sound in a file for each row, whose path is relative to the folder
 * of the table. */
#include <stdio.h>

#include "plugins/sources/audio/clip.h"
#include "plugins/sources/table/kinds/kinds.h"

static tn_status cell_sound_form(const table_field *f, const void *handle, clip_form *form) {
  if (f->choices.rate > 0 && f->choices.seconds >= 0)
    return clip_form_make(handle, f->choices.rate, f->choices.seconds, form);
  return tn_fail(
      handle, TN_EINVAL, NULL,
      "field '%s': expected rate = 16000 or another number of samples a second, and seconds of 0 or more",
      f->name);
}

static tn_status cell_sound_describe(table *t, table_field *f, tn_field *described) {
  clip_form form;
  TN_TRY(cell_sound_form(f, &t->env, &form));
  TN_TRY(kind_check_paths(t, f));
  *described = kind_field(f, (tn_type){TN_F32, 1, {form.samples}});
  return TN_OK;
}

/* Messages name the row and the file. */
static tn_status cell_sound_read(const table *t, const table_field *f, tn_sample *s, int32_t field) {
  char path[PATH_MAX], shown[2 * PATH_MAX];
  clip_form form;
  TN_TRY(cell_sound_form(f, s, &form));
  TN_TRY(kind_path(t, f, s, s->index, path));
  snprintf(shown, sizeof(shown), "%s:%u: %s", table_part_of(t, s->index)->path, (unsigned)t->lines[s->index],
           path);
  return clip_read(s, field, path, shown, &form);
}

const table_kind kind_audio = {.name = "audio",
                               .types = "f32[samples]",
                               .doc = "the path of a sound",
                               .choices = CHOICE_SOUND,
                               .form = TABLE_TEXTS,
                               .files = true,
                               .describe = cell_sound_describe,
                               .read = cell_sound_read};

/* core/records/checkpoints/adapter_note.h: files that hold adapters alone (core/base/adapters.h), and name
 * the file of the base in their metadata, as a JSON object: {"base": "/models/gpt2.safetensors", "prefix":
 * "", "rename": "", "transpose": "*.c_attn.weight", "scale": {"h.0.attn.c_attn": 2.0}}. PEFT's files have no
 * such note, and are known by the prefix of their names. */
#pragma once

#include <jansson.h>

#include "core/compile/state_map.h"
#include "core/formats/safetensors.h"
#include "core/run/run.h"

#define TN_ADAPTER_NOTE "tenon.adapters"
/* In front of the names of a model in PEFT's files. */
#define TN_PEFT_PREFIX "base_model.model."

typedef struct tn_adapter_note {
  bool adapters; /* the file holds adapters, and no base */
  bool peft;     /* it has PEFT's names */
  json_t *json;  /* the note; NULL: the file has none */
} tn_adapter_note;

/* TN_EINVAL: the note is damaged. The caller closes it in any case. */
tn_status tn_adapter_note_read(const void *handle, const tn_safetensors *file, const char *path,
                               tn_adapter_note *note);
void tn_adapter_note_close(tn_adapter_note *note);
/* A text of the note; "": it has none of this key. */
const char *tn_adapter_note_text(const tn_adapter_note *note, const char *key);
/* The scale of a layer's adapter, by the note, or else by [adapt] (`adapters` may be NULL). False: both have
 * no such layer. */
bool tn_adapter_note_scale(const tn_adapter_note *note, const tn_adapters *adapters, const char *layer,
                           double *scale);

/* Whether the states of the map are those of a training with adapters. */
bool tn_adapters_are_trained(const tn_state_map *map);
/* The note for a file of the run's adapters; *text is the caller's (free). */
tn_status tn_adapter_note_write(const tn_run *run, const tn_state_map *map, char **text);

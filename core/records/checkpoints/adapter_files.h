/* core/records/checkpoints/adapter_files.h: the files that PEFT opens (PeftModel.from_pretrained), beside
 * those of a checkpoint of a run with adapters: adapter_model.safetensors and adapter_config.json. */
#pragma once

#include "core/step/programs/programs.h"

extern const char *const tn_peft_files[2];

/* Writes both into the folder of a checkpoint; nothing where the run has no adapters. */
tn_status tn_peft_files_write(tn_run *run, tn_executor *executor, const tn_state_map *map,
                              const char *folder);

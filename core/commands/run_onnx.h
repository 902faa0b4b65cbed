/* core/commands/run_onnx.h: a run of a model of ONNX, without a configuration. */
#pragma once

#include "core/run/run.h"

/* Reads the file into run->ini, as `tenon import` would write it, and keeps it open as run->imported, which
 * has the weights. Of metadata that tn_run_export_onnx has written, the names of classes, the loss, and the
 * source and transforms of [data.valid] are used: arrays of bytes and pictures are read as for validation. */
tn_status tn_run_read_onnx(tn_run *run, const char *path);

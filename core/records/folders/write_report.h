/* core/records/folders/write_report.h: the page of tn_write_report, for a run that writes its own. */
#pragma once

#include "core/base/env.h"

/* tn_write_report with any handle: n folders of runs or sweeps, none of them NULL. */
tn_status tn_report_write(const void *handle, const char *const *runs, int32_t n, const char *path);
